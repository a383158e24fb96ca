"""Labelled documents to look at: the least certain ones, those worth confirming next, and a sample on trial."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from ...indexer.errors import SondeError
from ...indexer.progress import Notify, silent
from ...indexer.store.catalog import Catalog
from ...indexer.store.collection import StoredCollection
from ...indexer.store.kinds import CORRECTION, LABEL
from ...indexer.store.members import documents_named_by
from ...indexer.store.run_writing import Snapshot
from ...indexer.store.runs import Run, array_of, assignments_of, find_run, items_of
from ...indexer.store.view import View, document_vectors
from ..search.settings import check_page
from .carry import spread
from .engines import check_engine
from .labels import NONE, NONE_NAME, Labels, make_labels
from .margins import LabelTexts, Margins, label_corpus
from .none import chances, refused
from .outcome import classified, closeness
from .run import judge_of, label_texts
from .scores import ENOUGH, adapted_margins, label_vectors
from .settings import LabelSettings

SAME = 1e-6
"""Scores that differ by less are the same; one of them was rounded."""


@dataclass(frozen=True, slots=True)
class Unsure:
    """A document and the uncertainty of its label.

    Attributes:
        id: The document's id.
        title: The document's title.
        text: The document's text.
        labels: The document's labels, most likely first; empty for "none of these".
        score: The probability of the first label, 0 to 1.
        other: What the text would have got if it had been decided otherwise: the second label or, if that was closer,
            "none of these"; for a text without a label, its best label; with several labels per text, the label whose
            decision was closest.
        margin: How close `other` was; 0 is a tie. For a second label, `score` minus `other_score`. Where "none of
            these" is one of the two, the distance from the chance of none, or the probability, at which texts are
            refused.
        run: The label run, which `correct` takes; None for a trial without a run.
        other_score: The probability of `other`, 0 to 1; for "none of these", the chance that no label fits. None if the
            run has no such chance, or is from an older version.
    """

    id: str
    title: str
    text: str
    labels: tuple[str, ...]
    score: float
    other: str
    margin: float
    run: str | None = None
    other_score: float | None = None

    @property
    def label(self) -> str:
        """The most likely label, or "none of these"."""
        return self.labels[0] if self.labels else NONE_NAME

    @property
    def shown(self) -> str:
        """The labels, the first with its probability; "none of these" may have that of its best label: then none."""
        if not self.labels and self.other_score is not None and abs(self.score - self.other_score) < SAME:
            return NONE_NAME
        return ", ".join([f"{self.label} {self.score:.3f}", *self.labels[1:]])

    @property
    def rival(self) -> str:
        """What the text would have got otherwise, with its probability; "" if the doubt is about one of its labels."""
        if self.other in self.labels:
            return ""
        return self.other if self.other_score is None else f"{self.other} {self.other_score:.3f}"

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return asdict(self) | {"labels": list(self.labels), "label": self.label}


def unsure(
    collection: StoredCollection, run: str | None = None, k: int = 20, offset: int = 0, *, random: bool = False
) -> list[Unsure]:
    """Return the documents with the least certain labels, smallest margin first; leave out corrected documents.

    Args:
        collection: The collection.
        run: The label run; the newest if None.
        k: Number of documents to return, 1 or more.
        offset: Number of top documents to skip.
        random: Whether to return documents in random order instead, the same in each call.

    Raises:
        SondeError: The run does not exist, or it is from an older version that did not store the required data.
        UsageError: k is below 1, or the offset is below 0.
    """
    check_page(k, offset)

    def chosen(view: View, docs: np.ndarray, margins: np.ndarray) -> np.ndarray:
        del view
        # By the document, not by its place: the others keep their order when one is corrected.
        keys = np.random.default_rng(0).random(int(docs.max(initial=0)) + 1)[docs] if random else margins
        return np.lexsort((docs, keys))[offset : offset + k]

    return _reviewed(collection, run, chosen)


UNCERTAIN = 1 / 3
"""Share of the documents, those with the smallest margins, from which the next ones to confirm are taken."""
MOST = 20_000
"""Maximum number of documents to choose from; more take longer and do not change what is learned."""


def to_confirm(collection: StoredCollection, run: str | None = None, k: int = 10) -> list[Unsure]:
    """Return the documents whose correct labels teach a run most; leave out corrected documents.

    They are uncertain and unlike each other: the third of the documents with the smallest margins is divided into `k`
    groups by k-means, and the document closest to each centre is returned. Confirm or correct them, label again, and
    ask for more. The same run and corrections give the same documents.

    Args:
        collection: The collection.
        run: The label run; the newest if None.
        k: Number of documents to return, 1 or more.

    Raises:
        SondeError: The run does not exist, or it is from an older version that did not store the required data.
        UsageError: k is below 1.
    """
    check_page(k, 0)

    def varied(view: View, docs: np.ndarray, margins: np.ndarray) -> np.ndarray:
        kept = min(max(int(UNCERTAIN * len(docs)), k), MOST, len(docs))
        pool = np.lexsort((docs, margins))[:kept]
        vectors = document_vectors(view, docs[np.sort(pool)])
        chosen = np.sort(pool)[spread(vectors, k, np.random.default_rng(0), np.empty(0, np.int64))]
        return chosen[np.argsort(margins[chosen], kind="stable")]

    return _reviewed(collection, run, varied)


Choice = Callable[[View, np.ndarray, np.ndarray], np.ndarray]
"""Takes the view, int64 [n] documents and float32 [n] margins; returns int64 positions of the documents to show."""


def _reviewed(collection: StoredCollection, run: str | None, choose: Choice) -> list[Unsure]:
    with collection.view() as view:
        found = find_run(view.catalog, LABEL, run)
        docs, margins, others = (array_of(view.catalog, found, name) for name in ("documents", "margins", "others"))
        other_scores = _other_scores(view.catalog, found, len(docs))
        names = {NONE: NONE_NAME} | {item.number: item.name for item in items_of(view.catalog, found)}
        given, items, scores = assignments_of(view.catalog, found)
        corrected = documents_named_by(view.catalog, CORRECTION, found.name)
        open_ = np.isin(docs, given) & ~np.isin(docs, corrected)
        rows = np.flatnonzero(open_)
        rows = rows[choose(view, docs[rows], margins[rows])]
        documents = view.documents(docs[rows].tolist())
        ends = (np.searchsorted(given, docs[rows], side).tolist() for side in ("left", "right"))
        labels = {doc: (items[a:b], scores[a:b]) for doc, a, b in zip(docs[rows].tolist(), *ends, strict=True)}
    return [
        Unsure(
            documents[doc].id, documents[doc].title, documents[doc].text,
            tuple(names[number] for number in labels[doc][0].tolist() if number != NONE), float(labels[doc][1][0]),
            names[int(other)], float(margin), found.name, _number_of(score),
        )
        for doc, other, margin, score in zip(
            docs[rows].tolist(), others[rows], margins[rows], other_scores[rows], strict=True
        )
    ]  # fmt: skip


def _other_scores(catalog: Catalog, run: Run, count: int) -> np.ndarray:
    """Return float32 [count], the probabilities of the runners-up; NaN if an older version did not store them."""
    try:
        return array_of(catalog, run, "other_scores")
    except SondeError as error:
        if error.code == "damaged":
            raise
        return np.full(count, np.nan, np.float32)


def _number_of(score: float) -> float | None:
    """Return a score, None for NaN."""
    return None if np.isnan(score) else float(score)


@dataclass(frozen=True, slots=True)
class Trial:
    """The result of labelling a sample.

    Attributes:
        documents: The sample with its labels, least certain first.
        counts: Number of documents in the sample by label.
        engine: The engine.
        adapted: Whether the labels were adapted to the whole collection, as in a run.
        seconds: Duration in seconds.
    """

    documents: tuple[Unsure, ...]
    counts: Mapping[str, int]
    engine: str
    adapted: bool
    seconds: float


def try_labels(
    collection: StoredCollection, labels: Labels, settings: LabelSettings = LabelSettings(), count: int = 50,
    notify: Notify = silent,
) -> Trial:  # fmt: skip
    """Label a random sample. Similarity reads all embeddings, as a run does, so the sample gets the same labels.

    Args:
        collection: The collection.
        labels: Names, with or without descriptions.
        settings: Engine, model, `multi_label`, `threshold` and seed; the other fields apply only to runs.
        count: Number of documents in the sample.
        notify: Receives progress.

    Raises:
        UsageError: The labels or a setting is not valid.
        SondeError: The collection is empty, or a model is not available.
    """
    began = time.monotonic()
    settings = replace(settings, budget=None)
    settings.check()
    engine, made = check_engine(settings.engine), make_labels(labels, several=settings.multi_label)
    with collection.view() as view:
        snapshot = Snapshot.of(view)
        if not len(snapshot.docs):
            raise SondeError(f"{collection.named} holds no documents to label")
        drawn = np.random.default_rng(settings.seed).permutation(len(snapshot.docs))[:count]
        rows = np.sort(drawn)
        adapts = engine == "similarity" and not settings.multi_label and len(snapshot.docs) >= ENOUGH
        docs = snapshot.docs if adapts else snapshot.docs[rows]
        vectors, encoder = document_vectors(view, docs), collection.encoder
        documents = view.documents(snapshot.docs[rows].tolist())
    of_labels = label_vectors(encoder, made)
    none = None if settings.multi_label else chances(vectors, of_labels, settings.seed)
    no_label = refused(none, settings.promise, rows[:0], rows[:0]) if none is not None and settings.refuses else None
    if adapts:
        labelled = Margins(adapted_margins(vectors, of_labels, settings.seed)[rows], adapted=True)
        none, no_label = (None if each is None else each[rows] for each in (none, no_label))
    else:
        sample = LabelTexts(
            vectors, [str(row) for row in rows.tolist()], lambda some: label_texts(collection, docs[some])
        )
        judge = judge_of(collection, engine, settings, notify)
        labelled = label_corpus(sample, made, of_labels, engine, judge, settings, notify=notify)
    shares = labelled.probabilities(settings.multi_label, none)
    given = classified(shares, made, settings.multi_label, settings.least, engine, "", none, no_label)
    close = closeness(shares, settings.multi_label, settings.least)
    found = [
        Unsure(document.id, document.title, document.text, each.labels, next(iter(each.scores.values())),
               NONE_NAME if other == NONE else made[int(other)].name, float(margin), other_score=_number_of(score))
        for document, each, other, margin, score in zip(
            (documents[doc] for doc in snapshot.docs[rows].tolist()), given, close["others"], close["margins"],
            close["other_scores"], strict=True,
        )
    ]  # fmt: skip
    found.sort(key=lambda document: document.margin)
    names: Sequence[str] = [*(label.name for label in made), NONE_NAME]
    counts = {name: sum(name in (document.labels or (NONE_NAME,)) for document in found) for name in names}
    if not counts[NONE_NAME]:
        del counts[NONE_NAME]
    return Trial(tuple(found), counts, engine, adapts, time.monotonic() - began)
