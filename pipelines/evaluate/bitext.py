"""How well a model finds translations in files of translated sentences, in figures and in pictures."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...indexer.encoder import Encoder
from ...indexer.errors import SondeError
from ...indexer.progress import Notify, silent
from ..analysis.neighbours import neighbours
from ..analysis.umap import project
from ..plots import PointsPlot
from ..plots.colors import Coloring, hover
from ..plots.curve import HistogramPlot
from ..plots.points import LinkedPlot
from ..similarity.bitext import NEIGHBOURS, Mined, margins, mine_pairs
from ..similarity.pair_file import PairFile
from ..similarity.similarity import cosines, embed_texts, load_symmetric

FEWEST = 3


@dataclass(frozen=True, slots=True)
class BitextQuality:
    """How a model does on one file; shares are 0 to 1, higher is better.

    Attributes:
        file: The file's name.
        model: As `load_encoder` took it.
        pairs: Different pairs of translations.
        forward: Share of the first side's sentences whose nearest sentence of the other side is a translation.
        backward: The same from the second side.
        forward_margin: As `forward`, by the margin.
        backward_margin: As `backward`, by the margin.
        threshold: The margin of the best F1. It was found on these very pairs, so that the next three are a best case.
        precision: Share of the pairs mined from this margin up that are translations.
        recall: Share of the translations that are among them.
        f1: Harmonic mean of both.
        cosine_f1: The best F1 when pairs are mined by their cosine.
    """

    file: str
    model: str
    pairs: int
    forward: float
    backward: float
    forward_margin: float
    backward_margin: float
    threshold: float
    precision: float
    recall: float
    f1: float
    cosine_f1: float

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return asdict(self)


@dataclass(frozen=True, slots=True, eq=False)
class Sides:
    """The different sentences of both sides, their vectors and which of them are translations.

    Attributes:
        file: The pairs that they come from.
        firsts: Sentences of the first side.
        seconds: Those of the second.
        first: float32 [n, d], of length 1.
        second: float32 [m, d], of length 1.
        truth: The rows of each pair of translations.
    """

    file: PairFile
    firsts: tuple[str, ...]
    seconds: tuple[str, ...]
    first: np.ndarray
    second: np.ndarray
    truth: frozenset[tuple[int, int]]

    @classmethod
    def of(cls, file: PairFile, encoder: Encoder, notify: Notify = silent) -> "Sides":
        """Embed both sides of a file.

        Raises:
            SondeError: It has fewer than three pairs.
        """
        if len(file) < FEWEST:
            raise SondeError(
                f"{file.name} has fewer than {FEWEST} pairs: give more, among which translations are found"
            )
        numbers = [{text: row for row, text in enumerate(dict.fromkeys(side))} for side in (file.firsts, file.seconds)]
        truth = {(numbers[0][one], numbers[1][two]) for one, two in zip(file.firsts, file.seconds, strict=True)}
        first, second = (embed_texts(encoder, list(side), notify) for side in numbers)
        return cls(file, tuple(numbers[0]), tuple(numbers[1]), first, second, frozenset(truth))


def evaluate_bitext(
    files: Sequence[PairFile], model: str, *, k: int = NEIGHBOURS, prompt: str | None = None, notify: Notify = silent,
    **options: Any,
) -> list[BitextQuality]:  # fmt: skip
    """Judge a model on files of translations.

    Args:
        files: In each, a sentence and its translation are side by side.
        model: A bi-encoder.
        k: Neighbours that a margin is taken over.
        prompt: Put in front of every sentence.
        notify: Receives sentences that the user should read.
        **options: Further arguments of `load_encoder`: `device`, `dtype` …

    Raises:
        UsageError: The model's name or an option is not valid.
        SondeError: A file has too few pairs, or the model is not available.
    """
    encoder = load_symmetric(model, prompt, notify=notify, **options)
    return [judge_bitext(Sides.of(file, encoder, notify), encoder.spec.name, k) for file in files]


def judge_bitext(sides: Sides, model: str, k: int = NEIGHBOURS) -> BitextQuality:
    """Judge vectors of both sides."""
    back = frozenset((two, one) for one, two in sides.truth)
    threshold, precision, recall, f1 = best_cut(mine_pairs(sides.first, sides.second, k), sides.truth)
    return BitextQuality(
        file=sides.file.name, model=model, pairs=len(sides.truth),
        forward=_first_right(sides.first, sides.second, sides.truth),
        backward=_first_right(sides.second, sides.first, back),
        forward_margin=_first_right(sides.first, sides.second, sides.truth, k),
        backward_margin=_first_right(sides.second, sides.first, back, k),
        threshold=threshold, precision=precision, recall=recall, f1=f1,
        cosine_f1=best_cut(mine_pairs(sides.first, sides.second, k, "cosine"), sides.truth)[3],
    )  # fmt: skip


def best_cut(mined: Mined, truth: frozenset[tuple[int, int]]) -> tuple[float, float, float, float]:
    """Return the threshold of the best F1, and precision, recall and F1 of the pairs at and above it."""
    right = np.cumsum([(one, two) in truth for one, two in mined.rows.tolist()])
    count = np.arange(1, len(right) + 1)
    f1 = 2 * right / (count + len(truth))
    f1[:-1][mined.scores[:-1] == mined.scores[1:]] = -1  # no threshold parts equal scores
    best = int(f1.argmax())
    return float(mined.scores[best]), float(right[best] / count[best]), float(right[best] / len(truth)), float(f1[best])


def _first_right(
    queries: np.ndarray, vectors: np.ndarray, truth: frozenset[tuple[int, int]], k: int | None = None
) -> float:
    """Return the share of queries whose nearest vector is a translation: by cosine, or over k neighbours by margin."""
    found, cosines = neighbours(queries, vectors, k or 1)
    best = np.zeros(len(found), np.int64)
    if k is not None:
        theirs = neighbours(vectors, queries, k)[1].mean(axis=1, dtype=np.float64)
        best = margins(cosines, cosines.mean(axis=1, keepdims=True), theirs[found]).argmax(axis=1)
    chosen = found[np.arange(len(found)), best].tolist()
    return sum((row, other) in truth for row, other in enumerate(chosen)) / len(chosen)


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
