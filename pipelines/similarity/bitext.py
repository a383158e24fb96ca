"""Bitext: which sentences of two languages are translations of each other, by margins (Artetxe and Schwenk, ACL 2019).

The cosine alone misleads, since some sentences are near to everything. A pair counts by how much nearer its two
sentences are to each other than to their other neighbours.
"""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ...indexer.document import Document
from ...indexer.encoder import DEFAULT_MODEL, Encoder
from ...indexer.errors import SondeError, Texts, as_texts, out_of_range
from ...indexer.progress import Notify, silent
from ...indexer.readers import ReadOptions, read_source
from ...indexer.readers.formats import TEXT_FORMATS, format_by_name
from ..analysis.neighbours import neighbours
from .similarity import embed_texts, load_symmetric

NEIGHBOURS = 4
"""Neighbours on each side that a margin is taken over: the paper's."""
LEAST = 1e-3
"""Least mean cosine of the neighbours: about 0 and below, a ratio would say nothing."""
Score = Literal["margin", "cosine"]


@dataclass(frozen=True, slots=True)
class Translation:
    """A mined pair.

    Attributes:
        first: A text of the first side.
        second: Its translation, most probably, of the second.
        margin: Cosine over the mean cosine of both texts' nearest neighbours on the other side; above 1 they are
            nearer to each other than to those.
        cosine: -1 to 1.
    """

    first: str
    second: str
    margin: float
    cosine: float

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return asdict(self)


@dataclass(frozen=True, slots=True, eq=False)
class Mined:
    """Pairs of rows, the surest first; no row is in two of them.

    Attributes:
        rows: int64 [n, 2], of the first and of the second side.
        scores: float64 [n], margins (or cosines where these were asked for), falling.
        cosines: float64 [n].
    """

    rows: np.ndarray
    scores: np.ndarray
    cosines: np.ndarray


def mine_pairs(first: np.ndarray, second: np.ndarray, k: int = NEIGHBOURS, score: Score = "margin") -> Mined:
    """Pair rows of two sets of vectors.

    Of each row the neighbour of the best score is a candidate, from both sides; candidates are taken from the best
    down, each row once (the paper's "max. score").

    Args:
        first: float32 [n, d], of length 1.
        second: float32 [m, d], of length 1.
        k: Neighbours that a margin is taken over.
        score: "margin", or "cosine" for the plain similarity.

    Raises:
        UsageError: k is below 1.
        SondeError: A side is empty.
    """
    if k < 1:
        raise out_of_range("k", k, "take the margin over at least 1 neighbour")
    if not len(first) or not len(second):
        raise SondeError("one side has no sentence: give two files with sentences")
    forth, forth_cosines = neighbours(first, second, k)
    back, back_cosines = neighbours(second, first, k)
    means = forth_cosines.mean(axis=1, dtype=np.float64), back_cosines.mean(axis=1, dtype=np.float64)
    there = _candidates(forth, forth_cosines, means[0], means[1], score)
    here = _candidates(back, back_cosines, means[1], means[0], score)
    rows = np.concatenate([there[0], here[0][:, ::-1]])
    scores, cosines = (np.concatenate(parts) for parts in zip(there[1:], here[1:], strict=True))
    return _one_to_one(rows, scores, cosines)


def _candidates(
    found: np.ndarray, cosines: np.ndarray, ours: np.ndarray, theirs: np.ndarray, score: Score
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return for each row its best neighbour, as int64 [n, 2], its score and its cosine."""
    scores = margins(cosines, ours[:, None], theirs[found]) if score == "margin" else cosines.astype(np.float64)
    best, every = scores.argmax(axis=1), np.arange(len(found))
    rows = np.stack([every, found[every, best]], axis=1)
    return rows, scores[every, best], cosines[every, best].astype(np.float64)


def margins(cosines: np.ndarray, ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """Return ratio margins: cosines over the mean of both sides' mean cosine to their k nearest neighbours."""
    return cosines / np.maximum((ours + theirs) / 2, LEAST)


def _one_to_one(rows: np.ndarray, scores: np.ndarray, cosines: np.ndarray) -> Mined:
    order = np.lexsort((rows[:, 1], rows[:, 0], -scores))
    taken: tuple[set[int], set[int]] = (set(), set())
    kept = []
    for place, (one, two) in zip(order.tolist(), rows[order].tolist(), strict=True):
        if one not in taken[0] and two not in taken[1]:
            taken[0].add(one)
            taken[1].add(two)
            kept.append(place)
    return Mined(rows[kept], scores[kept], cosines[kept])


def mine_bitext(
    first: Texts, second: Texts, *, model: str = DEFAULT_MODEL, threshold: float | None = None,
    k: int = NEIGHBOURS, prompt: str | None = None, device: str = "auto", dtype: str = "auto",
    encoder: Encoder | None = None, notify: Notify = silent,
) -> list[Translation]:  # fmt: skip
    """Find translations among two lists of sentences, the surest first.

    Args:
        first: Sentences of one language; those that come twice count once.
        second: Sentences of the other.
        model: A multilingual bi-encoder; the default one knows little but English.
        threshold: The least margin; all pairs where None.
        k: Neighbours that a margin is taken over.
        prompt: Put in front of every sentence.
        device: "auto", "cpu", "cuda" …
        dtype: Precision of the model.
        encoder: A bi-encoder of your own.
        notify: Receives sentences that the user should read.

    Raises:
        UsageError: An option is not valid.
        SondeError: A side is empty, or the model is not available.

    Example:
        >>> found = sonde.mine_bitext(["A dog barks.", "It rains."], ["Rain is falling.", "The dog is barking."])
        >>> [(pair.first, pair.second) for pair in found]
        [('A dog barks.', 'The dog is barking.'), ('It rains.', 'Rain is falling.')]
    """
    sides = [
        list(dict.fromkeys(text for text in as_texts(texts, "sentence") if text.strip())) for texts in (first, second)
    ]
    if not all(sides):
        raise SondeError("one side has no sentence: give two lists with sentences")
    encoder = encoder or load_symmetric(model, prompt, device=device, dtype=dtype, notify=notify)
    found = mine_pairs(*(embed_texts(encoder, texts, notify) for texts in sides), k=k)
    return [
        Translation(sides[0][one], sides[1][two], margin, cosine)
        for (one, two), margin, cosine in zip(
            found.rows.tolist(), found.scores.tolist(), found.cosines.tolist(), strict=True
        )
        if threshold is None or margin >= threshold
    ]


def read_sentences(path: Path) -> list[str]:
    """Return the sentences of a file: each line of a text, or the text column of a table.

    Raises:
        UsageError: A table has no column of text.
        SondeError: The file cannot be read, or holds no sentence.
    """
    plain = format_by_name(path) in (None, *TEXT_FORMATS)
    found = read_source(path, options=ReadOptions(format="lines") if plain else ReadOptions())
    return [item.text for item in found if isinstance(item, Document)]
