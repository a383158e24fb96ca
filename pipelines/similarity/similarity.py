"""How similar two texts are, by cosine of their embeddings, by a cross-encoder and by NLI."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from threading import Lock
from typing import Any

import numpy as np

from ...indexer.encoder import DEFAULT_MODEL, Encoder, load_encoder
from ...indexer.errors import UsageError, as_text
from ...indexer.progress import Notify, Progress, silent
from ...indexer.store.view import normalized
from ..label import Entailment, NliClasses, load_nli
from ..pairs import PairScorer
from ..search.rerank import LATE
from ..search.rerank.late import BACKWARD, maxsim
from ..search.rerank.models import check_reranker_name, load_reranker
from ..search.rerank.stage import Reranker


def embed_texts(encoder: Encoder, texts: Sequence[str], notify: Notify = silent) -> np.ndarray:
    """Return float32 [n, d], the vectors of texts in their order.

    Args:
        encoder: The bi-encoder.
        texts: The texts.
        notify: Receives progress, from whichever thread did the work.
    """
    done, lock = 0, Lock()

    def count(batch: int) -> None:
        nonlocal done
        with lock:
            done += batch
            notify(Progress("embedding", done, len(texts), "texts"))

    return encoder.encode(encoder.tokenize(texts), on_batch=count)


def load_symmetric(name: str, prompt: str | None = None, *, notify: Notify = silent, **options: Any) -> Encoder:
    """Load a model for texts of equal role: without prompts of queries and documents, with its default one if any.

    Raises:
        UsageError: The name or an option is not valid.
        SondeError: The model is not available.
    """
    encoder = load_encoder(name, query_prompt=prompt or "", document_prompt=prompt or "", notify=notify, **options)
    if prompt is not None:
        return encoder
    usual = encoder.usual_prompt
    return load_symmetric(name, usual, notify=notify, **options) if usual else encoder


def cosines(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return float64 [n], the cosine of each pair of rows, -1 to 1; that of equal rows is exactly 1."""
    return np.cos(_angles(first, second))


