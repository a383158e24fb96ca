"""How often each term occurs in each text: a sparse table."""

from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np


@dataclass(frozen=True, slots=True)
class Counts:
    """How often each term occurs in each text, or how much it weighs in each group; zeros are left out.

    Attributes:
        starts: int64 [texts + 1], where the numbers of each text start and the last ones end.
        columns: int [m], the place of each number's term.
        values: int or float [m], the numbers.
        terms: The terms, words and pairs of words.
    """

    starts: np.ndarray
    columns: np.ndarray
    values: np.ndarray
    terms: np.ndarray

    @classmethod
    def of_rows(cls, rows: Iterable[Mapping[int, int]], terms: Iterable[str]) -> "Counts":
        """Return the counts of texts, each a mapping from the place of a term to how often it occurs."""
        columns, values, starts = array("q"), array("q"), array("q", [0])
        for row in rows:
            columns.extend(row)
            values.extend(row.values())
            starts.append(len(columns))
        found = [np.array(part, np.int64) for part in (starts, columns, values)]
        return cls(found[0], found[1], found[2], np.array(list(terms), object))

    @property
    def rows(self) -> np.ndarray:
        """The text of each number, int64 [m]."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    def totals(self) -> np.ndarray:
        """Return the sum of each term's numbers, float64 [terms]."""
        return np.bincount(self.columns, weights=self.values, minlength=len(self.terms))

    def sums(self) -> np.ndarray:
        """Return the sum of each text's numbers, float64 [texts]."""
        return np.bincount(self.rows, weights=self.values, minlength=len(self.starts) - 1)

    def of(self, texts: np.ndarray) -> "Counts":
        """Return the counts of these texts, int64, in their order."""
        sizes = np.diff(self.starts)[texts]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        places = np.repeat(self.starts[texts] - starts[:-1], sizes) + np.arange(starts[-1])
        return Counts(starts, self.columns[places], self.values[places], self.terms)

    def where(self, kept: np.ndarray) -> "Counts":
        """Return the counts without the numbers for which bool [m] is false."""
        starts = np.concatenate([[0], np.cumsum(kept)])[self.starts]
        return Counts(starts, self.columns[kept], self.values[kept], self.terms)

    def grouped(self, groups: np.ndarray, number: int) -> "Counts":
        """Return the counts of groups: the sums over the texts of each, int64 [texts], from 0 to number - 1."""
        width = max(len(self.terms), 1)
        cells, place = np.unique(groups[self.rows] * width + self.columns, return_inverse=True)
        starts = np.searchsorted(cells, np.arange(number + 1) * width)
        return Counts(starts, cells % width, np.bincount(place, weights=self.values), self.terms)

    def alphabetical(self, least: int = 1) -> "Counts":
        """Return the counts with the terms in order, without those that fewer than `least` texts have."""
        known = np.flatnonzero(np.bincount(self.columns, minlength=len(self.terms)) >= least)
        known = known[np.argsort(self.terms[known])]
        place = np.full(len(self.terms), -1)
        place[known] = np.arange(len(known))
        found = replace(self, columns=place[self.columns], terms=self.terms[known]).where(place[self.columns] >= 0)
        order = np.lexsort((found.columns, found.rows))
        return replace(found, columns=found.columns[order], values=found.values[order])
