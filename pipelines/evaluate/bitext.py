"""How well a model finds translations, on files of translated sentences: the truth is who stands beside whom."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ...indexer.encoder import Encoder
from ...indexer.errors import SondeError
from ...indexer.progress import Notify, silent
from ..bitext import NEIGHBOURS, Mined, margins, mine
from ..cluster.neighbours import neighbours
from ..embedding import embed
from ..pair_file import PairFile
from .sts import load_symmetric

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
        first, second = (embed(encoder, list(side), notify) for side in numbers)
        return cls(file, tuple(numbers[0]), tuple(numbers[1]), first, second, frozenset(truth))


def evaluate_bitext(
    files: Sequence[PairFile], model: str, *, k: int = NEIGHBOURS, prompt: str | None = None, notify: Notify = silent,
    **options: Any,
) -> list[BitextQuality]:  # fmt: skip
    """Judge a model on files of translations.

    Args:
        files: In each, a sentence and its translation stand beside each other.
        model: A bi-encoder.
        k: Neighbours that a margin is taken over.
        prompt: Put in front of every sentence.
        notify: Receives sentences that the user should read.
        **options: Further arguments of `load_encoder`: `device`, `dtype` …

    Raises:
        UsageError: The model's name or an option cannot be right.
        SondeError: A file has too few pairs, or the model cannot be had.
    """
    encoder = load_symmetric(model, prompt, notify=notify, **options)
    return [judge(Sides.of(file, encoder, notify), encoder.spec.name, k) for file in files]


def judge(sides: Sides, model: str, k: int = NEIGHBOURS) -> BitextQuality:
    """Judge vectors of both sides."""
    back = frozenset((two, one) for one, two in sides.truth)
    threshold, precision, recall, f1 = best_cut(mine(sides.first, sides.second, k), sides.truth)
    return BitextQuality(
        file=sides.file.name, model=model, pairs=len(sides.truth),
        forward=_first_right(sides.first, sides.second, sides.truth),
        backward=_first_right(sides.second, sides.first, back),
        forward_margin=_first_right(sides.first, sides.second, sides.truth, k),
        backward_margin=_first_right(sides.second, sides.first, back, k),
        threshold=threshold, precision=precision, recall=recall, f1=f1,
        cosine_f1=best_cut(mine(sides.first, sides.second, k, "cosine"), sides.truth)[3],
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
