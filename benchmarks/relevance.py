"""What the relevance of a hit is worth: foreign questions, classes taken out, one threshold, calibration.

    python benchmarks/relevance.py [--folder collections/] [--model static]

A foreign question is one that was asked of another set. The classes of a fifth of a set's texts are taken out, and the
questions of these classes then have no answer. Beside the relevance, the table has the best cosine. The folder keeps
the collections.
"""

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from _judged_sets import SETS, JudgedSet, _some, collection_of
from _side_by_side import machine

import sonde

PAIRS = (
    "banking77 opentrivia", "opentrivia banking77", "squad medquad", "medquad squad", "cisi cacm", "cacm cisi",
    "cisi opentrivia", "lisa stackoverflow", "stackoverflow trec6", "trec6 stackoverflow", "squad opentrivia",
    "arxiv_titles bbc", "bbc trec6", "medquad banking77", "cacm banking77", "lisa squad",
)  # fmt: skip
"""A collection, and the set whose questions are foreign to it. cisi, cacm and lisa share subjects."""
CALIBRATED = ("cisi", "cacm", "lisa", "squad", "medquad", "arxiv_titles")
WITHOUT = ("banking77", "stackoverflow", "bbc")
FOREIGN, SEEDS = 300, 3


@dataclass(frozen=True, slots=True)
class Best:
    """What the first hits of queries are worth: float64 [queries] each."""

    relevance: np.ndarray
    cosine: np.ndarray
    weak: np.ndarray


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "sonde-judged")
    parser.add_argument("--model", default="all-MiniLM-L6-v2")
    parser.add_argument("--parts", default="foreign,classes,calibration")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    print(f"{given.model}; {machine('sonde')}\n")
    for part in given.parts.split(","):
        {"foreign": _foreign, "classes": _without_classes, "calibration": _calibration}[part](given.folder, given.model)


def best(collection: sonde.Collection, queries: Sequence[str]) -> Best:
    """Return what the best hit of each query is worth: its greatest relevance, and the greatest cosine."""
    relevance, cosine, weak = [], [], []
    for hybrid, dense in zip(
        collection.search_many(queries, k=10, collapse=False),
        collection.search_many(queries, k=1, mode="dense", collapse=False),
        strict=True,
    ):
        worth = [getattr(hit, "relevance", hit.score) for hit in hybrid]
        relevance.append(max(worth))
        cosine.append(dense[0].scores.dense)
        weak.append(all(getattr(hit, "weak", False) for hit in hybrid))
    return Best(np.array(relevance), np.array(cosine, float), np.array(weak))


def auroc(positive: np.ndarray, negative: np.ndarray) -> float:
    """Return the chance that a positive is above a negative; equal ones count half."""
    values = np.concatenate([positive, negative])
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[places]
    return float(
        (ranks[: len(positive)].sum() - len(positive) * (len(positive) + 1) / 2) / (len(positive) * len(negative))
    )


def _foreign(folder: Path, model: str) -> None:
    own: dict[str, Best] = {}
    rows, alarms, foreign_values = [], [], []
    for pair in PAIRS:
        name, other = pair.split()
        collection = collection_of(name, folder, model)
        if name not in own:
            own[name] = best(collection, _some(SETS[name]().queries, FOREIGN))
        foreign = best(collection, _some(SETS[other]().queries, FOREIGN))
        ours, cosine = auroc(own[name].relevance, foreign.relevance), auroc(own[name].cosine, foreign.cosine)
        rows.append((ours, cosine))
        alarms.append(1 - foreign.weak.mean())
        foreign_values.append(foreign.relevance)
        print(f"| {name} | {other} | {ours:.3f} | {cosine:.3f} | {ours - cosine:+.3f} | {alarms[-1]:.3f} |", flush=True)
    ours, cosine = np.mean(rows, axis=0)
    print(f"| mean | | {ours:.3f} | {cosine:.3f} | {ours - cosine:+.3f} | {np.mean(alarms):.3f} |\n")
    line = np.quantile(np.concatenate(foreign_values), 0.9)
    missed = np.mean([(found.relevance < line).mean() for found in own.values()])
    print(
        f"at the threshold {line:.3f}, one in ten foreign questions gets an answer, and {missed:.3f} of the others none"
    )
    lost = {name: found.weak.mean() for name, found in own.items()}
    print("answerable questions without a hit that is not weak: " + ", ".join(f"{n} {x:.3f}" for n, x in lost.items()))
    print(f"mean {np.mean(list(lost.values())):.3f}\n")


def _without_classes(folder: Path, model: str) -> None:
    for name in WITHOUT:
        judged, rows = SETS[name](), []
        for seed in range(SEEDS):
            gone = taken_out(judged, seed)
            drop = {
                key for label, truth in zip(judged.classes, judged.truth, strict=True) if label in gone for key in truth
            }
            kept = [row for row in judged.rows if row["id"] not in drop]
            found = best(part_of(name, folder, model, seed, kept), judged.queries)
            has = np.array([label not in gone for label in judged.classes])
            rows.append([auroc(worth[has], worth[~has]) for worth in (found.relevance, found.cosine)])
        ours, cosine = np.mean(rows, axis=0)
        print(f"| {name} | {ours:.3f} | {cosine:.3f} | {ours - cosine:+.3f} |", flush=True)
    print()


def taken_out(judged: JudgedSet, seed: int) -> set[str]:
    """Return a fifth of the classes, sampled at random."""
    labels = sorted(set(judged.classes))
    return set(np.random.default_rng(seed).choice(labels, max(1, round(len(labels) / 5)), replace=False).tolist())


def part_of(name: str, folder: Path, model: str, seed: int, kept: list[dict[str, str]]) -> sonde.Collection:
    """Return a collection of some rows of a set: a copy of the whole one, with the other rows deleted."""
    import shutil

    path = folder / f"{name}-{model}-without-{seed}.sonde"
    if not path.exists():
        whole = collection_of(name, folder, model)
        shutil.copytree(whole.path, path)
        ids = {row["id"] for row in kept}
        sonde.open(path).delete([row["id"] for row in SETS[name]().rows if row["id"] not in ids])
    return sonde.open(path)


def _calibration(folder: Path, model: str) -> None:
    for name in CALIBRATED:
        judged, chances, right, first = SETS[name](), [], [], []
        found = collection_of(name, folder, model).search_many(judged.queries, k=10, collapse=False)
        for results, truth in zip(found, judged.truth, strict=True):
            for hit in results:
                chances.append(getattr(hit, "relevance", hit.score))
                right.append(truth.get(hit.id, 0) > 0)
                first.append(hit.rank == 1)
        p, y, top = np.array(chances), np.array(right, float), np.array(first)
        print(
            f"| {name} | {error(p, y):.3f} | {p.mean():.2f} | {y.mean():.2f} | {error(p[top], y[top]):.3f} | "
            f"{p[top].mean():.2f} | {y[top].mean():.2f} | {int(top.sum())} |"
        )


def error(chances: np.ndarray, right: np.ndarray, bins: int = 10) -> float:
    """Return the expected calibration error over bins of equal width."""
    places = np.minimum((chances * bins).astype(int), bins - 1)
    inside = [places == place for place in range(bins)]
    return float(sum(abs(chances[i].mean() - right[i].mean()) * i.mean() for i in inside if i.any()))


if __name__ == "__main__":
    main()
