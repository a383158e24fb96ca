"""Documents with the same text are one hit: one text in several formats, copies, near duplicates."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ...indexer.store.passages import passage_surroundings
from ...indexer.store.view import View, normalized
from .fusion import Ranked

NEAR = 0.85
"""Least cosine of two passages for which their texts are compared."""
SAME = 0.8
"""Least share of the pieces of one text that the other must have to count as the same."""
PIECES, PIECE = 20, 16
"""How many pieces are looked for, and how many letters and digits each has."""
SHORT = 200
"""Letters and digits below which two texts, their titles included, must each have the pieces of the other."""
MARGIN = 1_500
"""Characters around a passage that are searched too: two formats of a text are not split at the same places."""
BEYOND = 50
"""Documents examined beyond those that are wanted."""
FEW = 50_000
"""Pairs of passages up to which they are compared in this thread alone."""

_SIGNS = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True)
class Collapsed:
    """Ranked documents of which no two have the same text.

    Attributes:
        ranked: The best document of each text, in the order given.
        copies: For the row of such a document, the rows of those that were left out for it, best first.
    """

    ranked: Ranked
    copies: Mapping[int, Sequence[int]] = field(default_factory=dict)


def collapse(view: View, ranked: Ranked, wanted: int) -> Collapsed:
    """Leave out documents whose best passage repeats that of a better document.

    Whether a document is left out depends only on those above it, so pages of different sizes are consistent.

    Args:
        view: Where texts and vectors come from.
        ranked: One passage for each document, best first.
        wanted: How many documents are needed. Fewer are returned only if there are no more.
    """
    groups, step = _Groups(view), wanted + BEYOND
    for start in range(0, len(ranked.rows), step):
        groups.add(ranked.rows[start : start + step])
        if len(groups.first) >= wanted:
            break
    first = set(groups.first)
    places = np.array([place for place, row in enumerate(ranked.rows.tolist()) if row in first], dtype=np.int64)
    return Collapsed(ranked.take(places), groups.copies)


class _Groups:
    """The texts seen so far, each with the row that stands for it."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.first: list[int] = []
        self.copies: dict[int, list[int]] = {}
        self._vectors = np.empty((0, view.generation.segments.dimension), np.float32)
        self._texts: dict[int, _Text] = {}

    def add(self, rows: np.ndarray) -> None:
        """Put rows, best first, with the text that they repeat, or make them the first of a new one."""
        vectors = normalized(self.view.generation.segments.read(rows))
        near = np.greater_equal(_products(np.concatenate([self._vectors, vectors]), vectors), NEAR)
        own = np.arange(len(rows))
        near[len(self.first) + own, own] = False
        known = [*self.first, *rows.tolist()]
        kept = np.concatenate([np.ones(len(self.first), bool), np.zeros(len(rows), bool)])
        alone = np.logical_not(near.any(axis=0))
        compared = np.array(near.any(axis=1))
        compared[len(self.first) :] |= ~alone  # near to one of an earlier batch, or only one way round
        self._read([known[i] for i in np.flatnonzero(compared)])
        for place, row in enumerate(rows.tolist()):
            likely = np.empty(0, int) if alone[place] else np.flatnonzero(near[:, place] & kept)
            same = next((known[i] for i in likely.tolist() if self._texts[known[i]].repeats(self._texts[row])), None)
            if same is None:
                kept[len(self.first) + place] = True
            else:
                self.copies.setdefault(same, []).append(row)
        self._vectors = np.concatenate([self._vectors, vectors])[kept]
        self.first = [row for row, first in zip(known, kept.tolist(), strict=True) if first]

    def _read(self, rows: Sequence[int]) -> None:
        missing = [row for row in rows if row not in self._texts]
        for row, *text in passage_surroundings(self.view.catalog, missing, MARGIN):
            self._texts[row] = _Text(*text)


def _products(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return float [n, m], the inner products of all pairs.

    On a busy machine, BLAS waits longer for its threads than a small product takes.
    """
    if len(first) * len(second) > FEW:
        return first @ second.T
    return np.einsum("id,jd->ij", first, second)


class _Text:
    """A passage and what is around it, as letters and digits alone: formats differ in white space and signs."""

    def __init__(self, title: str, passage: str, around: str) -> None:
        self.passage = _SIGNS.sub("", passage.casefold())
        self.short = len(self.passage) < SHORT
        if self.short:
            self.passage = _SIGNS.sub("", title.casefold()) + self.passage
        self.around = self.passage if self.short else _SIGNS.sub("", around.casefold())

    def repeats(self, other: "_Text") -> bool:
        """Return whether both have the same text; of two long ones, the shorter must be within the longer."""
        if self.short or other.short:
            return self._within(other) and other._within(self)
        return self._within(other) if len(self.passage) <= len(other.passage) else other._within(self)

    def _within(self, other: "_Text") -> bool:
        if not self._pieces:
            return self.passage == other.passage
        missing, bearable = 0, len(self._pieces) - SAME * len(self._pieces)
        for piece in self._pieces:
            missing += piece not in other.around
            if missing > bearable:
                return False
        return True

    @cached_property
    def _pieces(self) -> list[str]:
        """Pieces of the text at equal distances; none of a text that is shorter than one."""
        last = len(self.passage) - PIECE
        starts = {round(place * last / (PIECES - 1)) for place in range(PIECES)} if last >= 0 else ()
        return [self.passage[start : start + PIECE] for start in starts]
