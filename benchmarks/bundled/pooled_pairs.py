"""Make the training pairs of `make_pooled.py` from permissively licensed sets, a file for each pass.

    python benchmarks/bundled/pooled_pairs.py ../shared/data pairs/ [--passes 3]

The folder's layout is that of docs/models.md. Each line has premise, hypothesis and label; lines of one premise stand
together, and the trainer compares them with each other. The same data make the same files.
"""

import argparse
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import sets

import sonde
from sonde.pipelines.train.pairs import write_pairs

E, N, C = "entailment", "neutral", "contradiction"
Group = tuple[str, list[tuple[str, str]]]
Source = Callable[[Path, random.Random], Iterator[sets.Example]]


INFERENCE = {"taxinli": 1.0, "snli_dev": 0.8, "conjnli": 0.1, "breaking_nli": 0.1}
"""The share of each inference set that a pass reads, drawn anew each time."""
TOPICS: dict[Source, int] = {
    sets.trivia: 1_500, sets.arxiv: 900, sets.squad: 1_100, sets.medquad: 360, sets.banking: 360,
    sets.feelings: 600, sets.genres: 240, sets.titles: 240,
}  # fmt: skip
"""Texts of each set with topics in all passes together; each is read once."""
WRONG = 2
PASSES = 3
SEED = 7


def main() -> None:
    """Write the pairs and print how many there are of each source."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--passes", type=int, default=PASSES)
    arguments = parser.parse_args()
    chance = random.Random(SEED)
    arguments.out.mkdir(parents=True, exist_ok=True)
    topics = dict(topic_sources(arguments.data, chance))
    for number in range(arguments.passes):
        parts = {name: found[number :: arguments.passes] for name, found in topics.items()}
        parts |= dict(nli_sources(arguments.data, chance))
        groups = [one for found in parts.values() for one in found]
        chance.shuffle(groups)
        lines = ((premise, text, label) for premise, pairs in groups for text, label in pairs)
        write_pairs(arguments.out / f"pass{number + 1}.jsonl", lines)
        counts = {name: sum(len(pairs) for _, pairs in found) for name, found in parts.items()}
        print(sum(counts.values()), counts, flush=True)


def nli_sources(data: Path, chance: random.Random) -> Iterator[tuple[str, list[Group]]]:
    """Human and rule-made inference pairs, with a few turned round or repeated."""
    for name, share in INFERENCE.items():
        rows = sets.lines(data / f"nli/{name}.jsonl.gz")
        rows = chance.sample(rows, round(share * len(rows)))
        yield name, [(row["premise"], [(row["hypothesis"], row["label"])]) for row in rows]
        if name in ("taxinli", "snli_dev"):
            yield f"{name}, turned", list(turned(rows, chance))


def turned(rows: list[dict], chance: random.Random) -> Iterator[Group]:
    """Contradictions hold both ways; a sentence entails itself; a strange hypothesis is neutral."""
    for row in rows:
        if row["label"] == C and chance.random() < 0.1:
            yield row["hypothesis"], [(row["premise"], C)]
        elif chance.random() < 0.01:
            yield row["premise"], [(row["premise"], E)]
        elif chance.random() < 0.02:
            yield row["premise"], [(chance.choice(rows)["hypothesis"], N)]


def topic_sources(data: Path, chance: random.Random) -> Iterator[tuple[str, list[Group]]]:
    """Texts with right and wrong labels in varied sentences."""
    near = Nearness()
    for source, size in TOPICS.items():
        examples = [example for example in source(data, chance) if example.wrong]
        chosen = chance.sample(examples, min(size, len(examples)))
        yield source.__name__, [group(example, near, chance) for example in chosen]


def group(example: sets.Example, near: "Nearness", chance: random.Random) -> Group:
    """Return one right label and some wrong ones, half of them near the right one, in the same template."""
    right = chance.choice(example.right)
    hard = near(right, example.wrong)[:12] if len(example.wrong) > 12 else example.wrong
    pool = [label for label in example.wrong if label not in example.right]
    wrong = [chance.choice(hard if chance.random() < 0.5 else pool) for _ in range(WRONG)]
    template = chance.choice(example.templates)
    labels = [(right, E), *((label, C) for label in dict.fromkeys(wrong))]
    chance.shuffle(labels)
    pairs = [(template.format(label), truth) for label, truth in labels]
    return example.text, [
        (text[:1].upper() + text[1:] if chance.random() < 0.8 else text, truth) for text, truth in pairs
    ]


class Nearness:
    """Labels sorted by the bi-encoder's similarity to one of them; each vector is computed once."""

    def __init__(self) -> None:
        self.encoder = sonde.load_encoder()
        self.vectors: dict[str, np.ndarray] = {}

    def __call__(self, label: str, others: tuple[str, ...]) -> list[str]:
        """Return `others`, nearest first."""
        if missing := [one for one in dict.fromkeys((label, *others)) if one not in self.vectors]:
            self.vectors.update(zip(missing, self.encoder.encode_texts(missing), strict=True))
        scores = np.array([self.vectors[one] for one in others]) @ self.vectors[label]
        return [others[place] for place in np.argsort(-scores, kind="stable")]


if __name__ == "__main__":
    main()
