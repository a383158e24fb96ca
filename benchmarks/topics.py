"""Topics beside BERTopic at its defaults, given the same vectors: NMI over all documents, outliers, seconds.

    python benchmarks/topics.py [--folder collections/] [--sets bbc,stackoverflow] [--peer-runs 1]

Both sides are warmed up on a few texts first, so that Numba's compilation is not timed.
The folder keeps the collections.
"Sonde" is the whole of `make_topics`: reading the vectors, fitting, naming with the model, writing the run.
"""

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from _side_by_side import DATA, machine

import sonde
from sonde.indexer.document_vectors import document_vectors
from sonde.indexer.runs import assignments_of, find_run
from sonde.pipelines.cluster.corpus import texts_of
from sonde.pipelines.topics import TopicSettings, make_topics
from sonde.pipelines.topics.library import bertopic

SETS = {
    "bbc": (["bbc.jsonl.gz"], "label"),
    "newsgroups20": (["newsgroups20.jsonl.gz"], "label"),
    "stackoverflow": (["stackoverflow.jsonl.gz"], "label"),
    "banking77": (["banking77_train.csv", "banking77_test.csv"], "category"),
    "trec6": (["trec6.jsonl.gz"], "coarse"),
}
WARM_UP = 400


def main() -> None:
    """Index what is not indexed yet, run, and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "sonde-topics")
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--peer-runs", type=int, default=1, help="BERTopic is not seeded: the mean of so many")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    print(f"{machine('sonde', 'bertopic', 'umap-learn', 'hdbscan')}\n")
    print("| set | texts | who | NMI | topics | outliers | seconds |\n|---|---|---|---|---|---|---|")
    for name in arguments.sets.split(","):
        collection = indexed(name, arguments.folder)
        texts, vectors, truth = read(collection, SETS[name][1])
        some = np.linspace(0, len(texts) - 1, WARM_UP).astype(int)
        peer([texts[place] for place in some], vectors[some])
        for outliers in ("nearest", "keep"):
            labels, seconds = ours(collection, outliers)
            print(row(name, f"Sonde, outliers {outliers}", truth, labels, seconds), flush=True)
        runs = [peer(texts, vectors) for _ in range(arguments.peer_runs)]
        for number, (labels, seconds) in enumerate(runs, 1):
            print(row(name, f"BERTopic {number}", truth, labels, seconds), flush=True)


def indexed(name: str, folder: Path) -> sonde.Collection:
    """The collection of a set, made if it is not there."""
    path = folder / f"{name}.sonde"
    if not path.exists():
        sources = [str(DATA / "topics" / file) for file in SETS[name][0]]
        sonde.index(sources if len(sources) > 1 else sources[0], path)
    return sonde.open(path)


def read(collection: sonde.Collection, column: str) -> tuple[list[str], np.ndarray, list[str]]:
    """Texts, vectors and true classes of all documents."""
    with collection.view() as view:
        docs = np.array([doc for (doc,) in view.catalog.connection.execute("SELECT doc FROM documents ORDER BY doc")])
        metadata = view.catalog.metadata(docs.tolist())
        truth = [str(metadata[doc][column]) for doc in docs.tolist()]
        return texts_of(view, docs), document_vectors(view, docs), truth


def ours(collection: sonde.Collection, outliers: Any) -> tuple[np.ndarray, float]:
    """Our topics and the seconds they took."""
    began = perf_counter()
    make_topics(collection, TopicSettings(outliers=outliers), f"benchmark {outliers}", replace=True)
    seconds = perf_counter() - began
    with collection.view() as view:
        return assignments_of(view.catalog, find_run(view.catalog, "topic", f"benchmark {outliers}"))[1], seconds


def peer(texts: list[str], vectors: np.ndarray) -> tuple[np.ndarray, float]:
    """BERTopic's topics at its defaults and the seconds they took."""
    module = bertopic()
    began = perf_counter()
    labels, _ = module.BERTopic().fit_transform(texts, vectors)
    return np.array(labels), perf_counter() - began


def row(name: str, who: str, truth: Sequence[str], labels: np.ndarray, seconds: float) -> str:
    """A line of the table; outliers count as one more topic for NMI."""
    from sklearn.metrics import normalized_mutual_info_score

    score, count = normalized_mutual_info_score(truth, labels), len(np.unique(labels[labels >= 0]))
    share = f"{np.mean(labels < 0):.1%}"
    return f"| {name} | {len(labels):,} | {who} | {score:.3f} | {count} | {share} | {seconds:.1f} |"


if __name__ == "__main__":
    main()
