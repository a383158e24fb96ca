"""Pictures of two languages in one space: how near translations are, and where each language lies."""

from pathlib import Path

import numpy as np

from ...indexer.errors import UsageError
from ..cluster.neighbours import neighbours
from ..cluster.projection import project
from ..plots import PointsPlot
from ..plots.colors import Coloring
from ..plots.histogram import HistogramPlot
from ..plots.linked import LinkedPlot
from ..plots.text import hover
from .bitext import Sides
from .sts import cosines

SPREAD = 0.1
"""Least distance between points of a map."""


def histogram(sides: Sides, model: str, seed: int = 0) -> HistogramPlot:
    """Return the cosines of translations, of each sentence and the nearest that is none, and of random pairs.

    The further the first lie from the second, the fewer mistakes a search across both languages makes.
    """
    pairs = np.array(sorted(sides.truth), np.int64)
    rng = np.random.default_rng(seed)
    chance = np.stack(
        [rng.integers(len(sides.first), size=len(pairs)), rng.integers(len(sides.second), size=len(pairs))]
    )
    kept = np.array([pair not in sides.truth for pair in zip(*chance.tolist(), strict=True)], bool)
    others = chance[:, kept]
    return HistogramPlot(
        title=f"{sides.file.name}: similarities in {_model(model)}",
        names=("translations", "the nearest sentence that is none", "random pairs"),
        values=(
            cosines(sides.first[pairs[:, 0]], sides.second[pairs[:, 1]]),
            nearest_wrong(sides),
            cosines(sides.first[others[0]], sides.second[others[1]]),
        ),
    )


def nearest_wrong(sides: Sides) -> np.ndarray:
    """Return float [n], for each sentence of the first side the cosine of the nearest one that is no translation."""
    most = max(np.bincount([row for row, _ in sides.truth]).max(), 1)
    found, near = neighbours(sides.first, sides.second, int(most) + 1)
    wrong = np.array([[(row, other) not in sides.truth for other in line] for row, line in enumerate(found.tolist())])
    kept = wrong.any(axis=1)
    return near[np.flatnonzero(kept), wrong.argmax(axis=1)[kept]].astype(np.float64)


def bilingual_map(sides: Sides, model: str, seed: int = 0) -> LinkedPlot:
    """Return a map of the sentences of both sides, with a line from each to its translation.

    Where a model knows both languages, translations lie on each other; where not, each language is an island.

    Raises:
        MissingExtraError: umap-learn is not installed.
    """
    names = sides.file.columns if len(set(sides.file.columns[:2])) == 2 else ("1", "2")
    vectors = np.concatenate([sides.first, sides.second])
    places = project(vectors, 2, seed, spread_out=SPREAD)
    beside = _beside(sides)
    texts = [*sides.firsts, *sides.seconds]
    languages = [_language(names[0])] * len(sides.firsts) + [_language(names[1])] * len(sides.seconds)
    shown = [hover("", text, beside[row]) for row, text in enumerate(texts)]
    points = PointsPlot(f"{sides.file.name} in {_model(model)}", places, shown, Coloring.groups("language", languages))
    return LinkedPlot(points, [(one, len(sides.firsts) + two) for one, two in sorted(sides.truth)])


def write_plots(sides: Sides, model: str, histogram_to: Path | None, map_to: Path | None, seed: int = 0) -> None:
    """Write the pictures that are asked for.

    Raises:
        UsageError: A file's name ends neither in .html nor in .png.
        SondeError: A file cannot be written.
        MissingExtraError: A library is not installed.
    """
    from ..plots import write_plot

    if histogram_to is not None:
        write_plot(histogram(sides, model, seed), histogram_to)
    if map_to is not None:
        write_plot(bilingual_map(sides, model, seed), map_to)


def check_seed(seed: int) -> int:
    """Return the seed; UsageError where it is negative."""
    if seed < 0:
        raise UsageError(f"the seed is {seed}: give 0 or more")
    return seed


def _beside(sides: Sides) -> list[str]:
    """Return one translation for each sentence of both sides."""
    beside = [""] * (len(sides.firsts) + len(sides.seconds))
    for one, two in sorted(sides.truth):
        beside[one], beside[len(sides.firsts) + two] = sides.seconds[two], sides.firsts[one]
    return beside


def _language(column: str) -> str:
    return f"column {column}" if column.isdigit() else column


def _model(name: str) -> str:
    path = Path(name)
    return "/".join(path.parts[-2:]) if path.is_absolute() else name
