"""The late index against embedding passages again: nDCG@10, bytes a passage, milliseconds, and time to build it.

    python benchmarks/late_index.py [--folder runs/] [--sets cisi,cacm,lisa,squad] [--only quality speed build]

The folder keeps the collections; a set is indexed once, and its late index built on a copy.
"""

import argparse
import shutil
import statistics
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
from _judged_sets import SETS, collection_of
from _side_by_side import in_turn, machine, spread

import sonde
from sonde.indexer.encoder import Encoder
from sonde.pipelines.evaluate.search import evaluate_search
from sonde.pipelines.search.first_stage import FirstStage
from sonde.pipelines.search.rerank import late as late_module
from sonde.pipelines.search.rerank.late import LateInteraction, rarity
from sonde.pipelines.search.rerank.stage import StoredPassages

DEPTH, TIMED, EMBEDDED, RUNS = 50, 40, 200, 3
RERANK = sonde.SearchSettings(rerank=True)


def main() -> None:
    """Measure and print Markdown tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "sonde-retrieval")
    parser.add_argument("--sets", default="cisi,cacm,lisa,squad")
    parser.add_argument("--only", nargs="*", default=["quality", "speed", "build"])
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    print(machine("sonde", "numpy", "scipy", "onnxruntime"), flush=True)
    for part in arguments.only:
        PARTS[part](arguments.sets.split(","), arguments.folder)


def with_late(name: str, folder: Path) -> sonde.Collection:
    """Return the collection of a set with a late index."""
    path = folder / f"{name}-late.sonde"
    if not path.exists():
        shutil.copytree(collection_of(name, folder).path, path)
    collection = sonde.open(path)
    collection.late()
    return collection


def quality(sets: list[str], folder: Path) -> None:
    """Print nDCG@10 of both, and the size of the index."""
    late_module.CACHE.largest = 1_000_000_000  # each passage is embedded once for all queries
    print("\n| set | queries | embedded again | late index | difference | bytes a passage |\n|---|---|---|---|---|---|")
    for name in sets:
        judged = SETS[name]()
        queries = [(str(number), text) for number, text in enumerate(judged.queries)]
        truth = {str(number): grades for number, grades in enumerate(judged.truth)}
        found = []
        for collection in (collection_of(name, folder), with_late(name, folder)):
            [result] = evaluate_search(collection.stored, queries, truth, [("rerank", RERANK)])
            found.append(result.measures["ndcg@10"])
        late = with_late(name, folder).info().late
        assert late is not None and late["covered"] == late["passages"]
        line = [name, len(queries), *(f"{value:.4f}" for value in found), f"{found[1] - found[0]:+.4f}"]
        print(f"| {' | '.join(map(str, line))} | {late['bytes_per_passage']:,} |", flush=True)


def speed(sets: list[str], folder: Path) -> None:
    """Print the milliseconds that 50 documents take besides the query's encoding, and how many the processor worked."""
    print("\n| set | late index, ms | late index, processor | cache, ms | embedded again, ms |\n|---|---|---|---|---|")
    for name in sets:
        queries = SETS[name]().queries[:TIMED]
        late_module.CACHE.largest = 1_000_000_000
        indexed, plain = timed(with_late(name, folder), queries), collection_of(name, folder)
        again = timed(plain, queries[:4], fresh=True)
        columns = (*indexed, timed(plain, queries[:4])[0], again[0])
        print(f"| {name} | {' | '.join(spread(each) for each in columns)} |", flush=True)


def timed(collection: sonde.Collection, queries: list[str], fresh: bool = False) -> tuple[list[float], list[float]]:
    """Return for each query the milliseconds of scoring its best documents: elapsed, and of the processor.

    They are scored twice, and the second time counts. With `fresh`, no passage is in the cache.
    """
    encoder, elapsed, worked = collection.stored.encoder, [], []
    with collection.stored.view() as view:
        reranker = LateInteraction(encoder, rarity(view, encoder))
        vectors = encoder.encode_texts(queries, query=True)
        ranked = FirstStage.over(view, RERANK).run(queries, vectors)
        for query, found in zip(queries, ranked, strict=True):
            passages = StoredPassages(view, found.rows[:DEPTH])
            [asked] = encoder.token_vectors(encoder.tokenize([query], query=True))
            if fresh:
                late_module.CACHE = late_module.TokenCache(late_module.CACHE.largest)
            else:
                reranker.score_stored(query, asked, passages)
            began, before = time.perf_counter(), time.process_time()
            reranker.score_stored(query, asked, passages)
            elapsed.append((time.perf_counter() - began) * 1_000)
            worked.append((time.process_time() - before) * 1_000)
    return elapsed, worked


def build(sets: list[str], folder: Path) -> None:
    """Print how much longer an index run takes that also builds the late index."""
    print("\n| set | documents | without, s | with, s | times as long |\n|---|---|---|---|---|")
    for name in sets:
        rows = SETS[name]().rows
        rows = [rows[place] for place in np.linspace(0, len(rows) - 1, min(EMBEDDED, len(rows))).astype(int)]
        encoder = collection_of(name, folder).stored.encoder
        encoder.encode_texts([row["text"] for row in rows[:20]])
        with tempfile.TemporaryDirectory() as place:
            given = (rows, encoder, Path(place))
            pairs = in_turn(RUNS, partial(indexed, *given, True), partial(indexed, *given, False))
        ratios = [ours / theirs for ours, theirs in pairs]
        with_it, without = (statistics.median(column) for column in zip(*pairs, strict=True))
        print(f"| {name} | {len(rows)} | {without:.1f} | {with_it:.1f} | {spread(ratios)} |", flush=True)


def indexed(rows: list[dict[str, str]], encoder: Encoder, folder: Path, late: bool) -> float:
    """Return the seconds of one index run into a new collection."""
    to = folder / f"{time.monotonic_ns()}.sonde"
    began = time.perf_counter()
    sonde.index(rows, to, encoder=encoder, late=late)
    return time.perf_counter() - began


PARTS = {"quality": quality, "speed": speed, "build": build}

if __name__ == "__main__":
    main()
