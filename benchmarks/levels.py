"""Levels of topics beside KMeans with a k of its own and dense topics, on the same vectors, against true classes.

    python benchmarks/levels.py [--folder vectors/] [--sets bbc,trec6] [--samples 0,800] [--seeds 0]

`--folder` keeps the vectors of a set as NAME.npz (`v`: float32 [n, d], `y`: classes [n]); those of the sets of
`clusters.py` are made if they are not there. A sample is drawn at random; 0 stands for all texts. newsgroups20 is also
compared with the first part of its names, such as `rec` of `rec.autos`. Outliers of the dense topics are put with the
nearest mean, as Sonde does. Naming is not measured. Numba's compilation is not timed.
"""

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

import numpy as np
from _side_by_side import machine
from clusters import SETS, indexed, read

from sonde.indexer.store.view import normalized
from sonde.pipelines.analysis.neighbours import one_thread, sample_rows
from sonde.pipelines.analysis.statistics import agreement
from sonde.pipelines.cluster.choice import choose_k, k_curve
from sonde.pipelines.cluster.kmeans import fit_kmeans, nearest
from sonde.pipelines.topics.adapter import Grouper, Reducer
from sonde.pipelines.topics.fit import automatic_size
from sonde.pipelines.topics.levels import Nested, nested_levels
from sonde.pipelines.topics.model import leaves_of, nearest_leaf, nested_leaves

LEVELS = ("coarse", "middle", "fine")


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "sonde-levels")
    parser.add_argument("--sets", default="bbc,newsgroups20,stackoverflow,banking77,trec6")
    parser.add_argument("--samples", default="0,800", help="how many texts; 0 for all")
    parser.add_argument("--seeds", default="0", help="of the sample and of everything else")
    arguments = parser.parse_args()
    print(f"{machine('sonde', 'evoc', 'umap-learn', 'hdbscan')}\n")
    print("| set | texts | classes | who | groups | NMI | ARI | seconds | |\n" + 9 * "|---" + "|")
    nested_levels(_some(400), 0)  # compiles
    for name in arguments.sets.split(","):
        vectors, classes = vectors_of(name, arguments.folder)
        for size in map(int, arguments.samples.split(",")):
            for seed in map(int, arguments.seeds.split(",")):
                rows = sample_rows(len(vectors), size or len(vectors), seed)
                one_set(name, *distinct(vectors[rows], classes[rows]), seed)


def _some(count: int) -> np.ndarray:
    return normalized(np.random.default_rng(0).normal(size=(count, 32)).astype(np.float32))


def vectors_of(name: str, folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Vectors of length 1 and classes of a set, kept in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}.npz"
    if not file.exists():
        _, vectors, classes = read(indexed(name, folder), SETS[name][1])
        np.savez(file, v=normalized(vectors), y=classes)
    with np.load(file) as kept:
        return normalized(kept["v"].astype(np.float32)), kept["y"]


def distinct(vectors: np.ndarray, classes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first of equal vectors."""
    first = np.sort(np.unique(vectors, axis=0, return_index=True)[1])
    return np.ascontiguousarray(vectors[first]), classes[first]


def one_set(name: str, vectors: np.ndarray, classes: np.ndarray, seed: int) -> None:
    """Print the lines of one set."""
    truths = {name: classes}
    if name == "newsgroups20":
        truths[f"{name}, first part"] = np.array([str(label).partition(".")[0] for label in classes])
    found = [(*each, seconds) for each, seconds in _timed(vectors, seed)]
    for truth, labels_of in truths.items():
        count = len(np.unique(labels_of))
        for who, labels, note, seconds in found:
            both = agreement(labels_of, labels)
            groups = len(np.unique(labels))
            print(
                f"| {truth} | {len(vectors):,} | {count} | {who} | {groups} | {both['nmi']:.3f} | {both['ari']:.3f} "
                f"| {seconds:.1f} | {note} |", flush=True,
            )  # fmt: skip


def _timed(vectors: np.ndarray, seed: int) -> Iterator[tuple[tuple[str, np.ndarray, str], float]]:
    began = perf_counter()
    labels = kmeans(vectors, seed)
    yield ("KMeans, auto k", labels, ""), perf_counter() - began
    began = perf_counter()
    labels = dense(vectors, seed)
    yield ("dense topics", labels, ""), perf_counter() - began
    began = perf_counter()
    found = nested_levels(vectors, seed)
    by_level = levels(vectors, found)
    seconds = perf_counter() - began
    low, high, clear = found.why.low, found.why.high, "clear" if found.why.clear else "not clear"
    for level, name in enumerate(LEVELS):
        mark = f"suggested, {clear}, {low} to {high} equal" if level == found.suggested else ""
        yield (f"{name} level", by_level[level], mark), seconds


def kmeans(vectors: np.ndarray, seed: int) -> np.ndarray:
    """As `sonde cluster`."""
    return fit_kmeans(vectors, choose_k(k_curve(vectors, seed)), seed).labels


def dense(vectors: np.ndarray, seed: int) -> np.ndarray:
    """As `sonde topics --method dense`."""
    grouper = Grouper(automatic_size(len(vectors)))
    labels = grouper.fit(Reducer(5, 15, seed).fit_transform(vectors)).labels_
    means, _, _ = leaves_of(vectors, np.asarray(labels, np.int64), with_outliers=False)
    with one_thread():
        return nearest(vectors, means)[0] if len(means) else np.zeros(len(vectors), np.int64)


def levels(vectors: np.ndarray, found: Nested) -> list[np.ndarray]:
    """The groups of each level, as `sonde topics` stores them."""
    leaves, _, _, kept = nested_leaves(vectors, found.leaves, found.levels, found.suggested, with_outliers=False)
    own, _ = nearest_leaf(vectors, leaves, kept)
    return [row[own] for row in kept.groups]


if __name__ == "__main__":
    main()
