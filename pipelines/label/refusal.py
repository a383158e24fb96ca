"""Which texts get "none of these": from the chance of none, a promised rate, and corrections."""

import numpy as np

from .descent import minimise
from .labels import log_odds, sigmoid
from .margins import LabelTexts
from .none import chances
from .settings import LabelSettings

HALF = 0.5
"""Chance of none from which a text is refused, without a promised rate."""
CONFORMAL = 50
"""Minimum number of corrections to measure the promised rate on them, and to recalibrate the chances."""
QUICK = 20_000
"""Maximum number of texts whose chances are measured although no text is to be refused: about 5 s."""
GRIP = 0.25
"""Weight of the prior that keeps the chances as they are when corrections recalibrate them."""


def refusal(
    corpus: LabelTexts, of_labels: np.ndarray, settings: LabelSettings
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Return each text's chance of none, float64 [n], and which texts are refused, bool [n].

    The first is None if a text may get several labels, or if more than 20,000 texts are labelled and none is to be
    refused. The second is None if the settings refuse no text.
    """
    if settings.multi_label or (len(corpus) > QUICK and not settings.refuses):
        return None, None
    none = recalibrated(chances(corpus.vectors, of_labels, settings.seed), corpus.known, corpus.truth)
    return none, refused(none, settings.promise, corpus.known, corpus.truth) if settings.refuses else None


def recalibrated(chances: np.ndarray, known: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Return chances of none that agree with the corrections, float64 [n]; unchanged with fewer than 50 corrections.

    The log-odds get a factor and an offset (Platt scaling), fitted to the corrections with a prior near 1 and 0.

    Args:
        chances: float64 [n], the chance of none of each text.
        known: int64 [m], the corrected texts.
        truth: float [m, labels], 1 for each label of a corrected text; all 0 for "none of these".
    """
    if len(known) < CONFORMAL:
        return chances
    odds, none = log_odds(chances, multi_label=True), ~(truth > 0).any(axis=1)

    def loss(found: np.ndarray) -> tuple[float, np.ndarray]:
        share = np.clip(sigmoid(found[0] * odds[known] + found[1]), 1e-9, 1 - 1e-9)
        missed = -np.log(np.where(none, share, 1 - share)).sum()
        away, error = found - (1, 0), share - none
        return float(missed + GRIP * (away @ away)), np.array([error @ odds[known], error.sum()]) + 2 * GRIP * away

    factor, offset = minimise(loss, np.array([1.0, 0.0]))
    return sigmoid(max(factor, 0.0) * odds + offset)


def refused(chances: np.ndarray, promise: float | None, known: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Return which texts get "none of these", bool [n].

    Args:
        chances: float64 [n], the chance of none of each text.
        promise: The promised share of texts with a fitting label that are wrongly refused, 0 to 1; None refuses the
            texts that more likely than not fit no label. With 50 corrections, the threshold is a conformal one: the
            quantile of the chances of corrected texts that have a label (Vovk and others, 2005). With fewer, it trusts
            the chances.
        known: int64 [m], the corrected texts.
        truth: float [m, labels], 1 for each label of a corrected text; all 0 for "none of these".
    """
    if promise is None:
        return chances >= HALF
    fits = known[(truth > 0).any(axis=1)] if len(known) else known
    if len(known) >= CONFORMAL and len(fits):
        place = int(np.ceil((len(fits) + 1) * (1 - promise))) - 1
        limit = np.sort(chances[fits])[place] if place < len(fits) else 1.0
        return chances > limit
    order = np.argsort(-chances, kind="stable")
    wrong = np.cumsum(1 - chances[order]) / max(float((1 - chances).sum()), 1e-9)
    found = np.zeros(len(chances), bool)
    found[order[wrong <= promise]] = True
    return found
