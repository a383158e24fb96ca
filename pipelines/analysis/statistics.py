"""Statistics of groups: how far two labellings agree, and which terms, shares and scores differ beyond chance."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ...indexer.progress import Notify, Progress, silent
from .terms import Counts

AGREEMENT = ("nmi", "ari", "v_measure", "purity")


def agreement(classes: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """Return nmi, ari, v_measure and purity of two labellings, int64 [n] each; -1 is a cluster like any other.

    nmi is normalised by the arithmetic mean of the entropies, which makes it the same as the V-measure.
    """
    (first, second), shared = _table(classes, labels)
    rows, columns = np.bincount(first, shared), np.bincount(second, shared)
    best = np.zeros(len(columns))
    np.maximum.at(best, second, shared)
    share = shared / len(classes)
    information = max(float((share * np.log(shared * len(classes) / (rows[first] * columns[second]))).sum()), 0.0)
    entropies = _entropy(rows) + _entropy(columns)
    nmi = 2 * information / entropies if entropies else 1.0
    values = (nmi, adjusted_rand(classes, labels), nmi, float(best.sum() / len(classes)))
    return dict(zip(AGREEMENT, values, strict=True))


def adjusted_rand(classes: np.ndarray, labels: np.ndarray) -> float:
    """Return how many pairs of texts both labellings treat alike, corrected for chance (Hubert and Arabie, 1985)."""
    (first, second), shared = _table(classes, labels)
    pairs = float(len(classes) * (len(classes) - 1))
    sizes = (shared, np.bincount(first, shared), np.bincount(second, shared))
    both, one, other = (float((part * (part - 1)).sum()) for part in sizes)
    if both == one == other:
        return 1.0
    by_chance = one * other / pairs
    return (both - by_chance) / ((one + other) / 2 - by_chance)


def _table(classes: np.ndarray, labels: np.ndarray) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray]:
    """Return the pairs of a class and a label that occur, numbered from 0, and how many texts have each."""
    first, second = (np.unique(part, return_inverse=True)[1] for part in (classes, labels))
    width = int(second.max(initial=0)) + 1
    cells, sizes = np.unique(first * width + second, return_counts=True)
    return np.divmod(cells, width), sizes


def _entropy(sizes: np.ndarray) -> float:
    shares = sizes / sizes.sum()
    return -float((shares * np.log(shares)).sum())


CHANCE = 0.05
"""Chance that a comparison of parts that do not differ names a term, or a group, as beyond chance."""
FEW = 5
"""Documents that chance alone must give in each part for the test of a share to hold."""


def beyond_chance(counts: Counts, side: np.ndarray) -> np.ndarray:
    """Return bool [2, terms]: the terms that are in more texts of side 0, and of side 1, than chance explains.

    Fisher's exact test on the number of texts that contain each term, with Tarone's correction (Biometrics 46, 1990)
    for testing every term on both sides. If the sides differ only by chance, at most 5 % of comparisons have such a
    term. The correction does not count terms that are too rare to pass.

    Args:
        counts: Of n texts.
        side: int64 [n], 0 or 1.
    """
    sizes = np.bincount(side, minlength=2)
    having = np.stack(
        [np.bincount(counts.columns[side[counts.rows] == s], minlength=len(counts.terms)) for s in (0, 1)]
    )
    every = having.sum(axis=0)

    def chances(texts: np.ndarray) -> np.ndarray:
        return np.stack([_tail(texts[s], every, int(sizes[s]), len(side)) for s in (0, 1)])

    lowest = np.sort(chances(np.minimum(every, sizes[:, None])).ravel())
    tested = np.arange(1, lowest.size + 1)
    fewest = tested[np.searchsorted(lowest, CHANCE / tested, side="right") <= tested]
    return chances(having) <= CHANCE / (fewest[0] if fewest.size else 1)


def _tail(have: np.ndarray, every: np.ndarray, size: int, total: int) -> np.ndarray:
    """Return the chance that a random part has each term in at least this many texts (hypergeometric), float64 [terms].

    SciPy has this too, but a base installation is without SciPy.

    Args:
        have: int64 [terms], the texts of the part with the term.
        every: int64 [terms], all texts with it.
        size: The texts of the part.
        total: All texts.
    """
    log = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, total + 1)))])  # of factorials
    pairs, place = np.unique(np.stack([have, every]), axis=1, return_inverse=True)
    found = np.empty(pairs.shape[1])
    for column, (least, term) in enumerate(pairs.T.tolist()):
        inside = np.arange(max(least, size + term - total, 0), min(term, size) + 1)
        ways = log[term] - log[inside] - log[term - inside]
        rest = log[total - term] - log[size - inside] - log[total - term - size + inside]
        found[column] = np.exp(ways + rest - log[total] + log[size] + log[total - size]).sum()
    return np.minimum(found, 1)[place.ravel()]


def term_log_odds(counts: Counts, side: np.ndarray) -> np.ndarray:
    """Return float64 [terms] z-scores of each term's log odds on side 0 against side 1.

    The prior is the terms' frequency on both sides together (Monroe, Colaresi and Quinn, "Fightin' Words", Political
    Analysis 16, 2008), so that a rare term does not win by chance.

    Args:
        counts: Of n texts.
        side: int64 [n], 0 or 1.
    """
    first, second = (counts.of(np.flatnonzero(side == s)).totals() for s in (0, 1))
    prior = (first + second) * len(first) / max((first + second).sum(), 1) * 0.1 + 0.01
    total = prior.sum()
    if len(first) < 2:  # its odds against no other term are none
        return np.zeros(len(first))

    def odds(own: np.ndarray) -> np.ndarray:
        return np.log((own + prior) / (own.sum() + total - own - prior))

    return (odds(first) - odds(second)) / np.sqrt(1 / (first + prior) + 1 / (second + prior))


def changed_beyond_chance(early: np.ndarray, late: np.ndarray, documents: tuple[int, int] | None = None) -> list[bool]:
    """Return which items' shares differ beyond chance between two parts, by a z-test with Bonferroni's correction.

    Args:
        early: int64 [items], documents of each item in the earlier part.
        late: int64 [items], in the later part.
        documents: All documents of the two parts, each once; None if each has one item.
    """
    first, second = documents or (int(early.sum()), int(late.sum()))
    found = list[bool]()
    for before, after in zip(early.tolist(), late.tolist(), strict=True):
        share = (before + after) / max(first + second, 1)
        rare = min(share, 1 - share) * min(first, second) < FEW
        if rare:
            found.append(False)  # the normal distribution does not hold for so few documents
            continue
        z = (after / second - before / first) / math.sqrt(share * (1 - share) * (1 / first + 1 / second))
        found.append(math.erfc(abs(z) / math.sqrt(2)) * len(early) < CHANCE)
    return found


NEARLY = 1e-9
"""Scores that differ by less are equal: sums are rounded."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Texts, each once, and which of them new and old documents have.

    Whichever texts are new, the groups and the neighbours are the same. If new documents are like old ones, every
    choice of new ones is as likely as the real one. So the largest score of each random choice says how large the
    largest real score may be by chance (Westfall and Young, Resampling-Based Multiple Testing, 1993).

    Attributes:
        new: bool [m], which texts a new document has.
        old: bool [m], which texts an old document has; a text can be both.
        copies: int64 [m], how many documents have each text.
    """

    new: np.ndarray
    old: np.ndarray
    copies: np.ndarray

    @classmethod
    def of(cls, group: np.ndarray, new: np.ndarray) -> "Batch":
        """Return the texts of documents.

        Args:
            group: int64 [n], for each document the number of its text, 0 to m - 1.
            new: bool [n], which documents are new.
        """
        copies = np.bincount(group)
        fresh = np.bincount(group, weights=new)
        return cls(fresh > 0, fresh < copies, copies)

    @property
    def fresh(self) -> np.ndarray:
        """Which texts only new documents have: bool [m]."""
        return self.new & ~self.old

    def exchanged(self, times: int, seed: int) -> Iterator["Batch"]:
        """Yield the same texts, of which others are new and old.

        Texts with as many copies are exchanged with each other: a frequent text is more often old than a rare one. A
        text that was sent 30 times at once is one text, and has nothing to be exchanged with.
        """
        chance = np.random.default_rng(seed)
        alike = [np.flatnonzero(self.copies == count) for count in np.unique(self.copies).tolist()]
        for _ in range(times):
            new, old = self.new.copy(), self.old.copy()
            for rows in alike:
                order = chance.permutation(rows)
                new[rows], old[rows] = self.new[order], self.old[order]
            yield Batch(new, old, self.copies)


def largest_by_chance(
    batch: Batch, largest: Callable[[Batch], float], times: int, seed: int, notify: Notify = silent
) -> np.ndarray:
    """Return float64 [times], ascending: the largest score of each random exchange."""
    found = np.empty(times)
    for number, exchanged in enumerate(batch.exchanged(times, seed)):
        found[number] = largest(exchanged)
        if number % 50 == 0:
            notify(Progress("comparing with chance", number, times, "permutations"))
    return np.sort(found)


def chances(scores: np.ndarray, by_chance: np.ndarray) -> np.ndarray:
    """Return the p value of each score, float64 in the same shape: above 0, at most 1, smaller is surer.

    It is the chance that the largest score of all is that high if new documents are like old ones. The real choice
    counts as one of the permutations, so no value is 0 (Phipson and Smyth, Stat. Appl. Genet. Mol. Biol. 9, 2010).

    Args:
        scores: float of any shape, higher is more unusual.
        by_chance: float64 [times], ascending, from `largest_by_chance`.
    """
    reached = len(by_chance) - np.searchsorted(by_chance, scores - NEARLY)
    return (1 + reached) / (1 + len(by_chance))
