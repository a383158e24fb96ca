"""Judge a sample and extend the result to all texts: a linear model on the stored embeddings learns from the judge."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...indexer.store.view import normalized
from .solvers import euclidean_kmeans, log_odds, minimise, nearest, probabilities, standardised

SCALE = 8.0
"""Factor that turns unit-length embeddings into features; it makes the penalty work alike for every dimension."""
ADJUSTMENT = 1.0
"""The penalty on changes that corrections cause."""


@dataclass(frozen=True, slots=True)
class LinearModel:
    """Weights [features, labels] and offsets [labels] of logistic regressions."""

    weights: np.ndarray
    offsets: np.ndarray

    def margins(self, features: np.ndarray) -> np.ndarray:
        """Return the log-odds of each label as float64 [n, labels]."""
        return features @ self.weights + self.offsets


def fit_linear(
    features: np.ndarray, shares: np.ndarray, multi_label: bool, penalty: float = 1.0, base: np.ndarray | None = None
) -> LinearModel:
    """Fit logistic regressions to probabilities, using cross-entropy with an L2 penalty.

    It fits one multinomial regression, or one regression for each label if a text may get several labels. The same
    input gives the same model.

    Args:
        features: float [n, f].
        shares: float [n, labels]: the judge's probabilities.
        multi_label: Whether a text may get several labels.
        penalty: Half of this value times the squared weights is added to the sum of the texts' losses.
        base: float [n, labels] margins to which the model's margins are added; the offsets are then penalised too.
    """
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
    flat = minimise(loss, start)
    return LinearModel(flat[: shape[0] * shape[1]].reshape(shape), flat[shape[0] * shape[1] :])


def _entropy(found: np.ndarray, shares: np.ndarray, multi_label: bool) -> float:
    yes = -float((shares * np.log(np.clip(found, 1e-12, 1))).sum())
    return yes - float(((1 - shares) * np.log(np.clip(1 - found, 1e-12, 1))).sum()) if multi_label else yes


def adjusted(
    margins: np.ndarray, vectors: np.ndarray, rows: np.ndarray, truth: np.ndarray, multi_label: bool
) -> np.ndarray:
    """Adjust margins as little as possible to fit corrected labels of some texts; return float64 [n, labels].

    A linear function of a text's embedding is added to its margins. The function is fitted only to the corrected texts,
    with a penalty on its size. Texts that are unlike all corrected texts therefore keep their margins.

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
    """Return int64 [count] texts spread over the embedding space: the texts closest to k-means centres, in turns.

    Args:
        vectors: float32 [n, d].
        count: Number of texts; fewer if not enough exist.
        rng: Random generator for the order within a cluster's turn and for the start of k-means.
        without: int64, texts to leave out.
    """
    free = np.setdiff1d(np.arange(len(vectors)), without)
    if count >= len(free):
        return free
    texts = normalized(vectors[free])
    some = texts if len(texts) <= LEARN_FROM else texts[rng.choice(len(texts), LEARN_FROM, replace=False)]
    centres = min(count, CENTRES, len(some))
    cluster, distance = nearest(texts, euclidean_kmeans(some, centres, int(rng.integers(2**31)))[0])
    # The first turn takes each cluster's nearest text, the second each one's next, and so on.
    order = np.lexsort((distance, cluster))
    sizes = np.bincount(cluster, minlength=centres)
    turn = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return np.sort(free[order[np.lexsort((rng.random(len(order)), turn))[:count]]])


def least_sure(shares: np.ndarray, count: int, rng: np.random.Generator, without: np.ndarray) -> np.ndarray:
    """Return int64 [count] texts, sampled at random from three times as many texts with the least certain labels.

    Args:
        shares: float [n, labels], probabilities.
        count: Number of texts; fewer if not enough exist.
        rng: Random generator that samples the uncertain texts, so that they are not all of one kind.
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
"""Share of the judged texts, sampled at random, that the linear model does not see until agreement is measured."""
FIRST = 0.5
"""Share of the other judged texts that are spread over the embedding space; the model is unsure of the rest."""
ROUNDS = 3
PENALTY = 10.0
"""Strong penalty, because judgements are noisy: the best of 0.3 to 30 on four sets (benchmarks/README.md)."""

JudgeRows = Callable[[np.ndarray], np.ndarray]
"""Takes int64 [m] text positions, returns float32 [m, labels] margins; fewer rows if time runs out."""


@dataclass(frozen=True, slots=True)
class Carried:
    """Margins from a judge for some texts and from a linear model for the others.

    Attributes:
        margins: float64 [n, labels] log-odds.
        judged: int64, positions of the texts that the judge read.
        agreement: Share of the held-back texts to which judge and model give the same label; None without such texts.
        held_back: Number of held-back texts.
    """

    margins: np.ndarray
    judged: np.ndarray
    agreement: float | None
    held_back: int


class _Said:
    """The judge's margins so far, and the corrected labels of other texts."""

    def __init__(self, judge: JudgeRows, labels: int, known: np.ndarray, truth: np.ndarray) -> None:
        self._judge = judge
        self.known = known
        self.truth = truth
        self.rows = np.empty(0, np.int64)
        self.margins = np.empty((0, labels), np.float32)

    @property
    def taken(self) -> np.ndarray:
        """Positions of texts that do not need to be judged."""
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
    """Judge `count` texts, learn from them, and return the margins of every text.

    Args:
        judge: Judges the texts at the given positions.
        vectors: float32 [n, d], embeddings of all texts.
        hints: float [n, labels], similarity margins that the linear model uses as additional features.
        count: Number of texts to judge.
        multi_label: Whether a text may get several labels.
        seed: Random seed; the same seed selects the same texts.
        truths: int64 [m] corrected texts, and float [m, labels], 1 for each of their labels. The judge does not read
            these texts.
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
    use = said.truth.any(axis=1) | multi_label  # "none of these" is no training data if probabilities sum to one
    rows = np.concatenate([said.rows[part], said.known[use]])
    if not len(rows):
        return None
    shares = np.concatenate([probabilities(said.margins[part], multi_label), said.truth[use]])
    return fit_linear(features[rows], shares, multi_label, PENALTY)


def _finish(features: np.ndarray, said: _Said, held: int, multi_label: bool) -> Carried:
    """Measure agreement with a model that has not seen the held-back texts, then learn from all texts."""
    agreement = None
    if held and (model := _learn(features, said, slice(held, None), multi_label)) is not None:
        agreement = judge_agreement(model.margins(features[said.rows[:held]]), said.margins[:held], multi_label)
    final = _learn(features, said, slice(None), multi_label)
    margins = np.zeros((len(features), said.margins.shape[1])) if final is None else final.margins(features)
    margins[said.rows] = log_odds(probabilities(said.margins, multi_label), multi_label)
    return Carried(margins, np.sort(said.rows), agreement, held)


def judge_agreement(first: np.ndarray, second: np.ndarray, multi_label: bool) -> float:
    """Return the share of texts with the same label or, with several labels per text, the share of equal decisions."""
    if multi_label:
        return float(((first > 0) == (np.nan_to_num(second, nan=-1.0) > 0)).mean())
    return float((first.argmax(axis=1) == np.nan_to_num(second, nan=-np.inf).argmax(axis=1)).mean())
