"""Terms that distinguish two parts of a corpus: how far their odds differ, and whether that is beyond chance."""

import math

import numpy as np

from .counts import Counts

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
