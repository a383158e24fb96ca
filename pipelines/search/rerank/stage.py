"""The second stage: rerank the best documents within a time budget, and fuse the scores of both stages."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from time import perf_counter
from typing import Literal, Protocol, overload

import numpy as np

from ....indexer.errors import UsageError
from ....indexer.ingest.chunker import passage_text
from ....indexer.store.view import View, normalized
from ....indexer.wording import seconds_of
from ..fusion import Ranked
from ..results import Reranking

Unit = Literal["similarity", "probability", "logit"] | str
"""What a second stage's score is: a mean maximum similarity (-1 to 1), a probability (0 to 1) or a raw logit."""


@dataclass(frozen=True, slots=True)
class TokenMatch:
    """A word of the query and the word of a text that it matched best; offsets are those in that text."""

    query: str
    word: str
    start: int
    end: int
    similarity: float


class Reranker(Protocol):
    """Scores passages for a query; higher is better.

    Attributes:
        name: The model: "late", a hub's "org/name" or a folder.
        kind: "late interaction", "cross-encoder" or "multi-vector model".
        unit: What the score is.
        weight: Share of the score in the fusion with the first stage's, 0 to 1.
        agreement: Share of the neighbours' scores in the fused score, 0 to 1.
    """

    name: str
    kind: str
    unit: Unit
    weight: float
    agreement: float

    def score(self, query: str, passages: Sequence[str]) -> np.ndarray:
        """Return float [n], the score of each passage, its title in front; higher is better."""
        ...

    def matches(self, query: str, passage: str) -> list[TokenMatch]:
        """Return which words of the query matched which of a passage, the most important first, if that is known."""
        ...


class StoredPassages(Sequence[str]):
    """Passages by row, as they were embedded, the title in front; their texts are read when one is asked for."""

    def __init__(self, view: View, rows: np.ndarray) -> None:
        """Take a view and int64 [n] rows of it."""
        self.view = view
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        return self.texts[place]

    @cached_property
    def texts(self) -> list[str]:
        """The texts."""
        passages = self.view.passages(self.rows.tolist())
        documents = self.view.documents([passage.doc for passage in passages.values()])
        found = [passages[row] for row in self.rows.tolist()]
        return [passage_text(documents[p.doc].title, documents[p.doc].text[p.start : p.end]) for p in found]

    def take(self, places: Sequence[int]) -> "StoredPassages":
        """Return the passages at these places."""
        return StoredPassages(self.view, self.rows[list(places)])


FIRST = 4
"""Documents of the first portion, which always runs: it measures how long one takes."""

MOST = 64

Clock = Callable[[], float]


def parse_budget(text: str) -> float:
    """Return the seconds that "300ms", "1.5s", "2min" or "1h" stands for.

    Raises:
        UsageError: It is no such time, or no time at all.
    """
    seconds = seconds_of(text)
    if seconds is None:
        said = f"the budget {text!r} is not a valid duration: write it as 300ms, 1.5s or 2min"
        raise UsageError(said, code="wrong-type", field="rerank_budget", value=text)
    return seconds


def portions(count: int, seconds: float | None, clock: Clock = perf_counter) -> Iterator[slice]:
    """Yield slices of `count` candidates, best first: all of them at once, or as many as the time allows.

    With a budget the first portion runs in any case; a later one is as large as the time left allows at the pace
    measured so far, and none is begun once not even one document would fit.
    """
    if seconds is None:
        yield slice(0, count)
        return
    began, done = clock(), min(FIRST, count)
    yield slice(0, done)
    while done < count:
        spent = clock() - began
        size = count if spent <= 0 else int((seconds - spent) / (spent / done))
        if spent >= seconds or size < 1:
            return
        size = min(size, MOST, count - done)
        yield slice(done, done + size)
        done += size


NEIGHBOURS = 5
"""Documents whose scores a document's own is averaged with."""


