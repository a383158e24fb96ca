"""Passages in the order of one query, on their way to becoming hits."""

from dataclasses import dataclass

import numpy as np

from .results import Scores


@dataclass(frozen=True, slots=True)
class Ranked:
    """Passages of one query, best first, with the parts of their scores; `candidates` tells how many a half found."""

    rows: np.ndarray
    scores: np.ndarray
    dense: np.ndarray | None
    lexical: np.ndarray | None
    candidates: int

    def take(self, places: np.ndarray) -> "Ranked":
        """Return the passages at these places."""
        dense, lexical = (None if part is None else part[places] for part in (self.dense, self.lexical))
        return Ranked(self.rows[places], self.scores[places], dense, lexical, self.candidates)

    def grouped(self, owners: np.ndarray) -> "Ranked":
        """Keep the best passage of every document."""
        _, first = np.unique(owners[self.rows], return_index=True)
        return self.take(np.sort(first))

    def followed_by(self, other: "Ranked", owners: np.ndarray) -> "Ranked":
        """Append the documents of a deeper search that are not here yet; their scores are kept below those here."""
        if not len(self.rows):
            return other
        more = other.take(np.flatnonzero(~np.isin(owners[other.rows], owners[self.rows])))
        last, top = float(self.scores[-1]), float(more.scores.max(initial=0.0))
        pairs = [(self.dense, more.dense), (self.lexical, more.lexical)]
        dense, lexical = (None if a is None or b is None else np.concatenate([a, b]) for a, b in pairs)
        scores = np.concatenate([self.scores, more.scores * (last / top if top > last >= 0 else 1.0)])
        return Ranked(np.concatenate([self.rows, more.rows]), scores, dense, lexical, other.candidates)

    def above(self, threshold: float | None) -> "Ranked":
        """Keep what is at least as similar as the threshold: the cosine where there is one, else BM25."""
        similarity = self.dense if self.dense is not None else self.lexical
        return self if threshold is None or similarity is None else self.take(np.flatnonzero(similarity >= threshold))

    def scores_at(self, place: int) -> Scores:
        """Return the parts of one passage's score."""
        return Scores(
            dense=None if self.dense is None else float(self.dense[place]),
            lexical=None if self.lexical is None else float(self.lexical[place]),
        )


NOTHING = Ranked(np.empty(0, np.int64), np.empty(0, np.float32), None, None, 0)
