"""Hybrid search beside its two halves: nDCG@10, or P@5 by class, on thirteen sets.

    python benchmarks/fusion.py [--folder collections/] [--model static] [--sets cisi,bbc]

The folder keeps the collections.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np
from _judged_sets import SETS, JudgedSet, collection_of
from _side_by_side import machine

import sonde
from sonde.pipelines.search.results import Mode

MODES: tuple[Mode, ...] = ("dense", "lexical", "hybrid")
DISCOUNT = 1 / np.log2(np.arange(2, 12))


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "sonde-judged")
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--model", default="all-MiniLM-L6-v2")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    print(f"{given.model}; {machine('sonde', 'tantivy')}\n")
    print("| set | measure | dense | lexical | hybrid | beside the better half |\n|---|---|---|---|---|---|")
    for name in given.sets.split(","):
        judged = SETS[name]()
        collection = collection_of(name, given.folder, given.model)
        dense, lexical, hybrid = (values(collection, judged, mode).mean() for mode in MODES)
        better = max(dense, lexical)
        print(f"| {name} | {judged.measure} | {dense:.3f} | {lexical:.3f} | {hybrid:.3f} | {hybrid - better:+.3f} |")


def values(collection: sonde.Collection, judged: JudgedSet, mode: Mode) -> np.ndarray:
    """Return float64 [queries], the measure of each query."""
    found = collection.search_many(judged.queries, k=10, mode=mode, collapse=False)
    measure = precision if judged.measure == "P@5" else ndcg
    return np.array([measure([hit.id for hit in r], truth) for r, truth in zip(found, judged.truth, strict=True)])


def precision(ids: list[str], truth: dict[str, int]) -> float:
    """Return the share of the first five documents that are right."""
    return sum(truth.get(key, 0) > 0 for key in ids[:5]) / 5


def ndcg(ids: list[str], truth: dict[str, int]) -> float:
    """Return nDCG@10 with the grades as gains."""
    gains = np.array([max(truth.get(key, 0), 0) for key in ids[:10]], float)
    ideal = np.array(sorted((grade for grade in truth.values() if grade > 0), reverse=True)[:10], float)
    return float(gains @ DISCOUNT[: len(gains)] / (ideal @ DISCOUNT[: len(ideal)])) if len(ideal) else 0.0


if __name__ == "__main__":
    main()
