"""How good clusters and labels are: against a column that holds the truth, and without one."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from ...indexer.errors import SondeError, UsageError, arg, did_you_mean
from ...indexer.store.catalog import Catalog
from ...indexer.store.collection import StoredCollection
from ...indexer.store.documents import column_values, document_numbers, numbers_by_id
from ...indexer.store.kinds import CORRECTION, LABEL, group_kinds
from ...indexer.store.members import documents_named_by
from ...indexer.store.runs import Item, Run, assignments_of, find_run, items_by_document, items_of, list_runs
from ...indexer.store.view import View, document_vectors, normalized
from ...indexer.wording import counted, either, existing, on_one_line, shown_id
from ..analysis.agreement import AGREEMENT, agreement
from ..analysis.corpus import texts_of
from ..analysis.describe import languages, silhouettes
from ..analysis.neighbours import sample_rows
from ..analysis.runs import named
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


@dataclass(frozen=True, slots=True)
class ClassQuality:
    """One class: precision, recall and F1, 0 to 1, and how many texts belong to it."""

    label: str
    precision: float
    recall: float
    f1: float
    support: int

    @classmethod
    def of(cls, label: str, right: int, guessed: int, true: int) -> "ClassQuality":
        """Return the quality of a class: texts that rightly have it, texts that were given it, texts that have it."""
        f1 = 2 * right / max(guessed + true, 1)
        return cls(label, right / max(guessed, 1), right / max(true, 1), f1, true)


@dataclass(frozen=True, slots=True)
class LabelQuality:
    """The quality of a run of labels; every measure is 0 to 1, higher is better.

    Attributes:
        run: The run's name.
        truth: The column or the file that holds the truth.
        documents: Documents that have both a truth and a label.
        accuracy: Share of documents whose labels are the true ones; with several per text, exactly those.
        macro_f1: Mean F1 over the classes of truth and run.
        classes: Each class by name.
        confusion: (truth, label, documents) with one label per text, the most frequent first, agreement included.
        notes: What the user should know: names of the truth that the run does not have, ids that no document has.
    """

    run: str
    truth: str
    documents: int
    accuracy: float
    macro_f1: float
    classes: tuple[ClassQuality, ...]
    confusion: tuple[tuple[str, str, int], ...]
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return asdict(self)


def evaluate_labels(
    collection: StoredCollection, run: str | None, truth: str, labels: Mapping[str, Sequence[str]] | None = None
) -> LabelQuality:
    """Compare a run of labels with the true labels; names are compared without regard to case and outer spaces.

    Documents whose label a person has corrected do not count, if the run has applied the corrections. Documents without
    a value in the column do not count either. If the run refused texts, "none of these" is the true label of documents
    whose class the run has no label for. If it refused none, these documents are wrong.

    Args:
        collection: The collection.
        run: The run's name; None for the run whose labels match the true ones best; if several do, the newest.
        truth: A metadata column: a text, or a list of texts for a run with several labels per text. With `labels`, what
            messages call these.
        labels: The true labels by document id.

    Raises:
        UsageError: There is no such column, or the run has none of its values as a label.
        SondeError: There is no such run, or no document has both.
    """
    with collection.view() as view:
        docs = document_numbers(view.catalog).tolist()
        true, strange = (
            _of_ids(view.catalog, labels, truth) if labels is not None else (_of_column(view, docs, truth), "")
        )
        found = _matching_run(view.catalog, {name for given in true.values() for name in given}, run)
        items = items_of(view.catalog, found)
        written, names = {_plain(one.name): one.name for one in items}, {one.number: _plain(one.name) for one in items}
        given = items_by_document(view.catalog, found, docs)
        applied = bool(found.report.get("corrected"))
        by_hand = set(documents_named_by(view.catalog, CORRECTION, found.name) if applied else ())
    known = [doc for doc in docs if doc in true and doc in given]
    _check_shared(truth, {name for doc in known for name in true[doc]}, found.name, names)
    both = [doc for doc in known if doc not in by_hand]
    if not both:
        more = ", apart from those that you corrected" if known else ""
        raise SondeError(f"no document has both a label of the run {found.name!r} and a value in {truth!r}{more}")
    several = bool(found.parameters.get("multi_label"))
    guessed = [[names[number] for number, _ in given[doc] if not several or number >= 0] for doc in both]
    quality = _quality(
        found.name, truth, [true[doc] for doc in both], guessed, set(names.values()), several, names.get(-1)
    )
    notes = [*quality.notes, *([strange] if strange else [])]
    if empty := len([doc for doc in docs if doc in given and doc not in true]):
        notes.append(f"{counted(empty, 'document')} without a value in {truth!r} left out")
    if len(both) < len(known):
        notes.append(f"{counted(len(known) - len(both), 'document')} with labels that you corrected left out")
    return replace(_as_written(quality, written), notes=tuple(notes))


def _as_written(quality: LabelQuality, written: Mapping[str, str]) -> LabelQuality:
    """Return a quality with the names of classes as the run has them."""
    classes = tuple(replace(each, label=written.get(each.label, each.label)) for each in quality.classes)
    pairs = ((written.get(one, one), written.get(two, two), count) for one, two, count in quality.confusion)
    return replace(quality, classes=classes, confusion=tuple(pairs))


def _of_column(view: View, docs: Sequence[int], truth: str) -> dict[int, list[str]]:
    if truth not in view.fields:
        raise UsageError(f"there is no column {truth!r} that could hold the truth: {existing(view.fields)}")
    stored = view.catalog.metadata(docs)
    return {doc: _names(row[truth]) for doc, row in stored.items() if row.get(truth) not in (None, [], "")}


def _of_ids(catalog: Catalog, labels: Mapping[str, Sequence[str]], truth: str) -> tuple[dict[int, list[str]], str]:
    """Return the labels by document number, and a note on ids that no document has, "" if there are none."""
    numbers = numbers_by_id(catalog, labels)
    strange = [shown_id(id) for id in labels if id not in numbers]
    verb = "belongs" if len(strange) == 1 else "belong"
    said = f"{counted(len(strange), 'id')} of {len(labels):,} in {truth!r} {verb} to no document: {_few(strange)}"
    if not numbers:
        raise SondeError(said)
    return {doc: _names(list(labels[id])) for id, doc in numbers.items()}, f"{said}; left out" if strange else ""


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (", …" if len(names) > 3 else "")


def _check_shared(truth: str, classes: set[str], run: str, names: Mapping[int, str]) -> None:
    """Check that a column and a run of labels have a name in common.

    Raises:
        UsageError: They have none.
    """
    labels = set(names.values())
    if classes and not classes & labels:
        said = f"no value of {truth!r} is a label of the run {run!r}: the values are {_some(classes)}; the labels are "
        said += f"{_some(labels)}; choose another {arg('truth')} or {arg('run')}"
        raise UsageError(said, code="not-found", field="truth", value=truth)


def _some(names: Collection[str]) -> str:
    """Return the first names in order, each shortened."""
    return _few([repr(on_one_line(name, 40)) for name in sorted(names)])


def _matching_run(catalog: Catalog, classes: set[str], name: str | None) -> Run:
    """Return the label run of this name, or the complete one whose labels and `classes` have the most in common."""
    newest = find_run(catalog, LABEL, name)
    if name is not None:
        return newest

    def common(run: Run) -> float:
        """Return the Jaccard index of the run's labels and the classes, 0 to 1."""
        labels = {_plain(item.name) for item in items_of(catalog, run) if item.number >= 0}
        return len(labels & classes) / max(1, len(labels | classes))

    runs = [run for run in list_runs(catalog, LABEL) if run.complete]
    return max(reversed(runs), key=common)


