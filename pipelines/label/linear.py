"""A linear model that learns probabilities, not only labels: it carries the judgements of a sample to all texts."""

from dataclasses import dataclass

import numpy as np

from ...indexer.document_vectors import normalized
from .scale import probabilities

SCALE = 8.0
"""Vectors of length 1 times this are the features, so that the penalty works alike for every dimension."""
STEPS = 200
ADJUSTMENT = 1.0
"""The penalty on what corrections change."""


@dataclass(frozen=True, slots=True)
class LinearModel:
    """Weights [features, labels] and offsets [labels] of logistic regressions."""

    weights: np.ndarray
    offsets: np.ndarray

    def margins(self, features: np.ndarray) -> np.ndarray:
        """Return float64 [n, labels] log-odds."""
        return features @ self.weights + self.offsets


def fit(
    features: np.ndarray, shares: np.ndarray, multi_label: bool, penalty: float = 1.0, base: np.ndarray | None = None
) -> LinearModel:
    """Fit logistic regressions to probabilities by cross-entropy with an L2 penalty.

    One multinomial regression, or one for each label where a text may get several. The same input gives the same
    model.

    Args:
        features: float [n, f].
        shares: float [n, labels]: what a judge said.
        multi_label: Whether a text may get several labels.
        penalty: Half of it times the squared weights is added to the sum of the texts' losses.
        base: float [n, labels] margins that the model's are added to; the offsets are then penalised too.
    """
    from scipy.optimize import minimize

    features = features.astype(np.float64)
    shape = features.shape[1], shares.shape[1]
    fixed, held = (0.0, 0.0) if base is None else (base, penalty)

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        weights, offsets = flat[: shape[0] * shape[1]].reshape(shape), flat[shape[0] * shape[1] :]
        found = probabilities(features @ weights + offsets + fixed, multi_label)
        error = found - shares
        slope = np.concatenate([(features.T @ error + penalty * weights).ravel(), error.sum(axis=0) + held * offsets])
        size = penalty * float((weights**2).sum()) + held * float((offsets**2).sum())
        return _entropy(found, shares, multi_label) + size / 2, slope

    start = np.zeros(shape[0] * shape[1] + shape[1])
    flat = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": STEPS}).x
    return LinearModel(flat[: shape[0] * shape[1]].reshape(shape), flat[shape[0] * shape[1] :])


def _entropy(found: np.ndarray, shares: np.ndarray, multi_label: bool) -> float:
    yes = -float((shares * np.log(np.clip(found, 1e-12, 1))).sum())
    return yes - float(((1 - shares) * np.log(np.clip(1 - found, 1e-12, 1))).sum()) if multi_label else yes


def adjusted(
    margins: np.ndarray, vectors: np.ndarray, rows: np.ndarray, truth: np.ndarray, multi_label: bool
) -> np.ndarray:
    """Return margins moved, as little as will do, towards what a person said of some texts: float64 [n, labels].

    A linear function of a text's vector is added to its margins. It is fitted to the corrected texts alone, with a
    penalty on its size, so that texts which are like none of them keep theirs.

    Args:
        margins: float [n, labels], finite.
        vectors: float32 [n, d].
        rows: int64 [m], the corrected texts.
        truth: float [m, labels], 1 for each label that such a text has.
        multi_label: Whether a text may get several labels.
    """
    if not len(rows):
        return margins
    features = SCALE * normalized(vectors)
    found = fit(features[rows], truth, multi_label, ADJUSTMENT, margins[rows].astype(np.float64))
    return margins + found.margins(features)
