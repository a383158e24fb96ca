"""What is new: how soon a hidden class of banking77 is found, and how often a quiet batch raises an alarm.

    python benchmarks/watch.py

A class is left out of the old texts and comes at 1 % of the new ones. "one batch": 1,000 new texts, of which 10, 20, 30
and so on are of the hidden class. "stream": 1,000 new texts with 10 hidden ones, then 2,000 with 20 … The class
is found with the first number for which it is more than half of a new group. The texts of both parts of banking77 are
shuffled, since its test part is balanced and its train part is not: between them, many classes grow or shrink.
"""

import argparse
import csv
import time
from collections.abc import Callable

import numpy as np
from _side_by_side import DATA, machine

import sonde
from sonde.pipelines.analysis.appeared import Place, around, find_places
from sonde.pipelines.analysis.corpus import distinct
from sonde.pipelines.analysis.statistics import Batch
from sonde.pipelines.cluster.kmeans import fit_kmeans
from sonde.pipelines.watch import WatchSettings
from sonde.pipelines.watch.groups import MOST, compare_shares

BATCH, STEP, LAST = 1_000, 10, 60
SETTINGS = WatchSettings("2026-11-01")


def main() -> None:
    """Print two Markdown tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="all-MiniLM-L6-v2")
    parser.add_argument("--classes", type=int, default=5)
    parser.add_argument("--quiet", type=int, default=100, help="number of quiet batches")
    arguments = parser.parse_args()
    texts, classes = _read()
    vectors = sonde.load_encoder(arguments.model).encode_texts(texts)
    print(f"{machine('sonde')}; {arguments.model}, {len(texts):,} texts, alarms at {SETTINGS.alarms:.0%}\n")
    print(
        "| hidden class | one batch | of it | others | stream | of it | others | s |\n" + "|---" * 8 + "|", flush=True
    )
    for name in np.random.default_rng(0).choice(np.unique(classes), arguments.classes, replace=False):
        _hidden(vectors, classes, name)
    print("\n| quiet batches | with an alarm | grew or shrank | new | s |\n|---|---|---|---|---|")
    _quiet(vectors, arguments.quiet)


def _hidden(vectors: np.ndarray, classes: np.ndarray, name: str) -> None:
    chance, began = np.random.default_rng(0), time.perf_counter()
    hidden = chance.permutation(np.flatnonzero(classes == name))
    others = chance.permutation(np.flatnonzero(classes != name))
    one = _found(vectors, hidden, others, lambda count: BATCH - count)
    stream = _found(vectors, hidden, others, lambda count: (BATCH - STEP) * count // STEP)
    print(f"| {name} | {one} | {stream} | {time.perf_counter() - began:.0f} |", flush=True)


def _found(vectors: np.ndarray, hidden: np.ndarray, others: np.ndarray, quiet: Callable[[int], int]) -> str:
    """Return, as cells, with how many hidden texts their class is found, and how many of each kind the group has."""
    for count in range(STEP, LAST + 1, STEP):
        new = np.concatenate([others[: quiet(count)], hidden[:count]])
        chosen = np.concatenate([new, others[quiet(count) :]])
        batch, of_text, group = _batch(vectors[chosen], len(new))
        ours = set(group[quiet(count) : len(new)].tolist())
        for place in _places(batch, of_text):
            own = len(ours & set(place.rows.tolist()))
            if 2 * own > len(place.rows):
                return f"{count} | {own} | {len(place.rows) - own}"
    return f"not within {LAST} | – | –"


def _batch(vectors: np.ndarray, new: int) -> tuple[Batch, np.ndarray, np.ndarray]:
    group, first = distinct(vectors, [str(row).encode() for row in range(len(vectors))])
    return Batch.of(group, np.arange(len(group)) < new), vectors[first], group


def _places(batch: Batch, vectors: np.ndarray) -> list[Place]:
    return find_places(batch, around(vectors), SETTINGS.alarms / 2, SETTINGS.permutations, 0)


def _quiet(vectors: np.ndarray, times: int) -> None:
    began = time.perf_counter()
    group, first = distinct(vectors, [str(row).encode() for row in range(len(vectors))])
    table, labels = around(vectors[first]), fit_kmeans(vectors[first], MOST, 0).labels
    moved, appeared, chance = np.zeros(times, bool), np.zeros(times, bool), np.random.default_rng(1)
    for number in range(times):
        batch = Batch.of(group, chance.permutation(len(group)) < BATCH)
        shares = compare_shares(batch, labels, int(labels.max()) + 1, SETTINGS.permutations, number)
        moved[number] = (shares.p <= SETTINGS.alarms / 2).any()
        appeared[number] = bool(find_places(batch, table, SETTINGS.alarms / 2, SETTINGS.permutations, number))
    seconds = time.perf_counter() - began
    print(f"| {times} | {(moved | appeared).sum()} | {moved.sum()} | {appeared.sum()} | {seconds:.0f} |")


def _read() -> tuple[list[str], np.ndarray]:
    rows = []
    for part in ("train", "test"):
        with (DATA / "topics" / f"banking77_{part}.csv").open(newline="") as stream:
            rows += [(row["text"], row["category"]) for row in csv.DictReader(stream)]
    return [text for text, _ in rows], np.array([label for _, label in rows])


if __name__ == "__main__":
    main()
