"""Judge a sample and carry it to all texts: a linear model on the stored vectors learns from the judge."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...indexer.store.view import normalized
from .labels import log_odds, probabilities, standardised

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


def fit_linear(
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
    found = fit_linear(features[rows], truth, multi_label, ADJUSTMENT, margins[rows].astype(np.float64))
    return margins + found.margins(features)


CENTRES = 256
LEARN_FROM = 20_000


def spread(vectors: np.ndarray, count: int, rng: np.random.Generator, without: np.ndarray) -> np.ndarray:
    """Return int64 [count] texts spread over the vector space: the nearest ones to k-means centres, in turns.

    Args:
        vectors: float32 [n, d].
        count: How many; fewer where there are not as many.
        rng: Decides the order inside a cluster's turn and the start of k-means.
        without: int64, texts to leave out.
    """
    from sklearn.cluster import KMeans

    free = np.setdiff1d(np.arange(len(vectors)), without)
    if count >= len(free):
        return free
    texts = normalized(vectors[free])
    some = texts if len(texts) <= LEARN_FROM else texts[rng.choice(len(texts), LEARN_FROM, replace=False)]
    centres = min(count, CENTRES, len(some))
    means = KMeans(centres, n_init="auto", max_iter=20, random_state=int(rng.integers(2**31))).fit(some)
    cluster, distance = means.predict(texts), means.transform(texts).min(axis=1)
    # The first turn takes each cluster's nearest text, the second each one's next, and so on.
    order = np.lexsort((distance, cluster))
    sizes = np.bincount(cluster, minlength=centres)
    turn = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return np.sort(free[order[np.lexsort((rng.random(len(order)), turn))[:count]]])


def least_sure(shares: np.ndarray, count: int, rng: np.random.Generator, without: np.ndarray) -> np.ndarray:
    """Return int64 [count] texts whose label is least clear, picked at random among three times as many.

    Args:
        shares: float [n, labels], probabilities.
        count: How many; fewer where there are not as many.
        rng: Picks among the unclear ones, so that they are not all of one kind.
        without: int64, texts to leave out.
    """
    free = np.setdiff1d(np.arange(len(shares)), without)
    if count >= len(free):
        return free
    best = np.sort(shares[free], axis=1)
    clear = best[:, -1] - best[:, -2] if shares.shape[1] > 1 else np.abs(best[:, 0] - 0.5)
    pool = free[np.argsort(clear, kind="stable")[: 3 * count]]
    return np.sort(rng.choice(pool, count, replace=False))


HELD_BACK = 0.1
"""Of the judged texts, a random sample that the linear model does not see until its agreement has been measured."""
FIRST = 0.5
"""Of the others, those that are spread over the vector space; the rest are asked where the model is unsure."""
ROUNDS = 3
PENALTY = 10.0
"""Verdicts are noisy, so the linear model is held back: of 0.3 to 30 the best on four sets (docs/labelling.md)."""

JudgeRows = Callable[[np.ndarray], np.ndarray]
"""Takes int64 [m] places of texts, returns float32 [m, labels] margins; fewer rows when the time is up."""


@dataclass(frozen=True, slots=True)
class Carried:
    """What a judge said of some texts and a linear model of the others.

    Attributes:
        margins: float64 [n, labels] log-odds.
        judged: int64, places of the texts that the judge read.
        agreement: Share of the held-back texts to which judge and model give the same label; None without any.
        held_back: How many texts that was measured on.
    """

    margins: np.ndarray
    judged: np.ndarray
    agreement: float | None
    held_back: int


class _Said:
    """The judge's margins so far, and what a person said of other texts."""

    def __init__(self, judge: JudgeRows, labels: int, known: np.ndarray, truth: np.ndarray) -> None:
        self._judge = judge
        self.known = known
        self.truth = truth
        self.rows = np.empty(0, np.int64)
        self.margins = np.empty((0, labels), np.float32)

    @property
    def taken(self) -> np.ndarray:
        """Places of texts that need not be asked about."""
        return np.concatenate([self.rows, self.known])

    def ask(self, rows: np.ndarray) -> int:
        found = self._judge(rows)
        self.rows = np.concatenate([self.rows, rows[: len(found)]])
        self.margins = np.concatenate([self.margins, found])
        return len(found)


def carry(
    judge: JudgeRows, vectors: np.ndarray, hints: np.ndarray, count: int, multi_label: bool, seed: int = 0,
    truths: tuple[np.ndarray, np.ndarray] | None = None,
) -> Carried:  # fmt: skip
    """Ask about `count` texts, learn from them, and give every text its margins.

    Args:
        judge: Reads the texts at these places.
        vectors: float32 [n, d], of all texts.
        hints: float [n, labels], similarity margins, from which the linear model also learns.
        count: How many texts to ask about.
        multi_label: Whether a text may get several labels.
        seed: The same seed asks about the same texts.
        truths: int64 [m] texts whose labels a person gave, and float [m, labels], 1 for each; nobody else is asked.
    """
    rng = np.random.default_rng(seed)
    features = np.hstack([SCALE * normalized(vectors), standardised(hints)])
    known, truth = truths or (np.empty(0, np.int64), np.empty((0, hints.shape[1])))
    said = _Said(judge, hints.shape[1], known, truth)
    free = np.setdiff1d(np.arange(len(vectors)), known)
    count = min(count, len(free))
    held = said.ask(np.sort(rng.choice(free, min(len(free), max(1, round(HELD_BACK * count))), replace=False)))
    rest = count - held
    said.ask(spread(vectors, round(FIRST * rest), rng, said.taken))
    for turn in range(ROUNDS):
        left = count - len(said.rows)
        model = _learn(features, said, slice(held, None), multi_label)
        if model is None or left <= 0:
            break
        shares = probabilities(model.margins(features), multi_label)
        asked = least_sure(shares, -(-left // (ROUNDS - turn)), rng, said.taken)
        if said.ask(asked) < len(asked):
            break
    return _finish(features, said, held, multi_label)


def _learn(features: np.ndarray, said: _Said, part: slice, multi_label: bool) -> LinearModel | None:
    use = said.truth.any(axis=1) | multi_label  # "none of these" teaches nothing where probabilities sum to one
    rows = np.concatenate([said.rows[part], said.known[use]])
    if not len(rows):
        return None
    shares = np.concatenate([probabilities(said.margins[part], multi_label), said.truth[use]])
    return fit_linear(features[rows], shares, multi_label, PENALTY)


def _finish(features: np.ndarray, said: _Said, held: int, multi_label: bool) -> Carried:
    """Measure the agreement with a model that has not seen the held-back texts, then learn from all."""
    agreement = None
    if held and (model := _learn(features, said, slice(held, None), multi_label)) is not None:
        agreement = judge_agreement(model.margins(features[said.rows[:held]]), said.margins[:held], multi_label)
    final = _learn(features, said, slice(None), multi_label)
    margins = np.zeros((len(features), said.margins.shape[1])) if final is None else final.margins(features)
    margins[said.rows] = log_odds(probabilities(said.margins, multi_label), multi_label)
    return Carried(margins, np.sort(said.rows), agreement, held)


def judge_agreement(first: np.ndarray, second: np.ndarray, multi_label: bool) -> float:
    """Return the share of texts with the same label, or of answers, yes or no, where there are several labels."""
    if multi_label:
        return float(((first > 0) == (np.nan_to_num(second, nan=-1.0) > 0)).mean())
    return float((first.argmax(axis=1) == np.nan_to_num(second, nan=-np.inf).argmax(axis=1)).mean())
