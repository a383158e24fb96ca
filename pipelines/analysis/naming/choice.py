"""Choosing names: phrases are added one by one, each the one that most helps readers who know only the names."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..neighbours import one_thread
from .phrases import Phrase

SATURATION, LENGTH_WEIGHT = 1.2, 0.75
"""BM25's k1 and b (Robertson and Zaragoza, 2009)."""


def bm25(texts: Sequence[Counter[str]], names: Sequence[Sequence[str]]) -> np.ndarray:
    """Return float64 [texts, names], higher is better: BM25 of the names, as documents, for each text as the query.

    A word that comes often in a text counts more, but less each time, as in a document.

    Args:
        texts: The stems of each text with their counts.
        names: The stems of each name.
    """
    holding = Counter(stem for name in names for stem in set(name))
    mean = max(sum(map(len, names)) / max(len(names), 1), 1e-9)
    of_stem: dict[str, list[tuple[int, float]]] = {}
    for place, name in enumerate(names):
        damp = SATURATION * (1 - LENGTH_WEIGHT + LENGTH_WEIGHT * len(name) / mean)
        for stem, count in Counter(name).items():
            rare = np.log1p((len(names) - holding[stem] + 0.5) / (holding[stem] + 0.5))
            of_stem.setdefault(stem, []).append((place, rare * count * (SATURATION + 1) / (count + damp)))
    found = np.zeros((len(texts), len(names)))
    for row, text in enumerate(texts):
        for stem in text.keys() & of_stem.keys():
            often = repeated(text[stem])
            for place, weight in of_stem[stem]:
                found[row, place] += weight * often
    return np.round(found, 9)


def repeated(count: int) -> float:
    """Return how much a word counts that a text has this many times: 1 to 2.2."""
    return count * (SATURATION + 1) / (count + SATURATION)


