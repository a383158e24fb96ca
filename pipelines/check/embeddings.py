"""What embeddings tell of texts: labels that other texts doubt, and texts that are far from all others.

A label is judged without being read: by logistic regression on the embeddings, fitted on the other folds without the
texts that were doubted in a first round, and by a vote of the nearest other texts. Out-of-fold probabilities of the
given label are the signal of Northcutt, Jiang and Chuang, "Confident Learning", JAIR 2021; to leave out the doubted
texts and judge again is theirs too. benchmarks/README.md compares the ranking with cleanlab's.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...indexer.errors import MissingExtraError
from ...indexer.progress import Notify, Progress, silent
from ..analysis.neighbours import neighbours, sample_rows

FOLDS = 5
ROUNDS = 3
"""How often a classifier is fitted for each fold: once in the first round, twice in the second."""
FEWEST = FOLDS
"""Texts of a label, below which it is not judged."""
SOFT, SHARP = 1.0, 3.0
"""Length of the vectors in the two classifiers: the longer, the surer they are. Together they rank best."""
ITERATIONS = 300
ENOUGH = 1_500
"""Texts below which a classifier is regularised less: the penalty would outweigh what so few texts say."""
REFERENCE = 20_000
"""Texts among which neighbours are found, and that a classifier is fitted on, at most."""
CELLS = 2_000_000
"""Texts times labels that a classifier is fitted on, at most."""
NEAREST = 50
SHARPNESS = 10.0
"""A neighbour whose cosine is lower by 0.1 weighs less by a factor of e."""
VOTE = 0.4
"""Share of the neighbours' vote beside the classifier in the first round."""
DROPPED = 0.1
"""The second round leaves out a text whose label is at most this fraction as likely as the best one."""
FLOOR = 0.02
"""Added to the votes: no neighbour with this label is only weak evidence where there are many labels."""
DOUBTFUL = 0.06
"""A label is reported if it is at most this fraction as likely as the best one."""


@dataclass(frozen=True, slots=True)
class Doubts:
    """How doubtful each text's label is.

    Attributes:
        doubt: float64 [n], 0 to 1, higher is more doubtful; NaN where a label is not judged.
        suggested: int64 [n], the most likely label; -1 where a label is not judged.
        relative: float64 [n], the likelihood of the label divided by that of the suggested one, 0 to 1; NaN where a
            label is not judged.
    """

    doubt: np.ndarray
    suggested: np.ndarray
    relative: np.ndarray

    def flagged(self) -> np.ndarray:
        """Return int64 [m], places of the texts whose label is doubtful, most doubtful first."""
        found = np.flatnonzero(self.relative <= DOUBTFUL)
        return found[np.argsort(-self.doubt[found], kind="stable")]


def doubts(vectors: np.ndarray, labels: np.ndarray, seed: int = 0, notify: Notify = silent) -> Doubts:
    """Return how doubtful the label of each text is.

    Args:
        vectors: float32 [n, d], of length 1.
        labels: int64 [n], numbers of labels from 0; -1 for a text without one.
        seed: Of the folds and the sample.
        notify: Receives progress.

    Raises:
        MissingExtraError: scikit-learn is not installed.
    """
    doubt, relative = np.full((2, len(labels)), np.nan)
    suggested = np.full(len(labels), -1, np.int64)
    sizes = np.bincount(labels[labels >= 0], minlength=1)
    judged = np.flatnonzero((labels >= 0) & (sizes[labels] >= FEWEST))
    names, given = np.unique(labels[judged], return_inverse=True)
    if len(names) < 2:
        return Doubts(doubt, suggested, relative)
    judge = _Judge(vectors[judged], given, len(names), seed, notify)
    votes = judge.votes()
    first = (1 - VOTE) * judge.classified(SHARP) + VOTE * votes
    kept = _of(first, given) > DROPPED * first.max(axis=1)
    found = [np.log(judge.classified(scale, kept) + 1e-9) for scale in (SOFT, SHARP)]
    chances = np.exp((found[0] + found[1] + np.log(votes + FLOOR)) / 3)  # their geometric mean
    own = _of(chances, given)
    doubt[judged], relative[judged] = 1 - np.minimum(own, 1), own / chances.max(axis=1)
    suggested[judged] = names[chances.argmax(axis=1)]
    return Doubts(doubt, suggested, relative)


def _classifier() -> Any:
    try:
        from sklearn.linear_model import LogisticRegression
    except ImportError as error:
        raise MissingExtraError("scikit-learn", "cluster", "checking labels") from error
    return LogisticRegression


