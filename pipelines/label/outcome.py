"""What a labelling found: the labels of each text, a summary, and the texts that most need a review."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ...indexer.errors import UsageError, arg
from ...indexer.store.collection import StoredCollection
from ...indexer.store.kinds import CORRECTION, LABEL
from ...indexer.store.members import documents_named_by
from ...indexer.store.runs import array_of, assignments_of, find_run, items_of
from .labels import NONE, NONE_NAME, Label, probabilities


@dataclass(frozen=True, slots=True)
class Classified:
    """The labels of one text.

    Attributes:
        labels: Names that it gets, the likeliest first; one, or several, or none of them.
        scores: The probability of every label by name, the likeliest first.
        engine: What gave them: "nli", "similarity" …
        model: Its model.
    """

    labels: tuple[str, ...]
    scores: Mapping[str, float]
    engine: str
    model: str

    @property
    def label(self) -> str:
        """The likeliest label, or "none of these"."""
        return self.labels[0] if self.labels else NONE_NAME

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        found = asdict(self)
        return {"label": self.label, **found, "labels": list(self.labels)}


@dataclass(frozen=True, slots=True)
class LabelReport:
    """What a run over a collection did.

    Attributes:
        name: The run's name.
        engine: "nli", "similarity", "reranker" or "ensemble".
        model: What judged: an NLI model or reranker, or the bi-encoder.
        documents: How many documents it labelled.
        counts: Documents by label, "none of these" included.
        calls: Judgements of a document against a label; 0 for similarity.
        full_calls: What judging every document against every label would take.
        judged: Documents that the judge read; the others' labels were carried to them.
        agreement: Share of held-back documents with the judge's own label, 0 to 1; None where all were judged.
        held_back: How many documents that was measured on.
        corrected: Documents whose label a person gave.
        changed: Documents that changed meanwhile, of which it says nothing.
        seconds: How long it took.
    """

    name: str
    engine: str
    model: str
    documents: int
    counts: Mapping[str, int]
    calls: int
    full_calls: int
    judged: int
    agreement: float | None
    held_back: int
    corrected: int
    changed: int
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return asdict(self)


def decide(margins: np.ndarray, multi_label: bool, least: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return which texts get which labels with what probability: int64 texts, int64 labels, float64 scores, by text.

    A text of which no label reaches `least` gets -1, with the best probability that it has.
    """
    shares = probabilities(margins, multi_label)
    best = shares.argmax(axis=1)
    given = shares >= max(least, 1e-12) if multi_label else np.zeros(shares.shape, bool)
    if not multi_label:
        given[np.arange(len(best)), best] = shares.max(axis=1) >= least
    texts, labels = np.nonzero(given)
    nothing = np.flatnonzero(~given.any(axis=1))
    texts = np.concatenate([texts, nothing])
    labels = np.concatenate([labels, np.full(len(nothing), NONE)])
    scores = np.where(labels < 0, shares.max(axis=1)[texts], shares[texts, labels])
    order = np.lexsort((labels, -scores, texts))
    return texts[order], labels[order], scores[order]


