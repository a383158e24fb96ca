"""Judging a sample and carrying it to all texts: a linear model on the stored vectors learns what the judge said."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...indexer.document_vectors import normalized
from .linear import SCALE, LinearModel, fit
from .sampling import spread, unsure
from .scale import log_odds, probabilities, standardised

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
        asked = unsure(shares, -(-left // (ROUNDS - turn)), rng, said.taken)
        if said.ask(asked) < len(asked):
            break
    return _finish(features, said, held, multi_label)


def _learn(features: np.ndarray, said: _Said, part: slice, multi_label: bool) -> LinearModel | None:
    use = said.truth.any(axis=1) | multi_label  # "none of these" teaches nothing where probabilities sum to one
    rows = np.concatenate([said.rows[part], said.known[use]])
    if not len(rows):
        return None
    shares = np.concatenate([probabilities(said.margins[part], multi_label), said.truth[use]])
    return fit(features[rows], shares, multi_label, PENALTY)


def _finish(features: np.ndarray, said: _Said, held: int, multi_label: bool) -> Carried:
    """Measure the agreement with a model that has not seen the held-back texts, then learn from all."""
    agreement = None
    if held and (model := _learn(features, said, slice(held, None), multi_label)) is not None:
        agreement = agree(model.margins(features[said.rows[:held]]), said.margins[:held], multi_label)
    final = _learn(features, said, slice(None), multi_label)
    margins = np.zeros((len(features), said.margins.shape[1])) if final is None else final.margins(features)
    margins[said.rows] = log_odds(probabilities(said.margins, multi_label), multi_label)
    return Carried(margins, np.sort(said.rows), agreement, held)


def agree(first: np.ndarray, second: np.ndarray, multi_label: bool) -> float:
    """Return the share of texts with the same label, or of answers, yes or no, where there are several labels."""
    if multi_label:
        return float(((first > 0) == (np.nan_to_num(second, nan=-1.0) > 0)).mean())
    return float((first.argmax(axis=1) == np.nan_to_num(second, nan=-np.inf).argmax(axis=1)).mean())
