"""Clusters, a map and labels of the indexed passages, and FAISS's k-means alone on the same card."""

from collections.abc import Callable
from time import perf_counter

import faiss
from _stage import THEMES, Stage, passages
from search import vectors

import sonde

LABELS = ["sport", "politics", "science", "music", "food", "travel", "business", "health"]


def main() -> None:
    """Measure each kind of group."""
    stage = Stage.of("groups")
    collection = sonde.open(stage.collection, device=stage.device)
    k = 8 if stage.tiny else THEMES
    ours = took(lambda: collection.cluster(k=k, replace=True))
    stored = vectors(stage.collection)
    peer = took(lambda: faiss.Kmeans(stored.shape[1], k, gpu=stage.device == "cuda", seed=1).train(stored))
    beside = f"FAISS's k-means alone: {peer:.1f} s"
    stage.row(f"cluster into {k}, names included", f"{ours:.1f} s", beside=beside)
    stage.row("map", f"{took(lambda: collection.map(replace=True)):.1f} s")
    names = took(lambda: collection.label(LABELS, engine="similarity", replace=True, device=stage.device))
    stage.row("label all by similarity", f"{names:.1f} s")
    texts = passages(4 if stage.tiny else 1_000)
    read = took(lambda: collection.classify(texts, LABELS, engine="nli", device=stage.device))
    stage.row("label by NLI", f"{len(texts) * len(LABELS) / read:,.0f} pairs/s, loading included")


def took(work: Callable[[], object]) -> float:
    """Return the seconds of one run."""
    began = perf_counter()
    work()
    return perf_counter() - began


if __name__ == "__main__":
    main()
