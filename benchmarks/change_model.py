"""Another model for a collection: both models on a set's judgements and on made queries, and what the change takes.

    python benchmarks/change_model.py [--sets cisi,cacm,lisa] [--models static,all-MiniLM-L6-v2]

The collection begins with the first model and gets the second one, without judgements first, then with them. The lock
is what other writers wait for: from the moment that nothing is left to embed to the end of the switch.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from _judged_sets import SETS, JudgedSet
from _side_by_side import machine

import sonde
from sonde.indexer.encoder import load_encoder
from sonde.indexer.upkeep.model import changing, embed_beside, switch
from sonde.pipelines.evaluate.judgements import LONGEST
from sonde.pipelines.tune.change import ModelChange


def main() -> None:
    """Print one Markdown table for the comparisons and one for the times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default="cisi,cacm,lisa")
    parser.add_argument("--models", default="static,all-MiniLM-L6-v2")
    given = parser.parse_args()
    first, second = given.models.split(",")
    print(f"{first} to {second}; {machine('sonde', 'onnxruntime')}\n")
    print(
        "| set | compared on | search | before | after | 95 % interval | p (nDCG@10) |\n|---|---|---|---|---|---|---|",
        flush=True,
    )
    times = []
    with tempfile.TemporaryDirectory() as name:
        for each in given.sets.split(","):
            times.append(measured(each, Path(name) / f"{each}.sonde", first, second))
    print("\n| set | passages | embed | switch, with the lock | undo | a search after it |\n|---|---|---|---|---|---|")
    print("\n".join(times))


def measured(name: str, folder: Path, first: str, second: str) -> str:
    """Change the model of a set's collection and go back; print the comparisons and return the row of times."""
    judged = SETS[name]()
    collection = sonde.index(judged.rows, folder, text="text", title="title", id="id", model=first)
    encoder = load_encoder(second)
    began = time.perf_counter()
    with changing(folder):
        beside = embed_beside(collection.stored, encoder)
    embedding = time.perf_counter() - began
    show(name, collection.change_model(second, dry_run=True))
    judge(collection, judged)
    show(name, collection.change_model(second, dry_run=True))
    with changing(folder):
        began = time.perf_counter()
        switch(collection.stored, beside.folder, lambda: encoder)
        switching = time.perf_counter() - began
    collection.stored.use(encoder)
    searched = timed(lambda: collection.search("information retrieval"))
    undoing = timed(collection.undo_model)
    assert (collection.model, collection.verify()) == (first, [])
    seconds = f"{embedding:.1f} s | {switching:.2f} s | {undoing:.2f} s | {searched * 1000:.0f} ms"
    return f"| {name} | {beside.embedded:,} | {seconds} |"


def judge(collection: sonde.Collection, judged: JudgedSet) -> None:
    """Store the set's judgements in the collection."""
    for query, truth in zip(judged.queries, judged.truth, strict=True):
        right = [key for key, grade in truth.items() if grade > 0]
        if right and len(query) <= LONGEST:
            collection.judge(query, right)


def show(name: str, found: ModelChange) -> None:
    """Print the rows of one comparison."""
    compared = found.comparison
    assert compared is not None
    for gain in compared.gains:
        if gain.measure == "ndcg@10":
            interval = f"{gain.low:+.3f} to {gain.high:+.3f}"
            row = f"{gain.mode} | {gain.before:.3f} | {gain.after:.3f} | {interval} | {gain.p:.4f}"
            print(f"| {name} | {compared.source} | {row} |", flush=True)
    for side in (compared.before, compared.after):
        print(f"<!-- {side.model}: {side.per_second:,.0f} passages a second, {side.bytes:,} bytes -->", flush=True)


def timed(work: Callable[[], object]) -> float:
    """Return the seconds that a call takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
