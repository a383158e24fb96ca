"""Readers who know only the names of groups, and say where a text belongs: BM25 over the names, and a bi-encoder."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

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
