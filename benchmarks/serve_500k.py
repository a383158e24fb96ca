"""500,000 passages with the static model: indexing speed and memory, then hybrid queries, their recall and memory.

    python benchmarks/serve_500k.py [--rows 500000] [--dimension 384] [--collection PATH]

Three processes: one indexes (documents a second end to end, and whether memory stays flat: peak resident memory at a
tenth and at all of the rows), one answers queries: median milliseconds without the query's own encoding, recall@10 of
the vector half, as hybrid asks for it, against the exact scan, and resident memory with the default model loaded
beside it. `--dimension 384` keeps all dimensions of the static model, so that vectors are as large as the default's.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from _side_by_side import DATA, machine

from sonde.indexer.encoder import static

QUERIES = 200


def main() -> None:
    """Run the stages in processes of their own and print their figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--dimension", type=int, default=384)
    parser.add_argument("--collection", type=Path, help="an indexed collection to query, or where to make it")
    parser.add_argument("--stage", choices=("index", "query"))
    arguments = parser.parse_args()
    static.DIMENSIONS = arguments.dimension
    if arguments.stage == "index":
        index(arguments.collection, arguments.rows, arguments.dimension)
    elif arguments.stage == "query":
        query(arguments.collection)
    else:
        folder = Path(tempfile.mkdtemp())
        collection = arguments.collection or folder / "large.sonde"
        print(machine("sonde", "faiss-cpu", "tantivy", "torch"))
        if not collection.exists():
            stage("index", folder / "tenth.sonde", arguments.rows // 10, arguments.dimension)
            stage("index", collection, arguments.rows, arguments.dimension)
        stage("query", collection, arguments.rows, arguments.dimension)


def stage(name: str, collection: Path, rows: int, dimension: int) -> None:
    """Run one stage in a process of its own, so that its memory is its own."""
    command = [sys.executable, __file__, "--stage", name, "--collection", str(collection)]
    if subprocess.run([*command, "--rows", str(rows), "--dimension", str(dimension)]).returncode:
        sys.exit(1)  # the stage has said why


def peak_megabytes() -> float:
    """Peak resident memory of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def resident_megabytes() -> float:
    """Resident memory of this process now."""
    import psutil

    return psutil.Process().memory_info().rss / 1e6


def index(collection: Path, rows: int, dimension: int) -> None:
    """Index the first rows of the arXiv sentences and print the rate."""
    import pyarrow.parquet as pq

    import sonde

    source = collection.with_suffix(".parquet")
    pq.write_table(pq.read_table(DATA / "scale" / "arxiv_sentences.parquet").slice(0, rows), source)
    sonde.load_encoder("static")  # distilled once per machine, and cached
    before = peak_megabytes()
    stages: dict[str, float] = {}

    def note(event: "sonde.Progress | str") -> None:
        name = event if isinstance(event, str) else event.stage
        stages[name] = time.perf_counter()

    began = time.perf_counter()
    made = sonde.index(source, collection, settings=sonde.BuildSettings(model="static"), progress=note)
    took = time.perf_counter() - began
    embedded = stages["embedding"] - began
    print(
        f"indexed {rows:,} documents of {dimension} dimensions in {took:.1f} s: {rows / took:,.0f} documents a second"
    )
    print(
        f"  embedded and committed after {embedded:.1f} s ({rows / embedded:,.0f} a second), the rest builds the index"
    )
    print(f"  peak memory {peak_megabytes():,.0f} MB, {before:,.0f} MB before the run")
    print(f"  {json.dumps(made.info().ann)}")


def query(collection: Path) -> None:
    """Answer hybrid queries that are sentences of the corpus and print latency, recall and memory."""
    import sonde
    from sonde.indexer.ann import exact_search
    from sonde.pipelines.search.candidates import DenseSearch
    from sonde.pipelines.search.first_stage import FirstStage
    from sonde.pipelines.search.hits import build_results
    from sonde.pipelines.search.settings import DEPTH, SearchDefaults, SearchSettings

    opened = sonde.open(collection)
    sql = "SELECT text FROM documents WHERE doc % 2500 = 7"
    with opened.stored.view() as view:
        texts = [text for (text,) in view.catalog.connection.execute(sql)]
    texts = [" ".join(text.split()[:9]) for text in texts][:QUERIES]
    vectors = opened.stored.encoder.encode_texts(texts, query=True)
    with opened.stored.view() as view:
        settings = SearchSettings(k=10).resolved(SearchDefaults.in_force(view))
    times = []
    for text, vector in zip(texts, vectors, strict=True):
        began = time.perf_counter()
        with opened.stored.view() as view:
            stage_ = FirstStage.over(view, settings)
            [ranked] = stage_.run([text], vector[None])
            build_results(view, stage_, text, vector, ranked, ())
        times.append(time.perf_counter() - began)
    with opened.stored.view() as view:
        found = DenseSearch(view, None).search(vectors, settings.depth or DEPTH)
        truth, _ = exact_search(view.generation.segments, vectors, 10)
    recall = np.mean([(f.scores[:10] >= t[-1] - 1e-6).sum() / 10 for f, t in zip(found, truth, strict=True)])
    default = sonde.load_encoder()
    default.encode_texts(["the default model in memory"])
    milliseconds = np.array(times[len(times) // 10 :]) * 1e3
    print(f"hybrid query over {len(opened):,} documents, without its encoding:")
    print(f"  median {np.median(milliseconds):.1f} ms, 95th percentile {np.percentile(milliseconds, 95):.1f} ms")
    print(f"  recall@10 {recall:.4f}")
    print(f"resident memory with the default model beside it: {resident_megabytes():,.0f} MB")


if __name__ == "__main__":
    main()
