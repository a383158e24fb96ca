"""Which documents a label run is least sure of: what is worth a person's look."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ...indexer.errors import UsageError, arg
from ...indexer.store.collection import StoredCollection
from ...indexer.store.kinds import CORRECTION, LABEL
from ...indexer.store.members import documents_named_by
from ...indexer.store.runs import array_of, assignments_of, find_run, items_of
from .labels import probabilities
from .outcome import NONE, NONE_NAME


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
