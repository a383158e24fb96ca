"""Relevance: an estimate of the chance that a person would call a hit an answer, the same scale for every search.

It is the product of two chances: that the collection has an answer, and that this hit is one if so. The first is
computed from the similarities themselves, on a scale that all models share. It must not be relative to the query's
other hits: compared with many unrelated texts, the best of them looks like an answer. The second is relative: it falls
with the distance from the best hit. The constants were fitted on the sets that docs/decisions/0035 names.
"""

from dataclasses import dataclass

import numpy as np

from ...indexer.encoder.scale import SimilarityScale

WEAK = 0.33
"""Relevance below which a hit is marked weak, unless the collection has a threshold of its own."""

BEST = 5
"""Passages whose mean similarity shows whether there is an answer; fewer if fewer are searched."""
SMALL = 81
"""Number of searched passages below which only the best one is used: the others need not be on the subject."""
NEIGHBOURS = 10
"""Passages near the best one that show how crowded its surroundings are."""
CROWDED, CROWDING = 1.42, 0.5
"""Similarity among passages above which they are crowded, and the share of the excess that is subtracted."""
WORDS = 0.13
"""What the nearest passage adds to the similarity if it has all of the query's words."""
MIDDLE, STEEP = 0.52, 7.75
"""Where the chance of an answer is one half, and how fast it rises there."""
BASE, CLOSE, USUAL = 0.35, 0.58, 0.9
"""The best hit's chance: its log odds at the usual similarity, and how much they rise with it."""
DROP, DROP_OF_WORDS, MARGIN = 4.0, 5.5, 0.74
"""How fast the log odds fall with the fused score, the same if one hit has all words, and with the similarity."""
MOST_WORDS = 4
"""The power of the share of words in one hit: the others are much less likely only if it has nearly all words."""
SAME, SAME_STEEP = 1.55, 10.0
"""The similarity of texts that say the same in other words, and the slope there: such a hit is as good as the best."""
LEXICAL_MIDDLE, LEXICAL_STEEP = 0.43, 5.4
"""The same as `MIDDLE` and `STEEP` for a search by words alone: the share of the query's words in the best hit."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """How a collection's similarities become chances, fitted on its user's own questions.

    Attributes:
        slope: How fast the log odds rise with the similarity.
        middle: The similarity at which the chance is one half.
        threshold: The similarity below which a hit is weak.
    """

    slope: float
    middle: float
    threshold: float

    def chances(self, similarities: np.ndarray) -> np.ndarray:
        """Return float64 [n], the chances 0 to 1 of hits with these similarities."""
        return _chance(self.slope * (np.asarray(similarities, np.float64) - self.middle))

    @property
    def weak(self) -> float:
        """The relevance below which a hit is weak."""
        return float(self.chances(np.array([self.threshold]))[0])


def fitted(similarities: np.ndarray, right: np.ndarray, threshold: float) -> Calibration:
    """Return the calibration of questions with known answers, by logistic regression.

    Platt, "Probabilistic Outputs for Support Vector Machines", 1999: the targets are moved a little from 0 and 1, so
    that perfectly separated questions do not give an infinite slope.

    Args:
        similarities: float [n], that of each question's best hit.
        right: bool [n], whether that hit is right.
        threshold: The similarity below which a hit is weak.
    """
    positive, negative = int(right.sum()), int((~right).sum())
    target = np.where(right, (positive + 1) / (positive + 2), 1 / (negative + 2))
    center, spread = float(similarities.mean()), max(float(similarities.std()), 1e-6)
    inputs = np.stack([np.ones(len(similarities)), (similarities - center) / spread], axis=1)
    odds = np.zeros(2)
    for _ in range(50):
        chance = _chance(inputs @ odds)
        curvature = inputs.T @ (inputs * (chance * (1 - chance))[:, None]) + 1e-6 * np.eye(2)
        odds += np.clip(np.linalg.solve(curvature, inputs.T @ (target - chance)), -2, 2)
    slope = max(float(odds[1]), 1e-3)  # a relevance that falls with similarity would be of no use
    return Calibration(slope / spread, center - float(odds[0]) / slope * spread, threshold)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a query's dense candidates show about the whole result.

    Attributes:
        best: Mean similarity of the best passages, on the scale that all models share.
        crowding: Mean similarity of the best passage and its nearest ones, on the same scale.
    """

    best: float
    crowding: float

    @classmethod
    def of(cls, similarities: np.ndarray, vectors: np.ndarray, searched: int, scale: SimilarityScale) -> "Surroundings":
        """Summarise a query's nearest passages.

        Args:
            similarities: float [n], n at least 1, best first.
            vectors: float [n, d], the passages' embeddings.
            searched: Number of passages that were searched. Of a small collection, fewer are averaged.
            scale: That of the model.
        """
        count = min(BEST, int(searched**0.25)) if searched >= SMALL else 1
        standard = scale.standard(np.asarray(similarities, np.float64))
        near = np.sort(scale.standard((vectors[1:] @ vectors[0]).astype(np.float64)))[::-1][:NEIGHBOURS]
        return cls(float(standard[:count].mean()), float(near.mean()) if len(near) else 0.0)

    def evidence(self, words: float) -> float:
        """Return how near the passages are to the query; `words` is the share of its words in the nearest passage."""
        return self.best - CROWDING * max(0.0, self.crowding - CROWDED) + WORDS * words


def relevance(
    surroundings: Surroundings, standard: np.ndarray, standing: np.ndarray, words: np.ndarray, cover: float
) -> np.ndarray:
    """Return float64 [n], the relevance of each passage, 0 to 1.

    Args:
        surroundings: Of the query's dense candidates.
        standard: float [n], the passages' similarities on the scale that all models share.
        standing: float [n], their scores fused from both halves, 0 to 1.
        words: float [n], the share of the query's words that each has, weighted by rarity, 0 to 1.
        cover: The greatest of such shares among the lexical candidates.
    """
    if not len(standing):
        return np.empty(0)
    first = int(np.argmax(standing))
    evidence = surroundings.evidence(float(words[np.argmax(standard)]))
    drop, margin = standing - standing[first], np.minimum(standard - standard[first], 0.0)
    odds = BASE + CLOSE * (evidence - USUAL) + (DROP + DROP_OF_WORDS * cover**MOST_WORDS) * drop + MARGIN * margin
    chances = _chance(odds)
    as_good = chances[first] * _chance(SAME_STEEP * (standard - SAME))
    return _chance(STEEP * (evidence - MIDDLE)) * np.maximum(chances, as_good)


def lexical_relevance(words: np.ndarray) -> np.ndarray:
    """Return float64 [n], the relevance of hits of a search by words alone.

    Args:
        words: float [n], their BM25 scores as multiples of what a passage gets that has each word once; best first.
    """
    if not len(words):
        return np.empty(0)
    drop = (words - words[0]) / max(float(words[0]), 1.0)  # words that are repeated do not count as missing elsewhere
    whole = min(float(words[0]), 1.0)
    return _chance(LEXICAL_STEEP * (whole - LEXICAL_MIDDLE)) * _chance(BASE + (DROP + DROP_OF_WORDS) * drop)


def _chance(odds: "np.ndarray | float") -> np.ndarray:
    return 1 / (1 + np.exp(-np.clip(odds, -500, 500)))