def fuse(first: np.ndarray, second: np.ndarray, weight: float) -> np.ndarray:
    """Return the convex combination of both scores, each scaled to 0..1 over the candidates; higher is better.

    Args:
        first: float [n], the first stage's scores.
        second: float [n], the second stage's.
        weight: Share of the second stage, 0 to 1.
    """
    return (1 - weight) * _scaled(first) + weight * _scaled(second)


def agree_with_neighbours(scores: np.ndarray, vectors: np.ndarray, share: float) -> np.ndarray:
    """Return each score averaged with those of the documents most alike: relevant documents lie close together.

    One step of the score regularization of Diaz, "Regularizing ad hoc retrieval scores", CIKM 2005: the result is
    (1 - share) times a document's own score and `share` times the mean of its neighbours', weighted by cosine.

    Args:
        scores: float [n], 0 to 1.
        vectors: float [n, d], the documents' best passages.
        share: 0 to 1; with 0 the scores stay as they are.
    """
    if not share or len(scores) < 2:
        return scores
    unit = normalized(vectors).astype(np.float64)
    # Rounded, so that equal passages stay equal neighbours whatever the order of the sums.
    near = np.clip(np.round(unit @ unit.T, 6), 0, None)
    np.fill_diagonal(near, 0)
    order = np.argsort(-near, axis=1, kind="stable")[:, NEIGHBOURS:]
    np.put_along_axis(near, order, 0, axis=1)
    total = near.sum(axis=1)
    mean = np.divide(near @ scores, total, out=scores.astype(np.float64), where=total > 0)
    return (1 - share) * scores + share * mean


FEW = 5
"""If the query asks for a certain text, fewer documents than this are much better than the others."""
SUBJECT, CERTAIN = 0.15, 0.45
"""Below the first, a query asks for a subject; above the second, for a certain text (docs/reranking.md)."""
SOME, MOST_WORDS = 0.75, 0.95
"""The same for the share of the query's words that one text has."""


def asks_for_a_subject(dense: np.ndarray | None, cover: float | None = None) -> float:
    """Return how much a query asks for a subject, which many documents have, and not for a certain text; 0 to 1.

    Two measures are multiplied. The first is how far the fifth best cosine lies below the best, as a share of the
    range of all cosines. It counts as 1 if there are too few documents to tell. The second is whether one text has
    nearly all words of the query.

    Args:
        dense: float [n], the first stage's best cosines, in any order; None if they are not known.
        cover: Share of the query's words, weighted by rarity, that the best lexical hit has; None if it is not known.
    """
    spread = 1.0 if cover is None else (MOST_WORDS - cover) / (MOST_WORDS - SOME)
    if dense is None or len(dense) < 2 * FEW:
        return float(np.clip(spread, 0, 1))
    falling = np.sort(np.asarray(dense, np.float64))[::-1]
    width = falling[0] - falling[-1]
    fall = (falling[0] - falling[FEW - 1]) / width if width > 0 else 0.0
    return float(np.clip((CERTAIN - fall) / (CERTAIN - SUBJECT), 0, 1) * np.clip(spread, 0, 1))


def _scaled(scores: np.ndarray) -> np.ndarray:
    scores = np.asarray(scores, np.float64)
    low, high = scores.min(initial=np.inf), scores.max(initial=-np.inf)
    return (scores - low) / (high - low) if high > low else np.zeros_like(scores)


DEPTH = 50
"""Documents of the first stage that are read again; all experiments of benchmarks/README.md had this depth."""

CHOICE = 200
"""Documents of the first stage from which those to read are chosen, if a query asks for a subject."""

BORDER = 0.5
"""Scores of reranked documents lie between this and 1, those of the others below it."""


