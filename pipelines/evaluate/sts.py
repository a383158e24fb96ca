"""Semantic textual similarity: how well a model's similarities follow those that people gave to pairs of sentences."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ...indexer.encoder import Encoder
from ...indexer.errors import SondeError
from ...indexer.progress import Notify, silent
from ..similarity.pair_file import PairFile
from ..similarity.similarity import angular_similarities, cosines, embed_texts, load_symmetric
from .variants import Cost, settled_memory, watched, weights_size

FEWEST = 3
_Z = 1.96


@dataclass(frozen=True, slots=True)
class StsQuality:
    """How a model does on one file; correlations are -1 to 1, higher is better.

    Attributes:
        file: The file's name.
        model: As `load_encoder` took it.
        dtype: Precision of the forward pass.
        pairs: Pairs in the file.
        dimension: Of the vectors.
        spearman: Rank correlation of cosine and score; that of the angular similarity is the same, up to rounding.
        interval: 95 % interval of it (Bonett and Wright, Psychometrika 2000).
        pearson: Linear correlation of cosine and score.
        pearson_angular: Of the angular similarity, 1 - arccos(cosine) / pi (Cer et al., arXiv:1803.11175).
        spearman_angular: Its rank correlation.
        seconds: To encode the distinct sentences, by the clock.
        processor_seconds: The same, of work by all threads together.
        sentences: How many these are.
        size: Bytes of the weights in this precision.
        memory: Bytes by which the process grew at most, from before the model was loaded until all was encoded.
        others: Share of the processor that other programs used meanwhile, 0 to 1: where it is much, `seconds` is not
            to be relied on.
    """

    file: str
    model: str
    dtype: str
    pairs: int
    dimension: int
    spearman: float
    interval: tuple[float, float]
    pearson: float
    pearson_angular: float
    spearman_angular: float
    seconds: float
    processor_seconds: float
    sentences: int
    size: int
    memory: int
    others: float

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return asdict(self) | {"interval": list(self.interval)}


@dataclass(frozen=True, slots=True)
class Correlation:
    """Pearson's and Spearman's correlation of similarities with scores, -1 to 1, and Spearman's 95 % interval."""

    pearson: float
    spearman: float
    interval: tuple[float, float]


def evaluate_sts(
    files: Sequence[PairFile], models: Sequence[str], *, prompt: str | None = None, notify: Notify = silent,
    **options: Any,
) -> list[StsQuality]:  # fmt: skip
    """Compare models on files of scored pairs: one result for each file and model, the files in order.

    Args:
        files: Pairs with scores.
        models: Names as `load_encoder` takes them.
        prompt: Put in front of every sentence; the model's default prompt, which few have, where None.
        notify: Receives sentences that the user should read.
        **options: Further arguments of `load_encoder`: `device`, `dtype`, `truncate_dim` …

    Raises:
        UsageError: A model's name or an option is not valid.
        SondeError: A file has too few pairs or only one score, or a model is not available.
    """
    for file in files:
        check_scores(file)
    found: dict[tuple[int, int], StsQuality] = {}
    for place, name in enumerate(models):
        before = settled_memory()
        encoder = load_symmetric(name, prompt, notify=notify, **options)
        for number, file in enumerate(files):
            found[number, place] = sts_quality(encoder, file, before, notify)
        del encoder
    return [found[key] for key in sorted(found)]


def check_scores(file: PairFile) -> None:
    """Raise SondeError where a correlation with the file's scores is not defined."""
    if len(file) < FEWEST:
        count = "1 pair" if len(file) == 1 else f"{len(file)} pairs"
        raise SondeError(f"{file.name} has {count}: a correlation needs at least {FEWEST}")
    if len(set(file.scores)) == 1:
        raise SondeError(
            f"all {len(file):,} scores of {file.name} are {file.scores[0]:g}: a correlation needs different ones"
        )


def sts_quality(encoder: Encoder, file: PairFile, before: int, notify: Notify = silent) -> StsQuality:
    """Judge one encoder on one file; `before` is the process's memory before it was loaded.

    Raises:
        SondeError: The model gives all pairs the same similarity.
    """
    cost, vectors, places = encoded(encoder, file, before, notify)
    first, second = vectors[places[:, 0]], vectors[places[:, 1]]
    plain = correlation(cosines(first, second), file.scores, encoder.spec.name, file.name)
    angular = correlation(angular_similarities(first, second), file.scores, encoder.spec.name, file.name)
    return StsQuality(
        file=file.name, model=encoder.spec.name, dtype=encoder.spec.dtype, pairs=len(file),
        dimension=encoder.spec.dimension, spearman=plain.spearman, interval=plain.interval, pearson=plain.pearson,
        pearson_angular=angular.pearson, spearman_angular=angular.spearman, seconds=cost.seconds,
        processor_seconds=cost.processor,
        sentences=len(vectors), size=weights_size(encoder), memory=cost.memory, others=cost.others,
    )  # fmt: skip


def encoded(
    encoder: Encoder, file: PairFile, before: int, notify: Notify = silent
) -> tuple[Cost, np.ndarray, np.ndarray]:
    """Return what it cost, the distinct sentences' vectors, and int64 [pairs, 2] where each pair's are."""
    numbers: dict[str, int] = {}
    places = [
        [numbers.setdefault(one, len(numbers)), numbers.setdefault(two, len(numbers))]
        for one, two in zip(file.firsts, file.seconds, strict=True)
    ]
    encoder.encode_texts(list(numbers)[:8])  # whatever is set up at the first batch is no part of the time
    with watched(before, encoder.devices[0]) as cost:
        vectors = embed_texts(encoder, list(numbers), notify)
    return cost, vectors, np.array(places, np.int64).reshape(-1, 2)


def correlation(similarities: np.ndarray, scores: Sequence[float], model: str, file: str) -> Correlation:
    """Correlate similarities with scores.

    Raises:
        SondeError: All similarities are the same.
    """
    if np.ptp(similarities) == 0:
        raise SondeError(f"{model} gives all pairs of {file} the same similarity: there is no correlation")
    rank = spearman(similarities, np.asarray(scores))
    return Correlation(pearson(similarities, np.asarray(scores)), rank, _interval(rank, len(scores)))


def spearman(first: np.ndarray, second: np.ndarray) -> float:
    """Return the correlation of the ranks of float [n] numbers, -1 to 1; NaN if one side is constant."""
    return pearson(_ranks(first), _ranks(second))


def pearson(first: np.ndarray, second: np.ndarray) -> float:
    """Return the linear correlation of float [n] numbers, -1 to 1; NaN if one side is constant."""
    if not (np.ptp(first) and np.ptp(second)):
        return math.nan
    one, other = (part - part.mean(dtype=np.float64) for part in (first, second))
    return max(-1.0, min(1.0, float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))))


def _ranks(numbers: np.ndarray) -> np.ndarray:
    """Return the ranks from 1, float64 [n]; equal numbers share the mean of theirs."""
    _, place, counts = np.unique(numbers, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[place]


def _interval(rank: float, count: int) -> tuple[float, float]:
    """Return the 95 % interval of a rank correlation, through Fisher's z with Bonett and Wright's standard error."""
    if count <= FEWEST or abs(rank) >= 1:
        return (-1.0, 1.0) if count <= FEWEST else (rank, rank)
    spread = _Z * math.sqrt((1 + rank**2 / 2) / (count - 3))
    return math.tanh(math.atanh(rank) - spread), math.tanh(math.atanh(rank) + spread)
