"""How good clusters are: against a column that holds the truth, and without one."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from ...indexer.errors import SondeError, UsageError
from ...indexer.store.catalog import Catalog
from ...indexer.store.collection import StoredCollection
from ...indexer.store.documents import column_values
from ...indexer.store.kinds import group_kinds
from ...indexer.store.runs import Item, Run, assignments_of, items_of, list_runs
from ...indexer.store.view import View, document_vectors, normalized
from ...indexer.wording import either, existing
from ..analysis.corpus import texts_of
from ..analysis.describe import languages, silhouettes
from ..analysis.neighbours import sample_rows
from ..analysis.runs import named
from ..analysis.statistics import AGREEMENT, agreement
from ..analysis.terms import count_terms

SAMPLE = 20_000
TOP = 10
"""Words of a cluster that coherence and diversity look at."""


@dataclass(frozen=True, slots=True)
class ClusterQuality:
    """The quality of a clustering; outliers count as one cluster of their own wherever all documents count.

    Attributes:
        run: The run's name; a level's as `coarse:topics`.
        documents: Documents of the run that were judged.
        clusters: Without the outliers.
        outlier_share: 0 to 1.
        truth: The column, or None; the next five are None without one.
        nmi: Normalised mutual information with the true classes, 0 to 1.
        ari: Adjusted Rand index, at most 1, 0 for chance.
        v_measure: Harmonic mean of homogeneity and completeness, 0 to 1: the same as `nmi` with its arithmetic mean.
        purity: Share of documents whose class is the most common one in their cluster.
        classes: Different values of the column.
        silhouette: Mean over the documents in clusters, cosine, -1 to 1; None with fewer than two clusters.
        stability: Mean over clusters, as measured when the run was made, 0 to 1; None where it was not.
        coherence: NPMI of the ten best words, mean over clusters, -1 to 1 (Lau, Newman and Baldwin, EACL 2014).
        diversity: Share of different words among the ten best of all clusters (Dieng, Ruiz and Blei, TACL 2020).
    """

    run: str
    documents: int
    clusters: int
    outlier_share: float
    truth: str | None
    nmi: float | None
    ari: float | None
    v_measure: float | None
    purity: float | None
    classes: int | None
    silhouette: float | None
    stability: float | None
    coherence: float | None
    diversity: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values, under the stable names of `--json`."""
        return {name: getattr(self, name) for name in self.__slots__}


def evaluate_clusters(collection: StoredCollection, run: str | None = None, truth: str | None = None) -> ClusterQuality:
    """Judge a cluster, topic or taxonomy run.

    Args:
        collection: That keeps the run.
        run: Its name; the newest run of these kinds where None.
        truth: A metadata column with each document's class; documents without a value are left out.

    Raises:
        SondeError: There is no such run, or it says nothing of any document (with a value).
        UsageError: There is no such column, it holds lists, or the run is a map or a labelling.
    """
    with collection.view() as view:
        found = _newest(view.catalog) if run is None else named(view.catalog, run)
        if not found.kind.groups:
            kinds = either(group_kinds())
            raise UsageError(f"{found.name!r} is a {found.kind} run: clusters are judged of a {kinds} run")
        docs, labels, _ = assignments_of(view.catalog, found)
        docs, first = np.unique(docs, return_index=True)
        labels, classes = labels[first], None
        if truth is not None:
            docs, labels, classes = _with_truth(view, docs, labels, truth)
        if not len(docs):
            raise SondeError(
                f"the run {found.name!r} says nothing of any document" + (f" with a {truth}" if truth else "")
            )
        items = items_of(view.catalog, found)
        inner = _without_truth(view, docs, labels, items)
    outer = agreement(classes, labels) if classes is not None else dict.fromkeys(AGREEMENT)
    share = float((labels < 0).mean())
    return ClusterQuality(
        run=f"{found.kind}:{found.name}" if found.kind.part else found.name, documents=len(docs),
        clusters=int(np.unique(labels[labels >= 0]).size), outlier_share=share,
        truth=truth, classes=None if classes is None else len(np.unique(classes)), **outer, **inner,
    )  # fmt: skip


def _newest(catalog: Catalog) -> Run:
    runs = [run for run in list_runs(catalog) if run.kind.groups and run.complete and not run.kind.part]
    if not runs:
        said = f"there is no {either(group_kinds())} run in this collection: make one with `sonde cluster`"
        raise SondeError(said, code="not-found", field="run")
    return runs[-1]


def _with_truth(
    view: View, docs: np.ndarray, labels: np.ndarray, truth: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    field = view.fields.get(truth)
    if field is None:
        raise UsageError(f"there is no column {truth!r}: {existing(view.fields)}")
    if field.type == "list":
        raise UsageError(f"the column {truth!r} holds lists: a document must have one class")
    stored = column_values(view.catalog, field)
    values = [stored.get(doc) for doc in docs.tolist()]
    kept = np.array([value is not None for value in values], bool)
    classes = np.unique([str(value) for value in values if value is not None], return_inverse=True)[1]
    return docs[kept], labels[kept], classes.astype(np.int64)


def _without_truth(view: View, docs: np.ndarray, labels: np.ndarray, items: Sequence[Item]) -> dict[str, float | None]:
    rows = sample_rows(len(docs), SAMPLE, 0)
    values = silhouettes(normalized(document_vectors(view, docs[rows])), labels[rows])
    inside = values[~np.isnan(values)]
    several = len(np.unique(labels[rows][labels[rows] >= 0])) > 1
    known = [item.data["stability"] for item in items if item.data.get("stability") is not None]
    words = [top_words(item) for item in items if item.number >= 0]
    return {
        "silhouette": float(inside.mean()) if several else None,
        "stability": float(np.mean(known)) if known else None,
        "coherence": coherence(texts_of(view, docs[rows]), words, languages(view)),
        "diversity": diversity(words),
    }


def top_words(item: Item) -> list[str]:
    """Return the ten best words of a cluster, without pairs of words."""
    return [term for term, *_ in item.data.get("terms", []) if " " not in term][:TOP]


def diversity(words: Sequence[Sequence[str]]) -> float | None:
    """Return the share of different words among those of all clusters, 0 to 1; None without words."""
    everything = [word for some in words for word in some]
    return len(set(everything)) / len(everything) if everything else None


def coherence(texts: Sequence[str], words: Sequence[Sequence[str]], spoken: Sequence[str]) -> float | None:
    """Return the mean NPMI of word pairs, counted over whole texts, averaged per cluster; None without pairs.

    Pairs that never occur together have -1.
    """
    counts = count_terms(texts, spoken, longest=1)
    if counts is None:
        return None
    place = {term: number for number, term in enumerate(counts.terms.tolist())}
    order = np.argsort(counts.columns, kind="stable")
    having = np.split(counts.rows[order], np.searchsorted(counts.columns[order], np.arange(1, len(place))))
    means = []
    for some in words:
        columns = [place[word] for word in some if word in place]
        if len(columns) > 1:
            present = np.array([np.bincount(having[column], minlength=len(texts)) for column in columns], float)
            together = (present @ present.T) / len(texts)
            means.append(float(np.mean([_npmi(together, i, j) for i, j in combinations(range(len(columns)), 2)])))
    return float(np.mean(means)) if means else None


def _npmi(together: np.ndarray, i: int, j: int) -> float:
    both = together[i, j]
    if both <= 0:
        return -1.0
    if both >= 1:
        return 1.0
    return float(np.log(both / (together[i, i] * together[j, j])) / -np.log(both))
