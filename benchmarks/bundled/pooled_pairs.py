"""Make the training pairs of `make_pooled.py` from permissively licensed sets, a file for each pass.

    python benchmarks/bundled/pooled_pairs.py ../shared/data pairs/ [--passes 3]

The folder's layout is that of ../shared/data. Each line has premise, hypothesis and label; lines of one premise stand
together, and the trainer compares them with each other. The same data make the same files.
"""

import argparse
import random
from collections.abc import Iterator
from pathlib import Path

import sets
from nli_pairs import Group, Source, topic_sources, turned

from sonde.pipelines.train.pairs import write_pairs

INFERENCE = {"taxinli": 1.0, "snli_dev": 0.8, "conjnli": 0.1, "breaking_nli": 0.1}
"""The share of each inference set that a pass reads, drawn anew each time."""
TOPICS: dict[Source, int] = {
    sets.trivia: 1_500, sets.arxiv: 900, sets.squad: 1_100, sets.medquad: 360, sets.banking: 360,
    sets.feelings: 600, sets.genres: 240, sets.titles: 240,
}  # fmt: skip
"""Texts of each set with topics in all passes together; each is read once."""
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
    topics = dict(topic_sources(arguments.data, TOPICS, chance))
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


if __name__ == "__main__":
    main()
