"""The results of a labelling: the labels of each text, a summary, and the texts that most need review."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ...indexer.store.tabular import Shown
from .labels import NONE, NONE_NAME, Label


@dataclass(frozen=True, slots=True)
class Classified:
    """The labels of one text.

    Attributes:
        labels: Names of the text's labels, most likely first: one, several or none.
        scores: The probability of every label by name, most likely first.
        engine: The engine that labelled the text: "nli", "similarity" …
        model: The engine's model.
        none: The chance that none of the labels fits, 0 to 1; None if a text may get several labels.
    """

    labels: tuple[str, ...]
    scores: Mapping[str, float]
    engine: str
    model: str
    none: float | None = None

    @property
    def label(self) -> str:
        """The most likely label, or "none of these"."""
        return self.labels[0] if self.labels else NONE_NAME

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        found = asdict(self)
        return {"label": self.label, **found, "labels": list(self.labels)}


@dataclass(frozen=True, slots=True, repr=False)
class LabelReport(Shown):
    """Report of a label run on a collection.

    Attributes:
        name: The run's name.
        engine: "nli", "similarity", "reranker" or "ensemble".
        model: The model that judged: an NLI model, a reranker or the bi-encoder.
        documents: Number of labelled documents.
        counts: Number of documents by label, including "none of these".
        calls: Number of judgements of a document against a label; 0 for similarity.
        full_calls: Number of judgements needed to judge every document against every label.
        judged: Number of documents that the judge read; the labels of the others are predicted.
        agreement: Share of held-back documents that get the judge's own label, 0 to 1; None if all were judged.
        held_back: Number of held-back documents.
        corrected: Number of documents with corrected labels.
        changed: Number of documents that changed during the run; they have no label.
        seconds: Duration in seconds.
        likely_none: Number of documents that more likely than not fit no label; None with several labels per
            text.
        doubtful: Names of labels that a third of all documents got, mostly by a narrow margin.
        notes: What to check and what to do about it, in sentences.
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
    likely_none: int | None = None
    doubtful: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    _row = "label"

    def rows(self) -> list[dict[str, Any]]:
        """Return one row for each label, as JSON values."""
        return [{"label": label, "documents": count} for label, count in self.counts.items()]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return asdict(self) | {"doubtful": list(self.doubtful), "notes": list(self.notes)}


