"""The relevance of a query's candidates in one view of a collection."""

from dataclasses import dataclass

import numpy as np

from ...indexer.encoder.scale import DEFAULT_SCALE, SimilarityScale, known_scale, scale_of
from ...indexer.errors import SondeError
from ...indexer.lexical import QueryWords
from ...indexer.store.view import View
from .candidates import Candidates
from .relevance import WEAK, Calibration, Surroundings, relevance
from .settings import DEPTH, PROPERTY, SearchDefaults


@dataclass(frozen=True, slots=True)
class Estimate:
    """How relevance is estimated in one view.

    Attributes:
        view: The view that is searched.
        searched: Number of passages that the filter allows.
        calibration: Fitted on the user's own questions; it replaces Sonde's estimate.
    """

    view: View
    searched: int
    calibration: Calibration | None

    @classmethod
    def over(cls, view: View, allowed: np.ndarray | None) -> "Estimate":
        """Prepare estimates in a view; `allowed` is bool [rows], the rows that may be found, or None for all."""
        searched = len(view.generation.owners) if allowed is None else int(np.count_nonzero(allowed))
        return cls(view, searched, SearchDefaults.of(view.catalog.get(PROPERTY)).calibration)

    @property
    def weak(self) -> float:
        """The relevance below which a hit is weak."""
        return self.calibration.weak if self.calibration else WEAK

    def query_words(self, query: str) -> QueryWords:
        """Return what the words of a query are worth in this collection."""
        index = self.view.generation.lexical
        return index.words(query) if index else QueryWords(0, 0.0, 0.0)

    def relevance(
        self, dense: Candidates, similarity: np.ndarray, standing: np.ndarray, words: np.ndarray | None = None
    ) -> np.ndarray | None:
        """Return float64 [n], the relevance of passages; None if nothing was found.

        Args:
            dense: The query's dense candidates, best first.
            similarity: float [n], the passages' similarities.
            standing: float [n], their fused scores, 0 to 1.
            words: float [n], the share of the query's words that each has; None if words were not searched.
        """
        if not len(dense.rows):
            return None
        if self.calibration is not None:
            return self.calibration.chances(similarity)
        scale = self._scale()
        near = self.view.generation.segments.read(dense.rows[:DEPTH])
        surroundings = Surroundings.of(dense.scores[:DEPTH], near, self.searched, scale)
        given = np.zeros(len(similarity)) if words is None else words
        standard = scale.standard(similarity.astype(np.float64))
        return relevance(surroundings, standard, standing, given, float(given.max(initial=0.0)))

    def _scale(self) -> SimilarityScale:
        """Return the levels of the collection's model; those of the default model if it is not available."""
        collection = self.view.collection
        known = known_scale(collection.spec)
        if known is not None:
            return known
        try:
            return scale_of(collection.encoder) if collection.encoder_at_hand else DEFAULT_SCALE
        except SondeError:  # `similar` works without the model, so it must not fail for the model's sake
            return DEFAULT_SCALE


def shares(told: QueryWords, bm25: np.ndarray) -> np.ndarray:
    """Return float [n], the share of the query's words that passages with these scores have, 0 to 1."""
    return np.minimum(multiples(told, bm25), 1.0)


def multiples(told: QueryWords, bm25: np.ndarray) -> np.ndarray:
    """Return float [n], scores as multiples of what a passage gets that has each word once; 0 or more."""
    return np.maximum(bm25 / told.information, 0.0) if told.information > 0 else np.zeros(len(bm25))
