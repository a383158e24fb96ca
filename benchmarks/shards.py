"""A sharded collection against one collection of the same sentences: are the hits equal, and what does a query take?

usage: python benchmarks/shards.py [--sentences 20000] [--shards 4] [--queries 200] [--ann exact]
Needs ../shared/data/scale (or SONDE_DATA). Both are built with the static model, one after the other.
"""

import argparse
import os
import resource
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from sonde.app.api import Collection, index
from sonde.indexer.ann import AnnSettings
from sonde.pipelines.search.results import Results

DATA = Path(os.environ.get("SONDE_DATA", Path(__file__).parents[2] / "shared" / "data"))
WAYS: dict[str, dict[str, Any]] = {
    "dense": {"mode": "dense"},
    "lexical": {"mode": "lexical"},
    "hybrid": {},
    "filtered": {"where": "category = 'cs.CL'"},
    "reranked": {"rerank": True},
}


def sentences(count: int, to: Path) -> list[str]:
    """Write the first `count` sentences to a file, and return others as queries."""
    rows = pq.read_table(DATA / "scale" / "arxiv_sentences.parquet")
    pq.write_table(rows.slice(0, count), to)
    texts = rows.column("text").slice(rows.num_rows - 20_000).to_pylist()
    chance = np.random.default_rng(0)
    return [" ".join(text.split()[:8]) for text in chance.choice(np.array(texts, object), 1_000, replace=False)]


def built(source: Path, to: Path, shards: int | None, ann: str) -> tuple[Collection, float, float]:
    """Return a collection, the seconds that building it took, and those of the processors."""
    began, cpu = time.perf_counter(), _cpu()
    made = index(source, to, model="static", shards=shards, ann=AnnSettings(kind=ann))  # type: ignore[arg-type]
    return made, time.perf_counter() - began, _cpu() - cpu


def _cpu() -> float:
    parts = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(part.ru_utime + part.ru_stime for part in parts)


def told(results: Results) -> list[tuple[str, float, float | None]]:
    """Return ids, scores and BM25 scores."""
    return [(hit.id, hit.score, hit.scores.lexical) for hit in results]


def compare(one: Collection, sharded: Collection, queries: list[str]) -> None:
    """Print for how many queries ids and scores are equal, and the greatest difference of a score."""
    for name, way in WAYS.items():
        pairs = [(told(one.search(query, **way)), told(sharded.search(query, **way))) for query in queries]
        ids = sum([hit[0] for hit in a] == [hit[0] for hit in b] for a, b in pairs)
        exact = sum(a == b for a, b in pairs)
        off = max((abs(x[1] - y[1]) for a, b in pairs for x, y in zip(a, b, strict=False)), default=0.0)
        total = len(pairs)
        print(f"{name:<9} ids equal {ids}/{total}, ids and scores equal {exact}/{total}, greatest difference {off:.1e}")


def timed(collection: Collection, queries: list[str], way: dict[str, Any]) -> float:
    """Return the median milliseconds of a query."""
    taken = []
    for query in queries:
        began = time.perf_counter()
        collection.search(query, **way)
        taken.append((time.perf_counter() - began) * 1_000)
    return statistics.median(taken)


def main() -> None:
    """Build, compare and time."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sentences", type=int, default=20_000)
    parser.add_argument("--shards", type=int, default=4)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--ann", default="exact")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "sentences.parquet"
        queries = sentences(given.sentences, source)[: given.queries]
        sharded, seconds, cpu = built(source, Path(folder) / "sharded.sonde", given.shards, given.ann)
        print(f"{given.shards} shards: built in {seconds:.1f} s, {cpu:.1f} s of processors")
        one, seconds, cpu = built(source, Path(folder) / "one.sonde", None, given.ann)
        print(f"one collection: built in {seconds:.1f} s, {cpu:.1f} s of processors", flush=True)
        compare(one, sharded, queries)
        for name in ("hybrid", "dense", "filtered"):
            # Alternating, so that what else the machine does falls on both.
            rounds = [[timed(each, queries, WAYS[name]) for each in (one, sharded)] for _ in range(3)]
            alone, apart = (min(each) for each in zip(*rounds, strict=True))
            print(
                f"{name}: median {alone:.1f} ms in one collection, {apart:.1f} ms in shards: {apart / alone:.2f} times"
            )


if __name__ == "__main__":
    main()
