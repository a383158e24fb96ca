"""Make the training pairs of the bundled NLI model from permissively licensed sets.

    python benchmarks/bundled/nli_pairs.py ../shared/data pairs.jsonl [--stage 2]

The folder's layout is that of ../shared/data. Each line has premise, hypothesis and label; lines of one premise stand
together, and the trainer compares them with each other. The same data make the same file.
"""

import argparse
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import sets

import sonde
from sonde.pipelines.train.pairs import write_pairs

E, N, C = "entailment", "neutral", "contradiction"
Group = tuple[str, list[tuple[str, str]]]
Source = Callable[[Path, random.Random], Iterator[sets.Example]]


@dataclass(frozen=True)
class Mix:
    """What a stage of training reads: (pairs, repetitions) of each inference set, texts of each set with topics."""

    nli: dict[str, tuple[int, int]]
    topics: dict[Source, int]


STAGES = {
    1: Mix(
        {"taxinli": (10_071, 3), "snli_dev": (9_842, 2), "conjnli": (2_000, 1), "breaking_nli": (1_000, 1)},
        {
            sets.trivia: 2_500, sets.arxiv: 1_500, sets.squad: 1_800, sets.medquad: 600, sets.banking: 600,
            sets.feelings: 1_000, sets.genres: 400, sets.titles: 400,
        },
    ),
    2: Mix(
        {"taxinli": (10_071, 2), "snli_dev": (9_842, 1), "conjnli": (1_000, 1), "breaking_nli": (500, 1)},
        {
            sets.trivia: 600, sets.arxiv: 400, sets.squad: 600, sets.medquad: 150, sets.banking: 150,
            sets.feelings: 300, sets.genres: 100, sets.titles: 100, sets.everyday: 2_000,
        },
    ),
}  # fmt: skip
WRONG = 2


def main() -> None:
    """Write the pairs and print how many there are of each source."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--stage", type=int, default=1, choices=sorted(STAGES))
    arguments = parser.parse_args()
    chance, mix = random.Random(6 + arguments.stage), STAGES[arguments.stage]
    counts: Counter[str] = Counter()
    groups: list[Group] = []
    for source, found in (
        *nli_sources(arguments.data, mix, chance),
        *topic_sources(arguments.data, mix.topics, chance),
    ):
        groups += found
        counts[source] += sum(len(pairs) for _, pairs in found)
    chance.shuffle(groups)
    write_pairs(arguments.out, ((premise, text, label) for premise, pairs in groups for text, label in pairs))
    print(sum(counts.values()), dict(counts))


def nli_sources(data: Path, mix: Mix, chance: random.Random) -> Iterator[tuple[str, list[Group]]]:
    """Human and rule-made inference pairs, with a few turned round or repeated."""
    for name, (size, times) in mix.nli.items():
        rows = sets.lines(data / f"nli/{name}.jsonl.gz")
        for _ in range(times):
            rows = chance.sample(rows, min(size, len(rows)))
            found = [(row["premise"], [(row["hypothesis"], row["label"])]) for row in rows]
            yield name, found
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


def topic_sources(data: Path, topics: dict[Source, int], chance: random.Random) -> Iterator[tuple[str, list[Group]]]:
    """Texts with right and wrong labels in varied sentences."""
    near = Nearness()
    for source, size in topics.items():
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