def apply_corrections(
    texts: np.ndarray, labels: np.ndarray, scores: np.ndarray, known: np.ndarray, truth: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return what `decide` found, with the labels that a person gave in place of those of the texts `known`.

    Args:
        texts: int64, by text.
        labels: int64, of each.
        scores: float64, of each.
        known: int64 [m] texts.
        truth: float [m, labels], 1 for each label that a text has.
    """
    if not len(known):
        return texts, labels, scores
    others = ~np.isin(texts, known)
    rows, given = np.nonzero(truth > 0)
    none = known[~(truth > 0).any(axis=1)]
    texts = np.concatenate([texts[others], known[rows], none])
    labels = np.concatenate([labels[others], given, np.full(len(none), NONE)])
    scores = np.concatenate([scores[others], np.ones(len(rows) + len(none))])
    order = np.lexsort((labels, -scores, texts))
    return texts[order], labels[order], scores[order]


def classified(
    margins: np.ndarray, labels: Sequence[Label], multi_label: bool, least: float, engine: str, model: str
) -> list[Classified]:
    """Return each text's labels and the probabilities of all."""
    found: list[Classified] = []
    for row in probabilities(margins, multi_label):
        order = np.argsort(-row, kind="stable")
        given = [n for n in order.tolist() if row[n] >= least][: None if multi_label else 1]
        scores = {labels[n].name: float(row[n]) for n in order.tolist()}
        found.append(Classified(tuple(labels[n].name for n in given), scores, engine, model))
    return found


@dataclass(frozen=True, slots=True)
class Unsure:
    """A document and how unsure its label is.

    Attributes:
        id: The document's.
        title: Its title.
        text: Its text.
        labels: What it got, the likeliest first; empty for "none of these".
        score: The probability of the first, 0 to 1.
        other: The label that came closest to being given, or, of several, to being another answer.
        margin: How far that was from it, as a difference of probabilities: 0 is a draw.
    """

    id: str
    title: str
    text: str
    labels: tuple[str, ...]
    score: float
    other: str
    margin: float

    @property
    def label(self) -> str:
        """The likeliest label, or "none of these"."""
        return self.labels[0] if self.labels else NONE_NAME

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return asdict(self) | {"labels": list(self.labels), "label": self.label}


def closeness(margins: np.ndarray, multi_label: bool, least: float) -> dict[str, np.ndarray]:
    """Return what a run keeps for its review: float32 [n] "margins" and int32 [n] "others".

    With one label per text, a margin is the difference between the two best probabilities (or to `least`, if that is
    nearer), and the other is the second label; with several, it is the smallest distance of a probability from `least`.
    """
    shares = probabilities(margins, multi_label)
    rows = np.arange(len(shares))
    if multi_label or shares.shape[1] == 1:
        apart = np.abs(shares - least)
        other = apart.argmin(axis=1)
        return {"margins": apart[rows, other].astype(np.float32), "others": other.astype(np.int32)}
    order = np.argsort(-shares, axis=1, kind="stable")[:, :2]
    best, second = shares[rows, order[:, 0]], shares[rows, order[:, 1]]
    other = np.where(best < least, order[:, 0], order[:, 1])
    apart = np.where(best < least, least - best, np.minimum(best - second, best - least if least else 1))
    return {"margins": apart.astype(np.float32), "others": other.astype(np.int32)}


def unsure(collection: StoredCollection, run: str | None = None, k: int = 20, offset: int = 0) -> list[Unsure]:
    """Return the documents whose label is least sure, those with the smallest margin first, without corrected ones.

    Args:
        collection: The collection.
        run: The label run; the newest where None.
        k: How many, 1 or more.
        offset: How many to leave out at the top.

    Raises:
        SondeError: There is no such run, or it was made before runs kept what this needs.
        UsageError: k is below 1, or the offset below 0.
    """
    if k < 1 or offset < 0:
        said = f"{arg('k')} is {k} and {arg('offset')} {offset}: give 1 or more hits, and 0 or more to leave out"
        raise UsageError(said, code="out-of-range", field="k" if k < 1 else "offset", value=k if k < 1 else offset)
    with collection.view() as view:
        found = find_run(view.catalog, LABEL, run)
        docs, margins, others = (array_of(view.catalog, found, name) for name in ("documents", "margins", "others"))
        names = {item.number: item.name for item in items_of(view.catalog, found)}
        given, items, scores = assignments_of(view.catalog, found)
        corrected = documents_named_by(view.catalog, CORRECTION, found.name)
        open_ = np.isin(docs, given) & ~np.isin(docs, corrected)
        rows = np.flatnonzero(open_)
        rows = rows[np.lexsort((docs[rows], margins[rows]))][offset : offset + k]
        documents = view.documents(docs[rows].tolist())
        labels = {int(doc): (items[given == doc], scores[given == doc]) for doc in docs[rows]}
    return [
        Unsure(
            documents[doc].id, documents[doc].title, documents[doc].text,
            tuple(names[number] for number in labels[doc][0].tolist() if number != NONE), float(labels[doc][1][0]),
            names[int(other)], float(margin),
        )
        for doc, other, margin in zip(docs[rows].tolist(), others[rows], margins[rows], strict=True)
    ]  # fmt: skip
