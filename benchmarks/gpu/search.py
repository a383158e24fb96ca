"""Queries over the indexed passages, and FAISS alone on the same card and vectors."""

import statistics
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import faiss
import numpy as np
from _stage import Stage, passages

import sonde

QUERIES = 100


def main() -> None:
    """Measure queries."""
    stage = Stage.of("search")
    collection = sonde.open(stage.collection, device=stage.device)
    queries = [" ".join(text.split()[:8]) for text in passages(5 if stage.tiny else QUERIES)]
    alone = median(queries, lambda query: collection.embed([query], query=True))
    stage.row("embed a query", f"{alone:.2f} ms")
    index = flat(vectors(stage.collection), stage.device)
    embedded = collection.embed(queries, query=True).astype(np.float32)
    raw = median(list(embedded), lambda vector: index.search(vector[None], 10))
    for mode in ("dense", "hybrid"):
        took = median(queries, partial(collection.search, k=10, mode=mode))
        stage.row(f"{mode} query, embedding included", f"{took:.2f} ms", beside=f"raw FAISS, exact: {raw:.2f} ms")
    began = perf_counter()
    found = index.search(embedded, 10)[1]
    stage.row("raw FAISS, all queries at once", "", beside=f"{len(queries) / (perf_counter() - began):,.0f} queries/s")
    stage.row("top tens in common with FAISS's exact scan", f"{agreement(collection, queries, found):.3f}", goal="0.98")


def median(queries: list[Any], ask: Callable[[Any], object]) -> float:
    """Return the milliseconds of the middle query, after one round that does not count."""
    times = []
    for number, query in enumerate(queries * 2):
        began = perf_counter()
        ask(query)
        if number >= len(queries):
            times.append(perf_counter() - began)
    return 1e3 * statistics.median(times)


def vectors(collection: Path) -> np.ndarray:
    """Return all stored vectors, float32, by row."""
    files = sorted((collection / "vectors").glob("*.npy"))
    return np.concatenate([np.load(file) for file in files]).astype(np.float32)


def flat(stored: np.ndarray, device: str) -> Any:
    """Return FAISS's exact index, on the card if it is there."""
    index: Any = faiss.IndexFlatIP(stored.shape[1])
    if device == "cuda":
        index = faiss.index_cpu_to_gpu(faiss.StandardGpuResources(), 0, index)
    index.add(stored)
    return index


def agreement(collection: sonde.Collection, queries: list[str], found: np.ndarray) -> float:
    """Return the mean share of common passages; a passage's id is its row."""
    ours = [{hit.id for hit in collection.search(query, k=10, mode="dense")} for query in queries]
    return statistics.mean(
        len(mine & {str(row) for row in rows.tolist()}) / 10 for mine, rows in zip(ours, found, strict=True)
    )


if __name__ == "__main__":
    main()
