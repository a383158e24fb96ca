"""Cluster a collection: fit, measure, describe, store as a run; and the clusters nearest to a query."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...indexer.ann.devices import faiss_package
from ...indexer.errors import SondeError, UsageError, arg, out_of_range
from ...indexer.progress import Notify, silent
from ...indexer.store.collection import StoredCollection
from ...indexer.store.kinds import CLUSTER
from ...indexer.store.run_writing import RENAMED, NewRun, check_run_name, write_run
from ...indexer.store.runs import Item, array_of, check_model, find_run, items_of
from ...indexer.store.tabular import Shown
from ...indexer.store.view import View
from ...indexer.wording import counted
from ..analysis.corpus import Corpus, texts_of
from ..analysis.cuml import cuml_package
from ..analysis.describe import centroids, describe, silhouettes
from ..analysis.naming.choice import NameAccuracy
from ..analysis.naming.namer import ANSWER, EXAMPLES, Namer, ask_namer, known_answers
from ..analysis.naming.names import AUTOMATIC, embedder, naming_of, report_of, with_accuracy
from ..analysis.neighbours import sample_rows
from ..search.filters import documents_where, empty_hint
from ..search.foreign import notify_of_languages
from . import choice, density, kmeans
from .choice import stability
from .labelled import carry_names, label_groups, label_names
from .settings import ClusterSettings

SILHOUETTE_SAMPLE = 50_000
LIBRARIES = {
    "kmeans": ("faiss", "numpy"),
    "density": ("faiss", "hdbscan", "numba", "numpy", "scikit-learn", "scipy", "umap-learn"),
}


@dataclass(frozen=True, slots=True, repr=False)
class Clustering(Shown):
    """A clustering as it was stored.

    Attributes:
        run: The run's name.
        clusters: Its clusters by number, and first -1, the outliers, if there are any.
        report: What was measured: documents, distinct texts, clusters, outliers, texts that it was fitted on (`fitted`)
            and others that were assigned (`carried`), silhouette, mean stability, and the curve that k was chosen on.
        seconds: How long it took.
        left_out: Documents that changed meanwhile, of which the run says nothing.
    """

    run: str
    clusters: Sequence[Item]
    report: Mapping[str, Any]
    seconds: float
    left_out: int
    _row = "cluster"

    @property
    def name(self) -> str:
        """The run's name."""
        return self.run

    def rows(self) -> list[dict[str, Any]]:
        """Return one row for each cluster, as JSON values."""
        return [cluster.to_dict() for cluster in self.clusters]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values, under the stable names of `--json`."""
        report = {name: value for name, value in self.report.items() if name != "curve"}
        return {"run": self.run, "seconds": round(self.seconds, 3), "left_out": self.left_out, **report}


@dataclass(frozen=True, slots=True)
class _Found:
    labels: np.ndarray
    scores: np.ndarray
    arrays: dict[str, np.ndarray]
    report: dict[str, Any]


def cluster(
    collection: StoredCollection,
    settings: ClusterSettings = ClusterSettings(),
    *,
    name: str | None = None,
    replace: bool = False,
    notify: Notify = silent,
) -> Clustering:
    """Cluster the documents of a collection by meaning and store the result as a run.

    The same collection, settings and versions give the same clusters.

    Args:
        collection: What to cluster.
        settings: How.
        name: Of the run; the method by default.
        replace: Whether a run of this name may be replaced.
        notify: Receives progress and sentences.

    Raises:
        UsageError: A setting or the filter is not valid, k is larger than the number of distinct texts, or the name
            is taken.
        SondeError: The collection is empty, no document passes the filter, or the collection cannot be written.
        MissingExtraError: The method needs libraries that are not installed.
    """
    settings.check()
    began, name = time.perf_counter(), settings.method if name is None else name
    with collection.view() as view:
        check_run_name(view.catalog, CLUSTER, name, replace)
        corpus = Corpus.of(view, None if settings.where is None else documents_where(view.catalog, settings.where))
        if not corpus.documents:
            if settings.where is None:
                raise SondeError(f"{collection.named} holds no documents to cluster")
            hint = empty_hint(view.catalog, settings.where)
            raise SondeError(f"no document passes the filter {settings.where!r}{hint}")
        notify_of_languages(view, notify)
        found = _kmeans(corpus, settings, notify) if settings.method == "kmeans" else _density(corpus, settings, notify)
        steady = stability(corpus.vectors, found.labels, settings, notify)
        items, typical = describe(view, corpus, found.labels, steady, settings.seed)
        if replace:
            items = carry_names(view.catalog, name, items, corpus.snapshot.docs, found.labels[corpus.group], notify)
        items, measured = _named(view, corpus, found.labels, items, typical, settings, notify)
    report = _report(corpus, found, steady) | report_of(measured)
    taken = time.perf_counter() - began
    labels, scores = found.labels[corpus.group], found.scores[corpus.group].astype(float)
    scores[labels < 0] = np.nan
    more = cuml_package() if settings.method == "density" else ()
    libraries = (faiss_package(), *more, *LIBRARIES[settings.method][1:])
    run = NewRun(
        CLUSTER, name, settings.to_dict(), libraries, report, taken, items,
        (corpus.snapshot.docs, labels, scores), arrays=found.arrays,
    )  # fmt: skip
    left_out = write_run(collection, run, corpus.snapshot, replace=replace)
    return Clustering(name, items, report, taken, left_out)


def _kmeans(corpus: Corpus, settings: ClusterSettings, notify: Notify) -> _Found:
    points = choice.k_curve(corpus.vectors, settings.seed, notify) if settings.k == "auto" else []
    k = choice.choose_k(points) if settings.k == "auto" else settings.k
    if k > len(corpus.vectors):
        same = "" if len(corpus.vectors) == corpus.documents else " with different texts"
        there = f"there {'is' if len(corpus.vectors) == 1 else 'are'} only {counted(len(corpus.vectors), 'document')}"
        said = f"{arg('k')} is {k}, and {there}{same}: give a smaller one"
        raise UsageError(said, code="out-of-range", field="k", value=k)
    fitted = kmeans.fit_kmeans(corpus.vectors, k, settings.seed, settings.restarts)
    report = (
        {"k": k, "curve": [point.to_dict() for point in points], **choice.clearness(points, k)} if points else {"k": k}
    )
    return _Found(fitted.labels, fitted.cosines, {"centroids": fitted.centroids}, report)


def _density(corpus: Corpus, settings: ClusterSettings, notify: Notify) -> _Found:
    found = density.fit_density(corpus.vectors, settings, notify)
    count = int(found.labels.max(initial=-1)) + 1
    if not count:
        size = density.smallest(settings, len(found.fitted))
        notify(f"no dense region holds {size} distinct texts: every document is an outlier")
    arrays = {
        "centroids": centroids(corpus.vectors, found.labels, count),
        "fitted": corpus.snapshot.docs[corpus.first[found.fitted]],
        "limits": found.limits(),
    }
    report = {
        "min_size": density.smallest(settings, len(found.fitted)),
        "fitted": len(found.fitted),
        "carried": len(found.labels) - len(found.fitted),
    }
    return _Found(found.labels, found.scores, arrays, report)


def _named(
    view: View, corpus: Corpus, labels: np.ndarray, items: list[Item], typical: list[np.ndarray],
    settings: ClusterSettings, notify: Notify,
) -> tuple[list[Item], NameAccuracy]:  # fmt: skip
    """Return the items under names that a person gave, candidate labels, or phrases; and how well these tell."""
    clusters = [item for item in items if item.number >= 0]
    naming = naming_of(
        view, corpus, labels, len(clusters), settings.seed, embedder(view.collection, settings.names, notify)
    )
    given = {item.number: item.name for item in clusters if item.data.get(RENAMED)}
    names, answers = naming.or_quoted(naming.choose(given)), dict[int, dict[str, Any]]()
    if namer := Namer.of(settings.namer, settings.namer_model, settings.namer_show):
        docs, known = corpus.snapshot.docs[corpus.first], known_answers(view.catalog)
        texts = {n: texts_of(view, docs[rows[:EXAMPLES]]) for n, rows in enumerate(typical) if n not in given}
        asked = ask_namer(namer, naming, names, texts, known, notify)
        names, answers = asked.names, asked.answers
    found = [
        Item(item.number, name or item.name, {
            **item.data, AUTOMATIC: name or item.name,
            **({ANSWER: answers[item.number]} if item.number in answers else {}),
        })
        for item, name in zip(clusters, names, strict=True)
    ]  # fmt: skip
    if settings.labels:
        found = _labelled(view, corpus, found, typical, settings, notify)
    found = [replace(item, name=given.get(item.number, item.name)) for item in found]
    accuracy = naming.measure([item.name for item in found])
    return [*(item for item in items if item.number < 0), *with_accuracy(found, accuracy)], accuracy


def _labelled(
    view: View, corpus: Corpus, clusters: list[Item], typical: list[np.ndarray], settings: ClusterSettings,
    notify: Notify,
) -> list[Item]:  # fmt: skip
    """Return clusters with names from the candidate labels, and `label` and `label_share` in their data."""
    encoder, docs = view.collection.encoder, corpus.snapshot.docs[corpus.first]
    found = label_groups(
        encoder, corpus.vectors, typical, lambda rows: texts_of(view, docs[rows]), settings.labels, settings.engine,
        notify,
    )  # fmt: skip
    names = label_names(found, [item.name for item in clusters])
    return [
        Item(item.number, name, {**item.data, "label": each.label, "label_share": each.share})
        for item, name, each in zip(clusters, names, found, strict=True)
    ]


def _report(corpus: Corpus, found: _Found, steady: np.ndarray | None) -> dict[str, Any]:
    labels = found.labels
    outliers = int((labels[corpus.group] < 0).sum())
    rows = sample_rows(len(labels), SILHOUETTE_SAMPLE, 0)
    values = silhouettes(corpus.vectors[rows], labels[rows])
    inside = values[~np.isnan(values)]
    return {
        "documents": corpus.documents,
        "distinct": len(labels),
        "clusters": int(labels.max(initial=-1)) + 1,
        "outliers": outliers,
        "outlier_share": round(outliers / corpus.documents, 6),
        "silhouette": round(float(inside.mean()), 6) if len(inside) else None,
        "stability": round(float(steady.mean()), 6) if steady is not None else None,
        **found.report,
    }


def clusters_near(
    collection: StoredCollection, query: str, run: str | None = None, k: int = 10
) -> list[tuple[Item, float]]:
    """Return the clusters whose mean is nearest to a query, with their cosines, the nearest first.

    Args:
        collection: The collection.
        query: In words.
        run: The cluster run; the newest where None.
        k: How many, 1 or more.

    Raises:
        UsageError: The query is empty, or k below 1.
        SondeError: There is no such run, or the collection's model is not available.
    """
    if not query.strip():
        raise UsageError("the query is empty", code="empty", field="query")
    if k < 1:
        raise out_of_range("k", k, "it must be 1 or more")
    with collection.view() as view:
        found = find_run(view.catalog, CLUSTER, run)
        means = array_of(view.catalog, found, "centroids")
        items = {item.number: item for item in items_of(view.catalog, found)}
        check_model(found, view.generation.spec)
        encoder = collection.encoder
    [vector] = encoder.encode_texts([query], query=True)
    cosines = np.round((means @ vector).astype(np.float64), 6)
    order = [number for number in np.argsort(-cosines, kind="stable").tolist() if number in items]
    return [(items[number], float(cosines[number])) for number in order[:k]]
