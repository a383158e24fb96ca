"""nDCG@10 and recall@100 of every search mode on cisi, cacm and lisa, from TREC run files, by ir-measures.

    python benchmarks/retrieval.py [--folder runs/] > docs/retrieval-table.md

The folder keeps the collections, and a run file for each set and mode, which any other evaluator reads.
"""

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path

import ir_measures
from _side_by_side import DATA, machine

import sonde
from sonde.pipelines.evaluate.trec import read_qrels, read_queries, run_queries

SETS = ("cisi", "cacm", "lisa")
VARIANTS = {
    "dense": sonde.SearchSettings(k=100, mode="dense"),
    "lexical": sonde.SearchSettings(k=100, mode="lexical"),
    "hybrid": sonde.SearchSettings(k=100),
    "hybrid, RRF": sonde.SearchSettings(k=100, fusion="rrf"),
}
NDCG, RECALL = ir_measures.parse_measure("nDCG@10"), ir_measures.parse_measure("R@100")


def main() -> None:
    """Index what is not indexed yet, run, and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "sonde-retrieval")
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--model", default="all-MiniLM-L6-v2")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    sets = arguments.sets.split(",")
    table = {name: dict(scores(name, arguments.folder, arguments.model)) for name in sets}
    print(f"{arguments.model}; {machine('sonde', 'ir-measures', 'tantivy', 'torch')}\n")
    print("| mode | " + " | ".join(f"{name} nDCG@10 | recall@100" for name in sets) + " |")
    print("|---|" + "---|---|" * len(sets))
    for variant in VARIANTS:
        cells = (f"{table[name][variant][0]:.3f} | {table[name][variant][1]:.3f}" for name in sets)
        print(f"| {variant} | " + " | ".join(cells) + " |")


def scores(name: str, folder: Path, model: str) -> Iterator[tuple[str, tuple[float, float]]]:
    """The measures of every variant on one set, from the run files that it writes."""
    source, collection = DATA / "retrieval" / name, folder / f"{name}.sonde"
    if not collection.exists():
        sonde.index(source / "corpus.jsonl.gz", collection, settings=sonde.BuildSettings(model=model))
    qrels = read_qrels(source / "qrels.tsv")
    queries = [(key, text) for key, text in read_queries(source / "queries.jsonl.gz") if key in qrels]
    opened = sonde.open(collection)
    for variant, settings in VARIANTS.items():
        run = folder / f"{name}-{variant.replace(', ', '-').lower()}.trec"
        run_queries(opened.stored, queries, settings, run)
        found = ir_measures.calc_aggregate([NDCG, RECALL], qrels, ir_measures.read_trec_run(str(run)))
        yield variant, (found[NDCG], found[RECALL])


if __name__ == "__main__":
    main()