@dataclass(frozen=True, slots=True)
class SecondStage:
    """A second stage over one view.

    Attributes:
        view: Where the texts and the vectors of passages come from.
        reranker: What scores them.
        depth: How many of the first stage's documents are read, whatever page of hits is asked for.
        seconds: A time budget for each query, or None.
        clock: Tells the time, in seconds.
        weight: Share of the second stage's score in the fusion; None takes the reranker's own.
    """

    view: View
    reranker: Reranker
    depth: int = DEPTH
    seconds: float | None = None
    clock: Clock = perf_counter
    weight: float | None = None

    def run(self, query: str, ranked: Ranked, threshold: float | None = None) -> tuple[Ranked, Reranking]:
        """Return the documents in their new order, those below the threshold left out, and what was done.

        `depth` documents are scored and reordered, the others follow in the order that they had. Both depend on the
        first stage's best documents alone, so that pages of one search fit together.
        """
        began = self.clock()
        share = self._share(ranked)
        ranked = self._chosen(ranked, share)
        places = np.arange(len(ranked.rows))
        head = ranked.take(places[: self.depth]).above(threshold)
        tail = ranked.take(places[self.depth :]).above(threshold)
        scores = self._score(query, head.rows)
        best = self._ordered(head.take(np.arange(len(scores))), scores, share)
        over = head.take(np.arange(len(scores), len(head.rows)))
        joined = _joined([best, _unscored(over), _unscored(tail)], len(scores))
        name, kind, unit = self.reranker.name, self.reranker.kind, self.reranker.unit
        return joined, Reranking(name, kind, unit, len(scores), len(head.rows), self.clock() - began)

    def _share(self, ranked: Ranked) -> float:
        """Return the neighbours' share for this query, 0 to 1."""
        if not self.reranker.agreement:
            return 0.0
        dense = None if ranked.dense is None else ranked.dense[: self.depth]
        cover = None if ranked.weight is None else ranked.weight.cover
        return self.reranker.agreement * asks_for_a_subject(dense, cover)

    def _chosen(self, ranked: Ranked, share: float) -> Ranked:
        """Put the documents to read in front: the best ones after their scores were averaged with their neighbours'."""
        near = ranked.take(np.arange(min(len(ranked.rows), max(CHOICE, self.depth))))
        if not share or len(near.rows) < 2:
            return ranked
        averaged = agree_with_neighbours(_scaled(near.scores), self._vectors(near.rows), share)
        averaged = np.round(averaged, 6)
        best = np.lexsort((near.rows, -averaged))[: self.depth]
        others = np.setdiff1d(np.arange(len(ranked.rows)), best)
        scores = np.concatenate([averaged, ranked.scores[len(averaged) :]])
        return replace(ranked, scores=scores).take(np.concatenate([best, others]))

    def _vectors(self, rows: np.ndarray) -> np.ndarray:
        return self.view.generation.segments.read(rows)

    def _score(self, query: str, rows: np.ndarray) -> np.ndarray:
        parts = [np.empty(0, np.float64)]
        for portion in portions(len(rows), self.seconds, self.clock):
            parts.append(np.asarray(self.reranker.score(query, StoredPassages(self.view, rows[portion])), np.float64))
        return np.concatenate(parts)

    def _ordered(self, head: Ranked, scores: np.ndarray, share: float) -> Ranked:
        if not len(scores):
            return _unscored(head)
        fused = fuse(head.scores, scores, self.reranker.weight if self.weight is None else self.weight)
        if share:
            fused = agree_with_neighbours(fused, self._vectors(head.rows), share)
        # Rounded, so that passages which differ in the last bits alone are ordered by their row.
        fused = np.round(fused, 6)
        order = np.lexsort((head.rows, -fused))
        return head.reranked(BORDER + (1 - BORDER) * fused, scores).take(order)


def _unscored(part: Ranked) -> Ranked:
    return part.reranked(part.scores, np.full(len(part.rows), np.nan))


def _joined(parts: list[Ranked], done: int) -> Ranked:
    """Join parts in their order; what follows the `done` reranked documents gets scores that fall with its place."""
    joined = Ranked.joined(parts)
    behind = np.arange(1, len(joined.rows) - done + 1)
    base = max(done, 1)
    scores = np.concatenate([joined.scores[:done], BORDER * base / (base + behind)])
    assert joined.second is not None
    return joined.reranked(scores, joined.second)
