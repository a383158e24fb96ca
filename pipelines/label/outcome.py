"""What a labelling found: which labels a text gets, and what a run says of itself."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from .labels import Label, probabilities

NONE = -1
"""The number of "none of these"."""
NONE_NAME = "none of these"


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


def heeded(
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
