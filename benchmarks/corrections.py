"""What corrections do to labels that are given too often: accuracy, macro F1, and labels that lose most texts.

    python benchmarks/corrections.py --sets banking77_test,trec6

60 texts are corrected in six rounds of ten, chosen as `sonde label --ask` chooses them. "uneven" cuts a third of the
classes to a sixth and a third to an eleventh, so that the names alone give small classes too many texts. Two ways to
keep labels from losing their texts are compared with the one that Sonde uses.
"""

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from _side_by_side import machine
from none import Loaded, loaded

from sonde.pipelines.label.carry import adjusted, spread
from sonde.pipelines.label.notes import FEWEST, LOST
from sonde.pipelines.label.review import UNCERTAIN
from sonde.pipelines.label.scores import adapted_margins
from sonde.pipelines.label.solvers import probabilities

ROUNDS, AT_ONCE, SEEDS, SHARE = 6, 10, 8, 0.8
CUTS = (1, 1 / 6, 1 / 11)
Way = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""Takes margins [n, labels], texts [n, d], corrected rows [m] and their labels [m]; returns new margins."""


def main() -> None:
    """Read the sets, and print a line for each set and way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "sonde-none")
    parser.add_argument("--sets", default="bbc,stackoverflow,banking77_test,trec6")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    print(f"{machine('sonde')}\n\n| set | way | accuracy | macro F1 | lost | accuracy, difference; standard error |")
    print("|---|---|---|---|---|---|", flush=True)
    for name in given.sets.split(","):
        texts = loaded(name, given.folder)
        for uneven in (False, True):
            samples = [drawn(*texts, seed, uneven) for seed in range(SEEDS)]
            found = {way: np.array([measured(*sample, WAYS[way]) for sample in samples]) for way in WAYS}
            for way, rows in found.items():
                shown = " | ".join(f"{value:.3f}" for value in rows.mean(axis=0))
                apart = rows[:, 0] - found["as Sonde does"][:, 0]
                error = apart.std(ddof=1) / SEEDS**0.5
                title = f"{name}{', uneven' if uneven else ''} | {way}"
                print(f"| {title} | {shown} | {apart.mean():+.3f}; {error:.3f} |", flush=True)


def drawn(vectors: np.ndarray, truth: np.ndarray, names: np.ndarray, seed: int, uneven: bool) -> Loaded:
    """Return a sample of the texts, their classes, and the names of all classes."""
    rng, rows = np.random.default_rng(seed), np.arange(len(truth))
    if uneven:
        cut = {label: CUTS[place % 3] for place, label in enumerate(rng.permutation(len(names)).tolist())}
        own = [np.flatnonzero(truth == label) for label in cut]
        kept = [max(5, round(share * len(each))) for share, each in zip(cut.values(), own, strict=True)]
        rows = np.concatenate([rng.choice(each, n, replace=False) for each, n in zip(own, kept, strict=True)])
    rows = np.sort(rng.choice(rows, int(SHARE * len(rows)), replace=False))
    return vectors[rows], truth[rows], names


def measured(vectors: np.ndarray, truth: np.ndarray, names: np.ndarray, way: Way) -> tuple[float, ...]:
    """Return accuracy and macro F1 of the texts that were not corrected, and how many labels lose most texts."""
    start = margins = adapted_margins(vectors, names)
    rows = np.empty(0, np.int64)
    for _ in range(ROUNDS):
        rows = np.concatenate([rows, asked(vectors, margins, rows)])
        margins = way(start, vectors, rows, truth[rows])
    others = np.setdiff1d(np.arange(len(truth)), rows)
    given, true, labels = margins.argmax(axis=1)[others], truth[others], np.arange(len(names))
    right = np.bincount(true[given == true], minlength=len(names))
    f1 = 2 * right / np.maximum(sum(np.bincount(each, minlength=len(names)) for each in (given, true)), 1)
    before, after = ((each.argmax(axis=1)[:, None] == labels).sum(axis=0) for each in (start, margins))
    lost = (before >= FEWEST) & (after < (1 - LOST) * before)
    return float((given == true).mean()), float(f1.mean()), float(lost.sum())


def asked(vectors: np.ndarray, margins: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the ten texts that `sonde label --ask` shows next."""
    best = np.sort(probabilities(margins, False), axis=1)
    free = np.setdiff1d(np.arange(len(vectors)), rows)
    order = free[np.argsort((best[:, -1] - best[:, -2])[free], kind="stable")]
    pool = np.sort(order[: int(UNCERTAIN * len(order))])
    return pool[spread(vectors[pool], AT_ONCE, np.random.default_rng(0), np.empty(0, np.int64))]


def as_sonde(start: np.ndarray, vectors: np.ndarray, rows: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Adjust the margins as a run does."""
    return adjusted(start, vectors, rows, np.eye(start.shape[1])[own], False)


def without_mean(start: np.ndarray, vectors: np.ndarray, rows: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Adjust with embeddings from which the mean of all texts is taken, so that no direction is common to all."""
    return as_sonde(start, vectors - vectors.mean(axis=0), rows, own)


def at_least(start: np.ndarray, vectors: np.ndarray, rows: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Adjust, and let a label keep the share of its texts that the corrections confirm, (right + 1) / (all + 2)."""
    margins, given = as_sonde(start, vectors, rows, own), start.argmax(axis=1)
    for label in range(start.shape[1]):
        mine = given[rows] == label
        share = ((own == label)[mine].sum() + 1) / (mine.sum() + 2)
        rest = np.delete(margins, label, axis=1).max(axis=1) - margins[:, label]
        wanted = int(share * (given == label).sum())
        if wanted:
            margins[:, label] += max(0.0, float(np.sort(rest)[wanted - 1]) + 1e-9)
    return margins


WAYS: dict[str, Way] = {"as Sonde does": as_sonde, "without the mean": without_mean, "at least": at_least}

if __name__ == "__main__":
    main()
