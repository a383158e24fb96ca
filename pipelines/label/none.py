"""The chance that none of the labels fits a text, and which texts get "none of these" for it.

A cosine alone does not tell a foreign text: its size depends on the label's name and on the subject. The groups of a
corpus do. A group that belongs to a label is closer to it than to the other labels, and the label is closer to that
group than to other groups. A group for which neither holds is evidence of a missing label. A promised rate and
corrections decide which chance is enough.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...indexer.store.view import normalized
from .margins import LabelTexts, tell_of_all
from .scores import ENOUGH, adapted
from .settings import LabelSettings
from .solvers import euclidean_kmeans, log_odds, minimise, sigmoid

SAMPLE = 3_000
"""Maximum number of texts that the groups are made from; the other texts join the nearest group."""
GROUPS = (1.25, 1.4, 1.6, 1.8, 2.0)
"""Numbers of groups, as multiples of the number of labels. Their evidence is averaged."""
NEIGHBOURS = 10
ROUNDS = 3
SHARE = 0.7
"""Share of a smoothed embedding that comes from the neighbours, in each round."""
CLAIMED = 0.6
"""A label claims the groups that are at least this share as close to it as its closest group."""
SHARPNESS = 0.5
"""Standardised cosines are divided by this value before the softmax."""
NO_RIVAL = 0.2
"""Lead over unclaimed groups, as a difference of cosines, if labels claim all groups."""
AT_ONCE = 8_192

WEIGHTS = (-0.633, -0.147, -2.021)
OFFSET = -1.087
"""Log-odds of none from the three measures of `evidence`; fitted by `benchmarks/none.py --fit` on other sets."""
FEW_WEIGHT, FEW_OFFSET = -9.388, 2.195
"""Log-odds of none from the best cosine alone, for a text without a corpus; fitted by the same command."""

HALF = 0.5
"""Chance of none from which a text is refused, without a promised rate."""
CONFORMAL = 50
"""Minimum number of corrections to measure the promised rate on them."""
GRIP = 0.25
"""Weight of the prior that keeps the chances as they are when corrections recalibrate them."""


def refusal(
    corpus: LabelTexts, of_labels: np.ndarray, settings: LabelSettings
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Return each text's chance of none, float64 [n], and which texts are refused, bool [n].

    The first is None if a text may get several labels. The second is None if the settings refuse no text.
    """
    if settings.multi_label:
        return None, None
    none = recalibrated(chances(corpus.vectors, of_labels, settings.seed), corpus.known, corpus.truth)
    return none, refused(none, settings.promise, corpus.known, corpus.truth) if settings.refuses else None