def _plain(name: str) -> str:
    return " ".join(name.split()).casefold()


def _names(value: Any) -> list[str]:
    return [_plain(str(each)) for each in (value if isinstance(value, list) else [value])]


def _quality(
    run: str, column: str, true: Sequence[list[str]], guessed: Sequence[list[str]], known: set[str], several: bool,
    none: str | None,
) -> LabelQuality:  # fmt: skip
    """Compare labels; `none` is what the run calls a text that it gives none, if it does so."""
    missing = sorted({name for names in true for name in names} - known)
    labels = sorted(known - {none})
    shown = [name + did_you_mean(name, labels) for name in missing[:5]]
    listed = ", ".join([*shown, *(["…"] if len(missing) > 5 else [])])
    note = f"the run has no label for these values of {column!r}: {listed}"
    if missing and none is not None and [none] in guessed:
        true = [[none] if set(names) <= set(missing) else names for names in true]
        note += f"; {none!r} counts as right for them"
    elif missing:
        note += "; documents with these values count as wrong"
    classes = sorted({name for names in (*true, *guessed) for name in names})
    told, said = (Counter(name for names in part for name in set(names)) for part in (true, guessed))
    both = Counter(name for one, two in zip(true, guessed, strict=True) for name in {*one} & {*two})
    each = tuple(ClassQuality.of(name, both[name], said[name], told[name]) for name in classes)
    right = [set(one) == set(two) if several else two[0] in one for one, two in zip(true, guessed, strict=True)]
    pairs = Counter((one[0], two[0]) for one, two in zip(true, guessed, strict=True) if not several)
    confusion = tuple((one, two, count) for (one, two), count in pairs.most_common())
    f1 = sum(quality.f1 for quality in each) / len(each)
    notes = (note,) if missing else ()
    return LabelQuality(run, column, len(right), sum(right) / len(right), f1, each, confusion, notes)
