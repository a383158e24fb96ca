"""Scores of different models on one scale, and probabilities of them."""

import numpy as np


def softmax(margins: np.ndarray) -> np.ndarray:
    """Return float64 [n, labels] that sum to one in each row; minus infinity and NaN count as impossible."""
    safe = np.where(np.isnan(margins), -np.inf, margins).astype(np.float64)
    shares = np.exp(safe - safe.max(axis=1, keepdims=True))
    return shares / shares.sum(axis=1, keepdims=True)


def sigmoid(margins: np.ndarray) -> np.ndarray:
    """Return float64 [n, labels], each from 0 to 1; NaN counts as impossible."""
    safe = np.where(np.isnan(margins), -np.inf, margins).astype(np.float64)
    return 0.5 * (1 + np.tanh(0.5 * safe))


def probabilities(margins: np.ndarray, multi_label: bool) -> np.ndarray:
    """Return float64 [n, labels]: of one label per text, which sum to one, or of each label by itself."""
    return sigmoid(margins) if multi_label else softmax(margins)


def log_odds(shares: np.ndarray, multi_label: bool) -> np.ndarray:
    """Return margins whose `probabilities` are `shares`."""
    safe = np.clip(shares, 1e-9, 1 - 1e-9)
    return np.log(safe) - np.log1p(-safe) if multi_label else np.log(safe)


def standardised(margins: np.ndarray) -> np.ndarray:
    """Return each label's margins with mean 0 and deviation 1 over the texts; a label that says nothing gets zeros."""
    found = margins.astype(np.float64)
    spread = found.std(axis=0)
    return (found - found.mean(axis=0)) / np.where(spread > 0, spread, 1)
