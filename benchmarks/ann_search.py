"""Kinds of vector index side by side with raw FAISS: build time, size, latency, recall@10.

    python benchmarks/ann_search.py --rows 200000                     embeds arXiv sentences with the static model
    python benchmarks/ann_search.py --vectors vectors.npy             any float16 or float32 matrix of unit vectors

The queries are vectors of the same set that no index holds. Latency is the median of single searches for 10, one after
the other; Sonde's includes the rescoring from the float16 vectors. Recall is against the exact scan.
"""

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from _side_by_side import DATA, beside, in_turn, machine, times_as_fast

from sonde.indexer.ann import AnnSettings, ArraySource, build, exact_search
from sonde.indexer.ann.devices import faiss as faiss_module

faiss = faiss_module()

QUERIES = 300
K = 10
FLAT, HNSW, EQUAL = "FAISS IndexFlatIP", "FAISS IndexHNSWFlat", "FAISS IndexHNSWFlat at the same efSearch"
PEERS = (("exact", FLAT), ("hnsw", HNSW), ("hnsw", EQUAL))
"""What each kind of index is beside in `make bench`: the same structure, as FAISS sets it and as deep."""
Search = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


def main() -> None:
    """Measure and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--vectors", type=Path, help="a .npy matrix to use instead of embedding")
    parser.add_argument("--kinds", default="exact,hnsw,hnsw-sq8,ivf,ivf-sq8,ivf-fastscan,ivf-rabitq")
    parser.add_argument("--target", type=float, default=0.98)
    parser.add_argument("--runs", type=int, default=5, help="passes over the queries beside raw FAISS, in turn")
    arguments = parser.parse_args()
    half = load_vectors(arguments.vectors, arguments.rows)
    source, queries = ArraySource(half[:-QUERIES]), half[-QUERIES:].astype(np.float32)
    truth = exact_search(source, queries, K)[0][:, -1:]
    where = f"{machine('faiss-cpu', 'numpy')}, {faiss.omp_get_max_threads()} threads"
    print(f"{len(source):,} vectors of {source.dimension} dimensions, {QUERIES} queries; {where}\n")
    print("| index | build s | MB | median ms | recall@10 | parameters |\n|---|---|---|---|---|---|")
    searches: dict[str, Search] = {}
    recalls: dict[str, float] = {}
    raw = raw_faiss(source.dimension)
    costs = {name: timed_fill(index, source) for name, index in raw.items()}
    for name, index in raw.items():
        searches[name] = lambda q, index=index: index.search(q, K)
        recalls[name] = report(name, *costs[name], searches[name], queries, truth)
    for kind in arguments.kinds.split(","):
        start = perf_counter()
        ours = build(source, AnnSettings(kind=kind, target_recall=arguments.target))
        seconds = perf_counter() - start
        with tempfile.TemporaryDirectory() as folder:
            size = ours.save(Path(folder)).bytes
        tuned = ", ".join(f"{name} {value}" for name, value in ours.info.parameters.items())
        searches[kind] = lambda q, ours=ours: ours.search(q, K, vectors=source)
        recalls[kind] = report(f"Sonde {kind}", seconds, size, searches[kind], queries, truth, tuned)
        if kind == "hnsw":
            deep = faiss.SearchParametersHNSW(efSearch=ours.info.parameters["efSearch"])
            searches[EQUAL] = lambda q, deep=deep: raw[HNSW].search(q, K, params=deep)
            recalls[EQUAL] = report(EQUAL, *costs[HNSW], searches[EQUAL], queries, truth)
    for kind, peer in PEERS:
        if kind in searches:
            pairs = in_turn(
                arguments.runs,
                lambda kind=kind: measured(searches[kind], queries)[0],
                lambda peer=peer: measured(searches[peer], queries)[0],
            )
            outputs = f"recall@10 {recalls[kind]:.3f} to {recalls[peer]:.3f}"
            beside(f"search vectors, {kind}", peer, times_as_fast(pairs), outputs)


def raw_faiss(dimension: int) -> dict[str, Any]:
    """What one would write without Sonde: 32 links, efSearch as FAISS has it."""
    metric = faiss.METRIC_INNER_PRODUCT
    return {
        FLAT: faiss.IndexFlatIP(dimension),
        HNSW: faiss.IndexHNSWFlat(dimension, 32, metric),
    }


def timed_fill(index: Any, source: ArraySource) -> tuple[float, int]:
    """Seconds to add all vectors, and bytes of the serialised index."""
    start = perf_counter()
    for _, vectors in source.chunks(50_000):
        index.add(vectors)
    seconds = perf_counter() - start
    with tempfile.NamedTemporaryFile() as file:
        faiss.write_index(index, file.name)
        return seconds, Path(file.name).stat().st_size


def report(
    name: str, seconds: float, size: int, search: Search, queries: np.ndarray, truth: np.ndarray, tuned: str = ""
) -> float:
    """Print one row of the table and return recall@10."""
    milliseconds, scores = measured(search, queries)
    recall = float((scores >= truth - 1e-6).mean())
    print(f"| {name} | {seconds:.1f} | {size / 1e6:.0f} | {milliseconds:.2f} | {recall:.3f} | {tuned} |", flush=True)
    return recall


def measured(search: Search, queries: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the median milliseconds of a query, and the scores [queries, K] of all."""
    times = []
    scores = np.empty((len(queries), K), dtype=np.float32)
    for place, query in enumerate(queries):
        start = perf_counter()
        scores[place] = search(query[None])[0][0]
        times.append(perf_counter() - start)
    return 1000 * float(np.median(times)), scores


def load_vectors(path: Path | None, rows: int) -> np.ndarray:
    """The matrix in `path`, or arXiv sentences embedded with the static model, as float16."""
    if path is not None:
        return np.load(path, mmap_mode="r")[:rows].astype(np.float16)
    import pyarrow.parquet as pq

    from sonde.indexer.encoder import load_encoder

    texts = pq.read_table(DATA / "scale" / "arxiv_sentences.parquet", columns=["text"])["text"].slice(0, rows)
    encoder = load_encoder("static", device="cpu")
    blocks = [
        encoder.encode_texts(texts.slice(start, 10_000).to_pylist()).astype(np.float16)
        for start in range(0, len(texts), 10_000)
    ]
    return np.concatenate(blocks)


if __name__ == "__main__":
    main()