def _of(table: np.ndarray, columns: np.ndarray) -> np.ndarray:
    return table[np.arange(len(columns)), columns]


class _Judge:
    """Judges texts by the labels of the others, and reports each classifier, so that the time left can be told."""

    def __init__(self, vectors: np.ndarray, given: np.ndarray, count: int, seed: int, notify: Notify = silent) -> None:
        self.vectors, self.given, self.count, self.seed, self.notify = vectors, given, count, seed, notify
        self.folds = _folds(given, seed)
        self.classifier = _classifier()
        self.fitted = 0

    def _report(self) -> None:
        self.notify(Progress("checking labels", self.fitted, ROUNDS * FOLDS, "classifiers"))

    def classified(self, scale: float, kept: np.ndarray | None = None) -> np.ndarray:
        """Return float64 [n, labels]: the chances of the labels by classifiers that were not fitted on the text."""
        chances = np.zeros((len(self.given), self.count))
        self._report()
        for fold in range(FOLDS):
            inside = self.folds == fold
            rows = np.flatnonzero(~inside if kept is None else ~inside & kept)
            rows = rows[sample_rows(len(rows), min(REFERENCE, max(CELLS // self.count, 10 * self.count)), self.seed)]
            known = np.unique(self.given[rows])
            if len(known) < 2:
                chances[np.ix_(inside, known)] = 1
            else:
                model = self.classifier(C=max(1.0, ENOUGH / len(rows)), max_iter=ITERATIONS)
                model.fit(self.vectors[rows] * scale, self.given[rows])
                chances[np.ix_(inside, model.classes_)] = model.predict_proba(self.vectors[inside] * scale)
            self.fitted += 1
            self._report()
        return chances

    def votes(self) -> np.ndarray:
        """Return float64 [n, labels]: the shares of the labels among each text's nearest others, weighted by cosine."""
        rows = sample_rows(len(self.given), REFERENCE, self.seed)
        found, cosines = neighbours(self.vectors, self.vectors[rows], NEAREST + 1)
        others = rows[found] != np.arange(len(self.given))[:, None]
        best = np.where(others, cosines, -1).max(axis=1, keepdims=True)
        weights = np.where(others, np.exp(SHARPNESS * (cosines.astype(np.float64) - best)), 0)
        shares = np.zeros((len(self.given), self.count))
        np.add.at(shares, (np.arange(len(self.given))[:, None], self.given[rows[found]]), weights)
        return shares / np.maximum(shares.sum(axis=1, keepdims=True), 1e-12)


def _folds(given: np.ndarray, seed: int) -> np.ndarray:
    """Return int64 [n], the fold of each text; every label is spread evenly."""
    order = np.random.default_rng(seed).permutation(len(given))
    order = order[np.argsort(given[order], kind="stable")]
    folds = np.empty(len(given), np.int64)
    folds[order] = np.arange(len(given)) % FOLDS
    return folds


AROUND = 10
FEWEST_TEXTS = 30
"""Texts below which none is called an outlier."""
FAR = 3.5
"""How many robust standard deviations below the middle makes an outlier (Iglewicz and Hoaglin, "How to Detect and
Handle Outliers", 1993)."""
NORMAL = 1.4826
"""The median absolute deviation of a normal distribution times this is its standard deviation."""


def outliers(vectors: np.ndarray, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return the texts whose mean cosine to their nearest others is unusually low, most unusual first.

    Args:
        vectors: float32 [n, d], of length 1, all different.
        seed: Of the sample in which neighbours are found, if there are many texts.

    Returns:
        int64 [m] rows, and float64 [m], 1 minus that cosine: the higher, the farther.
    """
    if len(vectors) < FEWEST_TEXTS:
        return np.zeros(0, np.int64), np.zeros(0)
    rows = sample_rows(len(vectors), REFERENCE, seed)
    found, cosines = neighbours(vectors, vectors[rows], AROUND + 1)
    others = rows[found] != np.arange(len(vectors))[:, None]
    # A text outside the sample has one neighbour more: the farthest is left out.
    others &= np.cumsum(others, axis=1) <= AROUND
    near = np.where(others, cosines, 0).sum(axis=1, dtype=np.float64) / others.sum(axis=1)
    middle = np.median(near)
    spread = max(NORMAL * float(np.median(np.abs(near - middle))), 1e-6)
    far = np.flatnonzero(near < middle - FAR * spread)
    far = far[np.argsort(near[far], kind="stable")]
    return far, 1 - near[far]
