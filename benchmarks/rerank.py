"""nDCG@10 of the hybrid search and of its reranking on cisi, cacm and lisa, for several depths.

    python benchmarks/rerank.py [--folder runs/] [--depths 20,30,50,100] [--model late]

The folder keeps the collections; it may be that of `benchmarks/retrieval.py`.
"""

import argparse
import tempfile
from dataclasses import replace
from pathlib import Path

from _side_by_side import DATA, machine

import sonde
from sonde.pipelines.evaluate.search import evaluate_search
from sonde.pipelines.evaluate.trec import read_qrels, read_queries

SETS = ("cisi", "cacm", "lisa")


def main() -> None:
    """Index what is not indexed yet, measure, and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "sonde-retrieval")
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--depths", default="20,30,50,100")
    parser.add_argument("--model", help="the second stage: late, a folder, or a hub name")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    sets = arguments.sets.split(",")
    plain = sonde.SearchSettings()
    reranked = replace(plain, rerank=True, rerank_model=arguments.model)
    variants = [("hybrid", plain)]
    variants += [(f"depth {n}", replace(reranked, rerank_depth=int(n))) for n in arguments.depths.split(",")]
    table = {name: measured(name, arguments.folder, variants) for name in sets}
    print(f"{arguments.model or 'the default'}; {machine('sonde', 'ir-measures', 'torch')}\n")
    print(f"| second stage | {' | '.join(sets)} | mean |")
    print("|---|" + "---|" * (len(sets) + 1))
    for variant, _ in variants:
        row = [table[name][variant] for name in sets]
        print(f"| {variant} | {' | '.join(f'{value:.3f}' for value in [*row, sum(row) / len(row)])} |")


def measured(name: str, folder: Path, variants: list[tuple[str, sonde.SearchSettings]]) -> dict[str, float]:
    """Return nDCG@10 of every variant on one set."""
    source, collection = DATA / "retrieval" / name, folder / f"{name}.sonde"
    if not collection.exists():
        sonde.index(source / "corpus.jsonl.gz", collection)
    queries, qrels = read_queries(source / "queries.jsonl.gz"), read_qrels(source / "qrels.tsv")
    found = evaluate_search(sonde.open(collection).stored, queries, qrels, variants)
    return {quality.mode: quality.measures["ndcg@10"] for quality in found}


if __name__ == "__main__":
    main()