def angular_similarities(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return float64 [n], 1 - angle / pi of each pair of rows: 1 for equal directions, 0 for opposite ones.

    Cer et al., "Universal Sentence Encoder", arXiv:1803.11175.
    """
    return 1 - _angles(first, second) / np.pi


def _angles(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the angle of each pair of rows, 0 to pi.

    By Kahan's formula: arccos loses half of the digits of small angles, and two equal texts would not be at 0.
    """
    one, two = (normalized(vectors.astype(np.float64)) for vectors in (first, second))
    return 2 * np.arctan2(np.linalg.norm(one - two, axis=1), np.linalg.norm(one + two, axis=1))


NONE = "none"
BLOCK = 256
"""Pairs that are worked on at once: the vectors of all their tokens are held meanwhile."""
ALIKE = 0.7
"""Cosine from which a pair counts as alike, for the notes."""
_WORD = re.compile(r"\w+")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Similarity:
    """Two texts through a bi-encoder, a second stage and an NLI model.

    Attributes:
        first: The first text.
        second: The second text.
        cosine: Of the bi-encoder's vectors, -1 to 1.
        angular: 1 - angle / pi of these vectors, 0 to 1.
        second_stage: A cross-encoder's score, or late interaction's, -1 to 1; None where none was asked.
        forward: Whether the second text follows from the first; None where no NLI model was asked.
        backward: Whether the first follows from the second.
        notes: What no cosine sees: the same words in another order, other numbers.
    """

    first: str
    second: str
    cosine: float
    angular: float
    second_stage: float | None
    forward: Entailment | None
    backward: Entailment | None
    notes: tuple[str, ...] = ()

    @property
    def paraphrase(self) -> bool | None:
        """Whether, to the NLI model, each text follows from the other; None where none was asked."""
        if self.forward is None or self.backward is None:
            return None
        return self.forward.label == self.backward.label == "entailment"

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return asdict(self) | {"paraphrase": self.paraphrase, "notes": list(self.notes)}


class Comparison:
    """The models that pairs are shown to; made by `load_comparison`.

    Attributes:
        encoder: The bi-encoder.
        second_stage: A cross-encoder, "late" for late interaction over the bi-encoder, None for neither.
        nli: The NLI model, or None.
    """

    def __init__(self, encoder: Encoder, second_stage: Reranker | str | None, nli: PairScorer | None) -> None:
        """Take loaded models.

        Raises:
            SondeError: The NLI model names no class of entailment.
        """
        self.encoder = encoder
        self.second_stage = second_stage
        self.nli = nli
        self._classes = NliClasses.of(nli) if nli else None

    @property
    def names(self) -> tuple[str, str | None, str | None]:
        """What the three are called."""
        stage = self.second_stage
        named = "late interaction" if stage == LATE else getattr(stage, "name", None)
        return self.encoder.spec.name, named, self.nli.name if self.nli else None

    def __call__(self, pairs: Sequence[Pair], notify: Notify = silent) -> Iterator[Similarity]:
        """Yield the similarity of each pair, in order.

        Raises:
            UsageError: A text is empty.
            SondeError: The bi-encoder has no token embeddings, which late interaction needs.
        """
        check_pairs(pairs)
        for start in range(0, len(pairs), BLOCK):
            yield from self._block(pairs[start : start + BLOCK])
            notify(Progress("comparing", min(start + BLOCK, len(pairs)), len(pairs), "pairs"))

    def _block(self, pairs: Sequence[Pair]) -> list[Similarity]:
        numbers = {text: number for number, text in enumerate(dict.fromkeys(text for pair in pairs for text in pair))}
        places = np.array([[numbers[text] for text in pair] for pair in pairs], np.int64)
        vectors = self.encoder.encode_texts(list(numbers))
        first, second = vectors[places[:, 0]], vectors[places[:, 1]]
        near, angular = cosines(first, second).tolist(), angular_similarities(first, second).tolist()
        stage = self._staged(pairs, list(numbers), places)
        judged = self._judged(pairs)
        rows = zip(pairs, near, angular, stage, judged, strict=True)
        return [
            Similarity(one, two, cosine, angle, score, *verdicts, notes=comparison_notes(one, two, cosine))
            for (one, two), cosine, angle, score, verdicts in rows
        ]

    def _staged(self, pairs: Sequence[Pair], texts: list[str], places: np.ndarray) -> list[float | None]:
        if self.second_stage is None:
            return [None] * len(pairs)
        if isinstance(self.second_stage, str):
            tokens = [found.vectors for found in self.encoder.token_vectors(self.encoder.tokenize(texts))]
            return [float(maxsim(tokens[a], [tokens[b]], backward=BACKWARD)[0]) for a, b in places.tolist()]
        scores: list[float | None] = [None] * len(pairs)
        by_first: dict[str, list[int]] = defaultdict(list)
        for number, (one, _) in enumerate(pairs):
            by_first[one].append(number)
        for one, found in by_first.items():
            for number, score in zip(
                found, self.second_stage.score(one, [pairs[number][1] for number in found]), strict=True
            ):
                scores[number] = float(score)
        return scores

    def _judged(self, pairs: Sequence[Pair]) -> list[tuple[Entailment | None, Entailment | None]]:
        if self.nli is None or self._classes is None:
            return [(None, None)] * len(pairs)
        logits = self.nli.logits([*pairs, *((two, one) for one, two in pairs)])
        verdicts = [Entailment.of(row, self._classes, self.nli.name) for row in logits]
        return list(zip(verdicts[: len(pairs)], verdicts[len(pairs) :], strict=True))


def check_pairs(pairs: Sequence[Pair]) -> None:
    """Raise UsageError where a text is empty."""
    for number, pair in enumerate(pairs, start=1):
        if not all(text.strip() for text in pair):
            which = "" if len(pairs) == 1 else f" of pair {number}"
            raise UsageError(f"a text{which} is empty: give two texts to compare")


@lru_cache(maxsize=2)
def load_comparison(
    model: str = DEFAULT_MODEL, second_stage: str = LATE, nli: str | None = None, device: str = "auto",
    prompt: str | None = None, notify: Notify = silent,
) -> Comparison:  # fmt: skip
    """Load the models of a comparison; those of the last two calls stay loaded.

    Args:
        model: A bi-encoder.
        second_stage: "late", a cross-encoder's folder or hub name, or "none".
        nli: An NLI model: "bundled", a folder, a hub name, or "none"; the bundled one where None.
        device: "auto", "cpu", "cuda" …
        prompt: Put in front of both texts for the bi-encoder.
        notify: Receives sentences that the user should read.

    Raises:
        UsageError: A name or the device is not valid.
        SondeError: A model is not available, or does not do what it is asked for.
    """
    stage = NONE if second_stage == NONE else check_reranker_name(second_stage)
    encoder = load_symmetric(model, prompt, device=device, notify=notify)
    judge = None if nli == NONE else load_nli(nli, device=device, notify=notify)
    named = {NONE: None, LATE: LATE}
    loaded = named[stage] if stage in named else load_reranker(stage, device, notify)
    return Comparison(encoder, loaded, judge)


def similarity(
    first: str, second: str, *, model: str = DEFAULT_MODEL, second_stage: str = LATE, nli: str | None = None,
    device: str = "auto",
) -> Similarity:  # fmt: skip
    """Compare two texts by a bi-encoder's cosine, a second stage and an NLI model; see `load_comparison`.

    Raises:
        UsageError: A text is empty, or a name is not valid.
        SondeError: A model is not available.

    Example:
        >>> found = sonde.similarity("An elephant is bigger than a lion.", "A lion is bigger than an elephant.")
        >>> found.cosine > 0.9, found.notes[0]
        (True, 'the same words in another order: embeddings do not show who does what')
    """
    first, second = as_text(first, "text"), as_text(second, "text")
    check_pairs([(first, second)])
    [found] = load_comparison(model, second_stage, nli, device)([(first, second)])
    return found


def comparison_notes(first: str, second: str, cosine: float) -> tuple[str, ...]:
    """Return what a high cosine hides: the same words in another order, and other numbers."""
    if cosine < ALIKE:
        return ()
    found = []
    one, two = ([word.casefold() for word in _WORD.findall(text)] for text in (first, second))
    if one != two and _bag(one) == _bag(two):
        found.append("the same words in another order: embeddings do not show who does what")
    numbers = [sorted(_NUMBER.findall(text)) for text in (first, second)]
    if numbers[0] != numbers[1] and all(numbers):
        left, right = (", ".join(some) for some in numbers)
        found.append(f"other numbers: {left} and {right}")
    return tuple(found)


def _bag(words: list[str]) -> list[str]:
    """Return the words in the order of the alphabet; "a" and "an" are one word."""
    return sorted("a" if word == "an" else word for word in words)
