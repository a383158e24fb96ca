"""500,000 passages with the static model: topics, the map and KMeans, their time and peak memory.

    python benchmarks/clusters_500k.py [--rows 500000] [--collection PATH] [--stages topics,map,kmeans]

Each stage runs in a process of its own, so that its peak resident memory is its own. The time is all of the stage:
reading the vectors, fitting, assigning, naming, and writing the run. `--collection` is made if it is not there.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

from _side_by_side import DATA, machine

import sonde
from sonde.indexer.progress import Progress

STAGES = ("topics", "map", "kmeans")


def main() -> None:
    """Run the stages and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument(
        "--collection", type=Path, default=Path(tempfile.gettempdir()) / "sonde-clusters" / "large.sonde"
    )
    parser.add_argument("--stages", default=",".join(STAGES))
    parser.add_argument("--stage", choices=("index", *STAGES), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.stage:
        RUN[arguments.stage](arguments.collection)
        return
    print(f"{machine('sonde', 'bertopic', 'umap-learn', 'hdbscan', 'faiss-cpu')}\n", flush=True)
    if not arguments.collection.exists():
        make_source(arguments.collection, arguments.rows)
        run_stage("index", arguments.collection)
    print("| stage | documents | fitted | assigned | found | seconds | peak memory |\n|---|---|---|---|---|---|---|")
    for stage in arguments.stages.split(","):
        run_stage(stage, arguments.collection)


def make_source(collection: Path, rows: int) -> None:
    """Write the first rows of the arXiv sentences beside the collection."""
    import pyarrow.parquet as pq

    collection.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(
        pq.read_table(DATA / "scale" / "arxiv_sentences.parquet").slice(0, rows), collection.with_suffix(".parquet")
    )


def run_stage(stage: str, collection: Path) -> None:
    """Run one stage in a process of its own."""
    sys.stdout.flush()
    if subprocess.run([sys.executable, __file__, "--stage", stage, "--collection", str(collection)]).returncode:
        sys.exit(1)  # the stage has said why


def index(collection: Path) -> None:
    """Index the rows with the static model."""
    began = perf_counter()
    source = collection.with_suffix(".parquet")
    made = sonde.index(source, collection, settings=sonde.BuildSettings(model="static"))
    print(f"indexed {len(made):,} documents in {perf_counter() - began:.1f} s\n", flush=True)


def topics(collection: Path) -> None:
    """Find topics at the defaults."""
    began = perf_counter()
    found = sonde.open(collection).topics("benchmark", replace=True, progress=Trace(began))
    say("topics", found.run.report, f"{len(found)} topics", began)


def map_(collection: Path) -> None:
    """Make a map at the defaults."""
    began = perf_counter()
    found = sonde.open(collection).map("benchmark", replace=True, progress=Trace(began))
    say("map", found.run.report, f"{len(found.regions)} regions", began)


def kmeans(collection: Path) -> None:
    """Cluster by KMeans, k chosen."""
    began = perf_counter()
    found = sonde.open(collection).cluster("benchmark", replace=True, progress=Trace(began))
    say("kmeans", found.report, f"{found.report['clusters']} clusters", began)


def say(stage: str, report: object, found: str, began: float) -> None:
    """Print a line of the table."""
    assert isinstance(report, dict)
    fitted, carried = (f"{report[key]:,}" if key in report else "" for key in ("fitted", "carried"))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    seconds = perf_counter() - began
    print(f"| {stage} | {report['documents']:,} | {fitted} | {carried} | {found} | {seconds:.0f} | {peak:.2f} GiB |")


class Trace:
    """Writes to stderr when each part of a stage begins and ends, with the memory it has taken so far."""

    def __init__(self, began: float) -> None:
        self.began = began
        self.last = ""

    def __call__(self, event: Progress | str) -> None:
        """Note an event: sentences, and the first and last of each kind of progress."""
        done = isinstance(event, Progress) and event.done == event.total
        name = event.stage if isinstance(event, Progress) else event
        if name != self.last or done:
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
            line = {"seconds": round(perf_counter() - self.began, 1), "peak GiB": round(peak, 2), "at": name}
            print(json.dumps(line | ({"done": True} if done else {})), file=sys.stderr, flush=True)
        self.last = name


RUN = {"index": index, "topics": topics, "map": map_, "kmeans": kmeans}

if __name__ == "__main__":
    main()
