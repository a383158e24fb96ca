"""Clusters and topics beside BERTopic at its defaults, given the same vectors and texts, against true classes.

    python benchmarks/clusters.py [--folder collections/] [--sets bbc,trec6] [--who topics,bertopic] [--runs 5]

The folder keeps the collections. The set newsgroups20 is run only when it is named: its long texts take half an hour to
index on two cores. Both sides are warmed up first, so that Numba's compilation is not timed; topics and
BERTopic are run in turn, `--runs` times. Our seconds are those of the whole command: reading the vectors, fitting,
describing or naming (with the model, for topics), writing the run; stability is not measured. Outliers count as one
more cluster.
"""

import argparse
import tempfile
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from _side_by_side import DATA, beside, machine, spread, times_as_fast

import sonde
from sonde.indexer.store.runs import assignments_of, find_run
from sonde.indexer.store.view import document_vectors
from sonde.pipelines.analysis.corpus import texts_of
from sonde.pipelines.analysis.statistics import agreement
from sonde.pipelines.topics.adapter import bertopic

SETS = {
    "bbc": (["bbc.jsonl.gz"], "label"),
    "newsgroups20": (["newsgroups20.jsonl.gz"], "label"),
    "stackoverflow": (["stackoverflow.jsonl.gz"], "label"),
    "banking77": (["banking77_train.csv", "banking77_test.csv"], "category"),
    "trec6": (["trec6.jsonl.gz"], "coarse"),
}
SHORT = ("bbc", "stackoverflow", "banking77", "trec6")
"""The sets that are run unless others are named."""
WARM_UP = (400, 5_000)
"""From 4,096 texts on, UMAP looks for neighbours in another way, which takes Numba some twenty seconds to compile."""
REPEATED = {"topics", "bertopic"}
"""Run several times: BERTopic is not seeded."""
Found = tuple[np.ndarray, float]
"""Labels int64 [n], -1 for outliers, and seconds."""


def main() -> None:
    """Index what is not indexed yet, run, and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "sonde-clusters")
    parser.add_argument("--sets", default=",".join(SHORT), help=", ".join(SETS))
    parser.add_argument("--who", default=",".join([*OURS, "bertopic"]), help=", ".join([*OURS, "bertopic"]))
    parser.add_argument("--runs", type=int, default=5, help="of the topics and of BERTopic, in turn")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    print(f"{machine('sonde', 'bertopic', 'umap-learn', 'hdbscan')}\n")
    print("| set | texts | who | NMI | ARI | purity | clusters | outliers | seconds |\n" + 9 * "|---" + "|")
    sets = arguments.sets.split(",")
    warm_up(sets[0], indexed(sets[0], arguments.folder))
    for name in sets:
        one_set(name, indexed(name, arguments.folder), arguments.who.split(","), arguments.runs)


def warm_up(name: str, collection: sonde.Collection) -> None:
    """Let Numba compile what either side needs, for few texts and for many, and load the model."""
    texts, vectors, classes = read(collection, SETS[name][1])
    for count in WARM_UP:
        some = np.arange(count) % len(texts)
        peer([texts[place] for place in some], vectors[some])
    OURS["topics"](collection, len(np.unique(classes)))


def one_set(name: str, collection: sonde.Collection, asked: list[str], runs: int) -> None:
    """Print the lines of one set."""
    texts, vectors, classes = read(collection, SETS[name][1])
    measured: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for number in range(runs):
        for who in asked if number == 0 else [who for who in asked if who in REPEATED]:
            ours = OURS.get(who)
            found = ours(collection, len(np.unique(classes))) if ours else peer(texts, vectors)
            again = f" {number + 1}" if number else ""
            print(row(name, f"{who}{again}", classes, *found), flush=True)
            measured[who].append((agreement(classes, found[0])["nmi"], found[1]))
    pairs = list(zip(measured["topics"], measured["bertopic"], strict=False))
    if pairs:
        faster = times_as_fast([(ours, theirs) for (_, ours), (_, theirs) in pairs])
        ours, theirs = (spread([pair[side][0] for pair in pairs]) for side in (0, 1))
        beside(f"topics of {name}", "BERTopic", faster, f"NMI {ours} against {theirs}")


def indexed(name: str, folder: Path) -> sonde.Collection:
    """The collection of a set, made if it is not there."""
    path = folder / f"{name}.sonde"
    if not path.exists():
        sources = [DATA / "topics" / file for file in SETS[name][0]]
        sonde.index(sources if len(sources) > 1 else sources[0], path)
    return sonde.open(path)


def read(collection: sonde.Collection, column: str) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Texts, vectors and true classes of all documents."""
    with collection.stored.view() as view:
        docs = np.array([doc for (doc,) in view.catalog.connection.execute("SELECT doc FROM documents ORDER BY doc")])
        metadata = view.catalog.metadata(docs.tolist())
        truth = np.unique([str(metadata[doc][column]) for doc in docs.tolist()], return_inverse=True)[1]
        return texts_of(view, docs), document_vectors(view, docs), truth


def clusters(**settings: Any) -> Callable[[sonde.Collection, int], Found]:
    """What clusters with these settings; `k="true"` stands for the number of classes."""

    def run(collection: sonde.Collection, classes: int) -> Found:
        chosen: dict[str, Any] = settings | ({"k": classes} if settings.get("k") == "true" else {})
        began = perf_counter()
        collection.cluster("benchmark", replace=True, refits=0, **chosen)
        return labels_of(collection, "cluster", perf_counter() - began)

    return run


def topics(**settings: Any) -> Callable[[sonde.Collection, int], Found]:
    """What finds topics with these settings, from nothing."""

    def run(collection: sonde.Collection, classes: int) -> Found:
        forget(collection)
        began = perf_counter()
        collection.topics("benchmark", **settings)
        return labels_of(collection, "topic", perf_counter() - began)

    return run


def forget(collection: sonde.Collection) -> None:
    """Delete the topic run of an earlier time: its numbers would be matched."""
    if any(run.name == "benchmark" for run in collection.runs("topic")):
        collection.delete_run("benchmark", kind="topic")


def labels_of(collection: sonde.Collection, kind: Any, seconds: float) -> Found:
    """The labels that a run has stored."""
    with collection.stored.view() as view:
        return assignments_of(view.catalog, find_run(view.catalog, kind, "benchmark"))[1], seconds


OURS = {
    "kmeans": clusters(k="true"),
    "auto k": clusters(),
    "density": clusters(method="density"),
    "density nearest": clusters(method="density", outliers="nearest"),
    "levels": topics(),
    "topics": topics(method="dense"),
    "topics keep": topics(method="dense", outliers="keep"),
}


def peer(texts: list[str], vectors: np.ndarray) -> Found:
    """BERTopic's topics at its defaults and the seconds they took."""
    module = bertopic()
    began = perf_counter()
    labels, _ = module.BERTopic().fit_transform(texts, vectors)
    return np.array(labels), perf_counter() - began


def row(name: str, who: str, classes: np.ndarray, labels: np.ndarray, seconds: float) -> str:
    """A line of the table."""
    found = agreement(classes, labels)
    count, share = len(np.unique(labels[labels >= 0])), f"{np.mean(labels < 0):.1%}"
    shown = " | ".join(f"{found[measure]:.3f}" for measure in ("nmi", "ari", "purity"))
    return f"| {name} | {len(labels):,} | {who} | {shown} | {count} | {share} | {seconds:.1f} |"


if __name__ == "__main__":
    main()
