"""Names of clusters and topics from candidate labels: the label that most of a group's typical texts get."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...indexer.encoder import Encoder
from ...indexer.errors import UsageError
from ...indexer.progress import Notify, silent
from .threads import one_thread

ENGINES = ("similarity", "nli")
READ = 5
"""Typical texts of a group that NLI reads; similarity compares all that it is given."""
SHORTLIST = 10
"""Labels that NLI reads a text against, the most similar ones."""
LEAST = 0.5
"""The share of its typical texts that a group's label must have."""
ADAPT_TO = 20_000
"""Texts beside the typical ones that labels adapt to, at most."""


@dataclass(frozen=True, slots=True)
class GroupLabel:
    """The label of a group: None if no label has half of its typical texts; `share` is that of the commonest."""

    label: str | None
    share: float


def check_labels(labels: Sequence[str], engine: str) -> None:
    """Check candidate labels before the work is done.

    Raises:
        UsageError: There is but one, one is empty or comes twice, or there is no such engine.
    """
    from ..label.labels import make_labels

    if engine not in ENGINES:
        raise UsageError(f"--engine is {engine!r}: use {', '.join(ENGINES)}")
    if labels:
        make_labels(labels)
    elif engine != ENGINES[0]:
        raise UsageError(f"--engine {engine} chooses among labels: give --labels or --labels-file too")


def label_groups(
    encoder: Encoder, vectors: np.ndarray, typical: Sequence[np.ndarray], read: Callable[[np.ndarray], list[str]],
    labels: Sequence[str], engine: str, notify: Notify = silent, judge: Any = None,
) -> list[GroupLabel]:  # fmt: skip
    """Return a label for each group of texts.

    Args:
        encoder: The collection's.
        vectors: float32 [n, d], of length 1: all texts, to which labels adapt as in `sonde label`.
        typical: int64 rows of each group's most typical texts, the most typical first.
        read: Returns the texts in some rows.
        labels: Candidates, "name" or "name: description".
        engine: "similarity" or "nli".
        notify: Receives sentences.
        judge: An NLI judge in place of the one that is loaded.

    Raises:
        SondeError: A model cannot be had.
    """
    from ..label.engines import load_judge
    from ..label.labels import make_labels
    from ..label.scale import probabilities

    if not typical:
        return []
    made, groups = make_labels(labels), list(typical)
    if engine == "nli":
        groups = [rows[:READ] for rows in groups]
        judge = judge or load_judge("nli", notify=notify)
    rows = np.unique(np.concatenate(groups))
    with one_thread():
        margins = _similar(encoder, vectors, rows, made)
        if engine == "nli":
            notify(f"reading {len(rows):,} typical texts against the labels")
            margins = judge.margins(read(rows), made, False, _shortlist(margins))
    shares = probabilities(margins, False)
    return [_chosen(shares[np.searchsorted(rows, some)], [label.name for label in made]) for some in groups]


def label_names(found: Sequence[GroupLabel | None], own: Sequence[str]) -> list[str]:
    """Return a name for each group: its label, with the group's own name after it where several have this label.

    Args:
        found: Of each group; None for one that was not labelled.
        own: Names made of terms.
    """
    counts = Counter(each.label for each in found if each and each.label)
    return [
        name if not each or not each.label else each.label if counts[each.label] == 1 else f"{each.label}: {name}"
        for each, name in zip(found, own, strict=True)
    ]


def _similar(encoder: Encoder, vectors: np.ndarray, rows: np.ndarray, labels: Any) -> np.ndarray:
    """Return float32 [rows, labels] margins by similarity, of labels that have adapted to the corpus."""
    from ..label.similarity import ENOUGH, adapted_margins, label_vectors, similarity_margins

    of_labels = label_vectors(encoder, labels)
    if len(vectors) < ENOUGH:
        return similarity_margins(vectors[rows], of_labels, False)
    some = np.random.default_rng(0).choice(len(vectors), min(ADAPT_TO, len(vectors)), replace=False)
    every = np.union1d(rows, some)
    return adapted_margins(vectors[every], of_labels)[np.searchsorted(every, rows)]


def _shortlist(margins: np.ndarray) -> np.ndarray | None:
    if margins.shape[1] <= SHORTLIST:
        return None
    order = np.argsort(-margins, axis=1, kind="stable")[:, :SHORTLIST]
    chosen = np.zeros(margins.shape, bool)
    np.put_along_axis(chosen, order, True, axis=1)
    return chosen


def _chosen(shares: np.ndarray, names: Sequence[str]) -> GroupLabel:
    """Let texts, float [n, labels], vote; of equal labels the one with the higher mean probability wins."""
    votes = np.bincount(shares.argmax(axis=1), minlength=len(names)) / len(shares)
    best = int(np.lexsort((-shares.mean(axis=0), -votes))[0])
    share = round(float(votes[best]), 4)
    return GroupLabel(names[best] if share >= LEAST else None, share)
