"""Parts of a map: which documents lie inside outlines, how many lie where, and which stand for the others."""

from collections.abc import Sequence

import numpy as np

from ...indexer.errors import UsageError

CORNERS = 200
"""Corners of an outline that are kept; a lasso may bring thousands."""
CELLS = 48
"""Cells along each side of the grid that a sample is spread over."""
Outline = Sequence[tuple[float, float]]


def inside(places: np.ndarray, outlines: Sequence[Outline]) -> np.ndarray:
    """Return bool [n]: which of float [n, 2] places lie inside one of the outlines, by the even-odd rule."""
    found = np.zeros(len(places), bool)
    for outline in outlines:
        corners = np.asarray(outline, np.float64).reshape(-1, 2)
        low, high = corners.min(axis=0), corners.max(axis=0)
        near = np.flatnonzero(((places >= low) & (places <= high)).all(axis=1) & ~found)
        found[near[_odd(places[near], corners)]] = True
    return found


def _odd(places: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """Return bool [n]: whether a ray from each place crosses the outline an odd number of times."""
    x, y = places[:, 0], places[:, 1]
    odd = np.zeros(len(places), bool)
    for (x1, y1), (x2, y2) in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        if y1 == y2:
            continue
        crosses = (y1 > y) != (y2 > y)
        odd ^= crosses & (x < (x2 - x1) * (y - y1) / (y2 - y1) + x1)
    return odd


def write_outlines(outlines: Sequence[Outline]) -> str:
    """Return outlines as text, "x,y;x,y;x,y" with | between them, each with at most 200 corners."""
    return "|".join(";".join(f"{x:.4g},{y:.4g}" for x, y in _fewer(outline)) for outline in outlines)


def read_outlines(text: str) -> list[list[tuple[float, float]]]:
    """Read what `write_outlines` wrote.

    Raises:
        UsageError: It is anything else.
    """
    try:
        found = [[_corner(pair) for pair in part.split(";")] for part in text.split("|") if part]
    except ValueError:
        raise UsageError("the area in the address cannot be read: draw it anew") from None
    if any(len(outline) < 3 for outline in found):
        raise UsageError("the area in the address has fewer than three corners: draw it anew")
    return found


def _corner(text: str) -> tuple[float, float]:
    x, y = (float(number) for number in text.split(","))
    if not np.isfinite([x, y]).all():
        raise ValueError(text)
    return x, y


def _fewer(outline: Outline) -> Outline:
    step = -(-len(outline) // CORNERS)
    return outline[::step]


def spread_sample(places: np.ndarray, most: int, seed: int = 0) -> np.ndarray:
    """Return int64 rows, ascending: all, or `most` of them, drawn from each cell of a grid in proportion.

    A cell that holds anything gives at least one, so that what is rare is seen; the others give up so much.
    """
    if len(places) <= most:
        return np.arange(len(places))
    random = np.random.default_rng(seed)
    order = random.permutation(len(places))
    low, high = places.min(axis=0), places.max(axis=0)
    steps = np.clip((places - low) / np.where(high > low, high - low, 1) * CELLS, 0, CELLS - 1).astype(np.int64)
    cells = (steps[:, 0] * CELLS + steps[:, 1])[order]
    by_cell = np.argsort(cells, kind="stable")
    _, first, sizes = np.unique(cells[by_cell], return_index=True, return_counts=True)
    turn = np.arange(len(places)) - np.repeat(first, sizes)
    # The n-th of a cell's m texts has the rank n / m, the first of each cell rank 0: a share of each is taken.
    rank = turn / np.repeat(sizes, sizes)
    taken = by_cell[np.lexsort((random.random(len(places)), rank))[:most]]
    return np.sort(order[taken])


def density(places: np.ndarray, across: int = 160) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return how many of float [n, 2] places lie in each cell, int64 [down, across], and the middles, x and y."""
    low, high = places.min(axis=0), places.max(axis=0)
    width, height = np.where(high > low, high - low, 1)
    down = int(np.clip(round(across * height / width), 20, 4 * across))
    counts, x, y = np.histogram2d(
        *places.T, bins=(across, down), range=[(low[0], low[0] + width), (low[1], low[1] + height)]
    )
    return counts.T.astype(np.int64), (x[1:] + x[:-1]) / 2, (y[1:] + y[:-1]) / 2