def recalibrated(chances: np.ndarray, known: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Return chances of none that agree with the corrections, float64 [n]; unchanged if these tell too little.

    The log-odds get a factor and an offset (Platt scaling), fitted to the corrections with a prior near 1 and 0.

    Args:
        chances: float64 [n], the chance of none of each text.
        known: int64 [m], the corrected texts.
        truth: float [m, labels], 1 for each label of a corrected text; all 0 for "none of these".
    """
    if not tell_of_all(truth):
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


def chances(vectors: np.ndarray, of_labels: np.ndarray, seed: int = 0) -> np.ndarray:
    """Return the chance that no label fits, float64 [n] from 0 to 1.

    50 or more texts are treated as a corpus, whose groups are the evidence. With fewer, the best cosine of each text is
    all there is, and the chance says little about texts that share the labels' subject.

    Args:
        vectors: float32 [n, d], the texts.
        of_labels: float32 [labels, d].
        seed: Random seed of the sample and of the groups.
    """
    if len(vectors) < ENOUGH:
        best = (normalized(vectors) @ of_labels.T).max(axis=1)
        return sigmoid(FEW_WEIGHT * best + FEW_OFFSET)
    return sigmoid(evidence(vectors, of_labels, seed) @ np.array(WEIGHTS) + OFFSET)


def evidence(vectors: np.ndarray, of_labels: np.ndarray, seed: int = 0) -> np.ndarray:
    """Return three measures of how well some label fits each text, float64 [n, 3]; higher means a better fit.

    1. The gap between the best and the second label of the text's group, in standard deviations.
    2. How exclusively the group and a label belong to each other: the sum of two log-softmaxes, at most 0.
    3. The lead of the best refined label over the closest group that no label claims, as a difference of cosines. Here
       the embeddings are smoothed over their nearest neighbours.

    Args:
        vectors: float32 [n, d], at least 50 texts.
        of_labels: float32 [labels, d].
        seed: Random seed.
    """
    texts = normalized(vectors)
    some = _sample(texts, seed)
    steps = _smoothed(some)
    counts = list(enumerate(_counts(len(of_labels), len(some)), seed))
    plain = [_Groups.of(some, of_labels, count, each) for each, count in counts]
    smooth = [_Groups.of(steps[-1], of_labels, count, each) for each, count in counts]
    refined = adapted(steps[-1], of_labels)[0]
    found = np.empty((len(texts), 3))
    for start in range(0, len(texts), AT_ONCE):
        part = texts[start : start + AT_ONCE]
        places = [groups.nearest(part) for groups in plain]
        found[start : start + AT_ONCE, 0] = _mean([g.gaps[at] for g, at in zip(plain, places, strict=True)])
        found[start : start + AT_ONCE, 1] = _mean([g.bonds[at] for g, at in zip(plain, places, strict=True)])
        soft = _towards_neighbours(part, some, steps[-2])
        lead = (soft @ refined.T).max(axis=1)
        found[start : start + AT_ONCE, 2] = _mean([groups.lead(soft, lead) for groups in smooth])
    return found


@dataclass(frozen=True, slots=True)
class _Groups:
    """Groups of a sample, and how they relate to the labels.

    Attributes:
        means: float32 [groups, d].
        gaps: float [groups], the best label's lead over the second.
        bonds: float [groups], how exclusively the group and its label belong to each other.
        unclaimed: float32 [m, d], unit-length means of the groups that no label claims.
    """

    means: np.ndarray
    gaps: np.ndarray
    bonds: np.ndarray
    unclaimed: np.ndarray

    @classmethod
    def of(cls, texts: np.ndarray, of_labels: np.ndarray, count: int, seed: int) -> "_Groups":
        means, group = euclidean_kmeans(texts, count, seed)
        cosines = texts @ of_labels.T
        closeness = (cosines - cosines.mean(axis=0)) / np.maximum(cosines.std(axis=0), 1e-9)
        members = np.zeros((count, len(texts)), np.float32)
        members[group, np.arange(len(texts))] = 1
        sizes = np.maximum(members.sum(axis=1, keepdims=True), 1)
        table = (members @ closeness / sizes).astype(np.float64)
        two = np.sort(table, axis=1)[:, -2:]
        claimed = (table / np.maximum(table.max(axis=0), 0.1)).max(axis=1) >= CLAIMED
        return cls(means, two[:, -1] - two[:, 0], _bonds(table), normalized(means)[~claimed])

    def nearest(self, texts: np.ndarray) -> np.ndarray:
        """Return int64 [n], the group of each text."""
        return (texts @ self.means.T - (self.means**2).sum(axis=1) / 2).argmax(axis=1)

    def lead(self, texts: np.ndarray, best: np.ndarray) -> np.ndarray:
        """Return how much closer the best label is than the closest unclaimed group, float [n]."""
        if not len(self.unclaimed):
            return np.full(len(texts), NO_RIVAL)
        return best - (texts @ self.unclaimed.T).max(axis=1)


def _bonds(table: np.ndarray) -> np.ndarray:
    """Return the best label's log-share of each group plus the group's log-share of that label, float [groups]."""
    scaled = table / SHARPNESS
    of_groups = scaled - np.logaddexp.reduce(scaled, axis=1, keepdims=True)
    return (of_groups + scaled - np.logaddexp.reduce(scaled, axis=0, keepdims=True)).max(axis=1)


def _sample(texts: np.ndarray, seed: int) -> np.ndarray:
    if len(texts) <= SAMPLE:
        return texts
    return texts[np.sort(np.random.default_rng(seed).choice(len(texts), SAMPLE, replace=False))]


def _counts(labels: int, texts: int) -> list[int]:
    """Return the numbers of groups; a group has five texts or more on average."""
    return [min(max(round(factor * labels), labels + 1), texts // 5) for factor in GROUPS]


def _smoothed(some: np.ndarray) -> list[np.ndarray]:
    """Return the sample and its embeddings after each round of smoothing, float32 [n, d] each."""
    steps = [some]
    for _ in range(ROUNDS):
        steps.append(_towards_neighbours(some, some, steps[-1]))
    return steps


def _towards_neighbours(texts: np.ndarray, some: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Move texts towards the values of their nearest neighbours in the sample; return float32 [n, d], unit length."""
    found = np.empty_like(texts)
    kept = min(NEIGHBOURS, len(some) - 1)
    for start in range(0, len(texts), 1_024):
        part = texts[start : start + 1_024]
        cosines = part @ some.T
        cosines[cosines > 0.9999] = -1  # a text is not its own neighbour
        near = np.argpartition(-cosines, kept - 1, axis=1)[:, :kept]
        weights = np.exp(np.take_along_axis(cosines, near, axis=1) / 0.1)
        weights /= weights.sum(axis=1, keepdims=True)
        pulled = np.einsum("nk,nkd->nd", weights, values[near])
        found[start : start + 1_024] = normalized((1 - SHARE) * part + SHARE * pulled)
    return found


def _mean(parts: Sequence[np.ndarray]) -> np.ndarray:
    return np.mean(parts, axis=0)