def right(scores: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Return float64 [texts]: the chance that a reader puts each text into its group.

    1 where the group has the highest score alone; where several groups share it, one of them is guessed.

    Args:
        scores: float [texts, groups], higher is better.
        own: int64 [texts], the group of each.
    """
    best = scores.max(axis=1, keepdims=True)
    among = scores >= best
    return among[np.arange(len(own)), own] / among.sum(axis=1)


def right_among(scores: np.ndarray, own: np.ndarray, groups: int, seed: int = 0) -> np.ndarray:
    """Return what `right` does, where a reader chooses between each text's group and others chosen at random.

    Args:
        scores: float [texts, groups], higher is better.
        own: int64 [texts], the group of each.
        groups: How many a reader chooses from; all, if there are fewer.
        seed: Of the draw.
    """
    if scores.shape[1] <= groups:
        return right(scores, own)
    drawn = np.random.default_rng(seed).random(scores.shape)
    drawn[np.arange(len(own)), own] = -1
    chosen = np.argsort(drawn, axis=1)[:, :groups]
    return right(np.take_along_axis(scores, chosen, axis=1), np.zeros(len(own), np.int64))


@dataclass(frozen=True, slots=True)
class NameAccuracy:
    """How well readers who know only the names put texts into their groups.

    Attributes:
        whole: The share of texts that they assign correctly, the mean of the readers, 0 to 1; None without texts.
        groups: The same for the texts of each group; None where a group has no such text.
        readers: The share that each reader assigns correctly, by its name.
        texts: How many texts were asked for.
    """

    whole: float | None
    groups: tuple[float | None, ...]
    readers: dict[str, float]
    texts: int

    @classmethod
    def of(cls, scores: dict[str, np.ndarray], own: np.ndarray, number: int) -> "NameAccuracy":
        """Return the accuracy from the scores of each reader, float [texts, groups]."""
        if not len(own):
            return cls(None, (None,) * number, {}, 0)
        by_reader = {name: right(each, own) for name, each in scores.items()}
        mean = np.mean(list(by_reader.values()), axis=0)
        sizes = np.bincount(own, minlength=number)
        sums = np.bincount(own, weights=mean, minlength=number)
        groups = tuple(round(float(total / size), 4) if size else None for total, size in zip(sums, sizes, strict=True))
        readers = {name: round(float(each.mean()), 4) for name, each in by_reader.items()}
        return cls(round(float(mean.mean()), 4), groups, readers, len(own))


MOST = 3
"""Phrases of a name."""
WARMTH = 0.02
"""A reader by meaning believes in names by the softmax of its cosines over this."""
SHARPNESS = 3.0
"""A reader by words believes in names by the softmax of its scores times this."""
ONE_IN = 20
"""A phrase may be in at most one of this number of names: groups within one subject share phrases."""
TOP = 60.0
"""Beliefs are at most e to this power."""
OUTWEIGHS = 0.99
"""From this share of a sum on, what is left without it is not found by subtraction."""
SLIGHT = 0.02
"""A name of one phrase gets a second one, even if that costs the readers this share of the group's texts."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the readers say of each candidate.

    Attributes:
        words: float32 [texts, candidates]: how much of a text's wording a phrase matches.
        own: int64 [texts], the group of each text.
        cosines: float32 [texts, candidates], or None without a model.
        embedded: float32 [candidates, d] of length 1: the phrases, or None.
    """

    words: np.ndarray
    own: np.ndarray
    cosines: np.ndarray | None
    embedded: np.ndarray | None

    @classmethod
    def of(
        cls, texts: Sequence[Counter[str]], own: np.ndarray, phrases: Sequence[Phrase],
        vectors: np.ndarray | None = None, embedded: np.ndarray | None = None,
    ) -> "Evidence":  # fmt: skip
        """Return the evidence of texts about phrases.

        Args:
            texts: The stems of each text with their counts.
            own: int64 [texts], the group of each text.
            phrases: The candidates.
            vectors: float32 [texts, d] of length 1, or None without a model.
            embedded: float32 [candidates, d] of length 1, or None.
        """
        places: dict[str, list[int]] = {}
        for place, phrase in enumerate(phrases):
            for stem in phrase.stems:
                places.setdefault(stem, []).append(place)
        words = np.zeros((len(texts), len(phrases)), np.float32, order="F")
        for row, text in enumerate(texts):
            for stem in text.keys() & places.keys():
                words[row, places[stem]] += repeated(text[stem])
        if vectors is None or embedded is None:
            return cls(words, own, None, None)
        with one_thread():
            cosines = np.round(vectors @ embedded.T, 5)
        return cls(words, own, np.asfortranarray(cosines), embedded)


def choose(
    evidence: Evidence, candidates: Sequence[Sequence[int]], phrases: Sequence[Phrase], number: int,
    kept: Mapping[int, Sequence[int]], banned: Sequence[frozenset[str]], most: int = MOST,
) -> list[list[int]]:  # fmt: skip
    """Return the phrases of each group's name.

    Each group begins with its most telling phrase. In each round it takes the candidate that most raises the chance
    that the readers assign the texts correctly, if one does not lower it. In between, a better phrase may replace one.
    A phrase is in one name only, or in one of `ONE_IN`: what many names hold sets no group apart.

    Args:
        evidence: About the phrases.
        candidates: Of each group, places in `phrases`.
        phrases: All candidates, and those that the names of `kept` are made of.
        number: Of groups.
        kept: Groups whose names stay, with the places of their phrases.
        banned: Stems that a group's name must not have: its parent's.
        most: Phrases of a name.
    """
    scores = _Scores(evidence, phrases, number)
    for group, places in kept.items():
        for place in places:
            scores.add(group, place)
    open_groups = [group for group in range(number) if group not in kept]
    for group in open_groups:
        fitting = [place for place in candidates[group] if scores.fits(group, place, banned[group])]
        free = (place for place in fitting if scores.is_free(group, place))
        first = next(free, fitting[0] if fitting else None)
        if first is not None:
            scores.add(group, first)
    for turn in range(1, most + 1):
        for group in open_groups:
            for slot in range(len(scores.chosen[group])):
                _exchange(scores, group, slot, candidates[group], banned[group])
            if turn < most and len(scores.chosen[group]) == turn:
                _extend(scores, group, candidates[group], banned[group])
    return scores.chosen


def _extend(scores: "_Scores", group: int, places: Sequence[int], banned: frozenset[str]) -> None:
    """Add the phrase that helps most, if it does no harm; to a single phrase, if it does but slight harm."""
    free = [place for place in places if scores.fits(group, place, banned) and scores.is_free(group, place)]
    if free:
        gains, single = np.round(scores.gains(group, free), 6), len(scores.chosen[group]) == 1
        if gains.max() >= (-SLIGHT * float((scores.evidence.own == group).mean()) if single else 0):
            scores.add(group, free[int(gains.argmax())])


def _exchange(scores: "_Scores", group: int, slot: int, places: Sequence[int], banned: frozenset[str]) -> None:
    """Put the best phrase in the place of one; of equal ones, the one that is there stays."""
    before = scores.chosen[group][slot]
    scores.remove(group, slot)
    others = (place for place in places if place != before and scores.fits(group, place, banned))
    free = [before, *(place for place in others if scores.is_free(group, place))]
    scores.add(group, free[int(np.round(scores.gains(group, free), 6).argmax())], slot)


class _Scores:
    """What the readers say of the names so far, and what a further phrase would change."""

    def __init__(self, evidence: Evidence, phrases: Sequence[Phrase], number: int) -> None:
        self.evidence = evidence
        self.phrases = phrases
        self.chosen: list[list[int]] = [[] for _ in range(number)]
        self._holders: dict[frozenset[str], list[int]] = {}
        self._rare = float(np.log1p(max(number - 0.5, 0.5) / 1.5))
        self._columns = [self._with_words] if evidence.cosines is None else [self._with_words, self._with_cosines]
        self._beliefs = [_Beliefs(evidence.own, number) for _ in self._columns]

    def fits(self, group: int, place: int, banned: frozenset[str]) -> bool:
        """Return whether a phrase brings no stem that the name has, or must not have."""
        phrase = self.phrases[place]
        taken = frozenset().union(*(self.phrases[other].stems for other in self.chosen[group]))
        return bool(phrase.stems) and not phrase.repeats(taken | banned)

    def is_free(self, group: int, place: int) -> bool:
        """Return whether so few other names have a phrase of the same stems that one more may have it."""
        others = set(self._holders.get(self.phrases[place].stems, ())) - {group}
        return len(others) < max(1, len(self.chosen) // ONE_IN)

    def gains(self, group: int, places: list[int]) -> np.ndarray:
        """Return float64 [places]: how much the chance rises that the readers assign a text correctly."""
        readers = zip(self._columns, self._beliefs, strict=True)
        return np.sum([beliefs.gains(group, column(group, places)) for column, beliefs in readers], axis=0)

    def add(self, group: int, place: int, slot: int | None = None) -> None:
        """Add a phrase to a name, at its end or in a slot."""
        for column, beliefs in zip(self._columns, self._beliefs, strict=True):
            beliefs.put(group, column(group, [place])[:, 0])
        self.chosen[group].insert(len(self.chosen[group]) if slot is None else slot, place)
        self._holders.setdefault(self.phrases[place].stems, []).append(group)

    def remove(self, group: int, slot: int) -> None:
        """Take a phrase from a name; another must be added before anything is read."""
        self._holders[self.phrases[self.chosen[group].pop(slot)].stems].remove(group)

    def _with_words(self, group: int, places: list[int]) -> np.ndarray:
        """Return float32 [texts, places]: the belief of a reader by words in the name with each of the phrases."""
        chosen = self.chosen[group]
        before = self.evidence.words[:, chosen].sum(axis=1, keepdims=True)
        length = sum(len(self.phrases[place].stems) for place in chosen)
        lengths = np.array([length + len(self.phrases[place].stems) for place in places], np.float32)
        damp = SATURATION * (1 - LENGTH_WEIGHT + LENGTH_WEIGHT * lengths / MOST)
        scores = (before + self.evidence.words[:, places]) * (self._rare * (SATURATION + 1) / (1 + damp))
        return np.exp(np.minimum(scores * SHARPNESS, TOP))

    def _with_cosines(self, group: int, places: list[int]) -> np.ndarray:
        """Return the same of a reader by meaning, for whom a name is the mean of its phrases' vectors."""
        cosines, embedded = self.evidence.cosines, self.evidence.embedded
        assert cosines is not None and embedded is not None
        chosen = self.chosen[group]
        before = cosines[:, chosen].sum(axis=1, keepdims=True)
        mean = embedded[chosen].sum(axis=0)
        square = np.round(mean @ mean + 2 * (embedded[places] @ mean) + 1, 5)
        return np.exp((before + cosines[:, places]) / np.sqrt(np.maximum(square, 1e-6)) / WARMTH)


class _Beliefs:
    """How much a reader believes in each name for each text; the shares of a text's beliefs are its chances."""

    def __init__(self, own: np.ndarray, number: int) -> None:
        self.own = own
        self._each = np.ones((len(own), number), np.float32, order="F")
        self._all = np.full(len(own), float(number))

    def put(self, group: int, column: np.ndarray) -> None:
        """Give a group other beliefs, float32 [texts]."""
        self._all = self._rest(group) + column
        self._each[:, group] = column

    def gains(self, group: int, columns: np.ndarray) -> np.ndarray:
        """Return float64 [columns]: the rise of the mean chance of each text's group, if a column took its place."""
        if not len(self.own):
            return np.zeros(columns.shape[1])
        right = self._each[np.arange(len(self.own)), self.own]
        after = self._rest(group)[:, None] + columns
        now = np.where((self.own == group)[:, None], columns, right[:, None]) / after
        return now.mean(axis=0) - float((right / self._all).mean())

    def _rest(self, group: int) -> np.ndarray:
        """Return float64 [texts]: the beliefs in all other groups; summed again where this one outweighs them."""
        rest = self._all - self._each[:, group]
        rows = np.flatnonzero(self._each[:, group] > OUTWEIGHS * self._all)
        others = self._each[rows].astype(np.float64)
        others[:, group] = 0
        rest[rows] = others.sum(axis=1)
        return rest