def decide(
    shares: np.ndarray, multi_label: bool, least: float,
    none: np.ndarray | None = None, refused: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """Assign labels to texts; return int64 texts, int64 labels and float64 scores, ordered by text.

    If no label of a text reaches `least`, the text gets the label -1 and its best probability. A refused text gets the
    label -1 and its chance of none.

    Args:
        shares: float [n, labels], the probability of each label.
        multi_label: Whether a text may get several labels.
        least: Minimum probability of a label.
        none: float [n], the chance of none of each text, if there is one.
        refused: bool [n], the texts that get no label; none of them if None.
    """
    best = shares.argmax(axis=1)
    given = shares >= max(least, 1e-12) if multi_label else np.zeros(shares.shape, bool)
    if not multi_label:
        given[np.arange(len(best)), best] = shares.max(axis=1) >= least
    if refused is not None:
        given[refused] = False
    texts, labels = np.nonzero(given)
    nothing = np.flatnonzero(~given.any(axis=1))
    texts = np.concatenate([texts, nothing])
    labels = np.concatenate([labels, np.full(len(nothing), NONE)])
    scores = np.where(labels < 0, shares.max(axis=1)[texts], shares[texts, labels])
    if none is not None and refused is not None:
        scores = np.where((labels < 0) & refused[texts], none[texts], scores)
    order = np.lexsort((labels, -scores, texts))
    return texts[order], labels[order], scores[order]


def apply_corrections(
    texts: np.ndarray, labels: np.ndarray, scores: np.ndarray, known: np.ndarray, truth: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the result of `decide` with the labels of the texts `known` replaced by their corrections.

    Args:
        texts: int64, ordered by text.
        labels: int64, the label of each entry.
        scores: float64, the score of each entry.
        known: int64 [m] corrected texts.
        truth: float [m, labels], 1 for each label of a corrected text.
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
    shares: np.ndarray, labels: Sequence[Label], multi_label: bool, least: float, engine: str, model: str,
    none: np.ndarray | None = None, refused: np.ndarray | None = None,
) -> list[Classified]:  # fmt: skip
    """Return the labels of each text and the probabilities of all labels; see `decide` for the arguments."""
    found: list[Classified] = []
    for place, row in enumerate(shares):
        order = np.argsort(-row, kind="stable")
        given = [n for n in order.tolist() if row[n] >= least][: None if multi_label else 1]
        kept = () if refused is not None and refused[place] else tuple(labels[n].name for n in given)
        scores = {labels[n].name: float(row[n]) for n in order.tolist()}
        found.append(Classified(kept, scores, engine, model, None if none is None else float(none[place])))
    return found


MUCH = 1 / 3
NARROW = 0.4


def doubtful(labels: Sequence[Label], numbers: np.ndarray, texts: np.ndarray, apart: np.ndarray) -> tuple[str, ...]:
    """Return the labels that a third of all texts got although, for most of them, another label was close.

    With fewer than four labels, a third is nothing unusual, so none is returned.

    Args:
        labels: All labels.
        numbers: int64 [m], the label of each entry.
        texts: int64 [m], the text of each entry.
        apart: float [n], the margin of each text, 0 to 1.
    """
    if len(labels) < 4:
        return ()
    taken = [apart[texts[numbers == number]] for number in range(len(labels))]
    return tuple(
        label.name for label, margins in zip(labels, taken, strict=True)
        if len(margins) >= MUCH * len(apart) and np.median(margins) < NARROW
    )  # fmt: skip


def beside_refusal(
    close: dict[str, np.ndarray], none: np.ndarray | None, refused: np.ndarray | None, shares: np.ndarray
) -> dict[str, np.ndarray]:
    """Return what `closeness` returns for a run that refuses texts.

    The margin of a refused text is how far its chance of none is from the lowest one that was refused, and the other is
    its best label. Other texts have the smaller one of this distance and their margin; if it is this distance, the
    other is `NONE`, with the chance of none.

    Args:
        close: What `closeness` returned.
        none: float [n], the chance of none of each text, if there is one.
        refused: bool [n], the texts that get no label; none of them if None.
        shares: float [n, labels], the probability of each label.
    """
    if none is None or refused is None or not refused.any():
        return close
    apart = np.abs(none - none[refused].min()).astype(np.float32)
    nearly = ~refused & (apart < close["margins"])
    others = np.where(refused, shares.argmax(axis=1), np.where(nearly, NONE, close["others"]))
    scores = np.where(refused, shares.max(axis=1), np.where(nearly, none, close["other_scores"]))
    return {
        "margins": np.where(refused | nearly, apart, close["margins"]), "others": others.astype(np.int32),
        "other_scores": scores.astype(np.float32),
    }  # fmt: skip


def closeness(shares: np.ndarray, multi_label: bool, least: float) -> dict[str, np.ndarray]:
    """Return what a run stores for review: float32 [n] "margins", int32 [n] "others", float32 [n] "other_scores".

    With one label per text, the margin is the difference between the two best probabilities, and the other is the
    second label. If `least` is closer than that, the margin is the distance to it, and the other is `NONE`, whose score
    is NaN. If no label reaches `least`, the other is the best label. With several labels per text, the margin is the
    smallest distance of a probability from `least`, and the other is its label.
    """
    rows = np.arange(len(shares))
    if multi_label or shares.shape[1] == 1:
        apart = np.abs(shares - least)
        other = apart.argmin(axis=1)
        return _close(apart[rows, other], other, shares[rows, other])
    order = np.argsort(-shares, axis=1, kind="stable")[:, :2]
    best, second = shares[rows, order[:, 0]], shares[rows, order[:, 1]]
    above = best - least if least else np.ones_like(best)
    nearly = (above >= 0) & (above < best - second)
    other = np.where(best < least, order[:, 0], np.where(nearly, NONE, order[:, 1]))
    score = np.where(best < least, best, np.where(nearly, np.nan, second))
    return _close(np.where(best < least, least - best, np.minimum(best - second, above)), other, score)


def _close(apart: np.ndarray, other: np.ndarray, score: np.ndarray) -> dict[str, np.ndarray]:
    return {
        "margins": apart.astype(np.float32), "others": other.astype(np.int32), "other_scores": score.astype(np.float32)
    }  # fmt: skip
