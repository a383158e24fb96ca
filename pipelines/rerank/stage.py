"""The second stage: score the best documents of the first again, fuse both scores, leave the others behind them."""

from dataclasses import dataclass
from time import perf_counter

import numpy as np

from ...indexer.chunker import passage_text
from ...indexer.view import View
from ..ranked import Ranked
from ..results import Reranking
from .budget import Clock, portions
from .fusion import agree, fuse
from .reranker import Reranker

DEPTH = 50
"""Documents of the first stage that are read again; all experiments of docs/reranking.md had this depth."""

BORDER = 0.5
"""Scores of reranked documents lie between this and 1, those of the others below it."""


@dataclass(frozen=True, slots=True)
class SecondStage:
    """A second stage over one view.

    Attributes:
        view: Where the texts and the vectors of passages come from.
        reranker: What scores them.
        depth: How many of the first stage's documents come into question, whatever page of hits is asked for.
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

        The first `depth` documents are scored and reordered, the later ones follow in the order that they had. Both
        depend on the first stage alone, so that pages of one search fit together.
        """
        began = self.clock()
        places = np.arange(len(ranked.rows))
        head = ranked.take(places[: self.depth]).above(threshold)
        tail = ranked.take(places[self.depth :]).above(threshold)
        scores = self._score(query, head.rows)
        best = self._ordered(head.take(np.arange(len(scores))), scores)
        over = head.take(np.arange(len(scores), len(head.rows)))
        joined = _joined([best, _unscored(over), _unscored(tail)], len(scores))
        name, kind, unit = self.reranker.name, self.reranker.kind, self.reranker.unit
        return joined, Reranking(name, kind, unit, len(scores), len(head.rows), self.clock() - began)

    def _score(self, query: str, rows: np.ndarray) -> np.ndarray:
        parts = [np.empty(0, np.float64)]
        for portion in portions(len(rows), self.seconds, self.clock):
            parts.append(np.asarray(self.reranker.score(query, passage_texts(self.view, rows[portion])), np.float64))
        return np.concatenate(parts)

    def _ordered(self, head: Ranked, scores: np.ndarray) -> Ranked:
        if not len(scores):
            return _unscored(head)
        fused = fuse(head.scores, scores, self.reranker.weight if self.weight is None else self.weight)
        if self.reranker.agreement:
            vectors = self.view.generation.segments.read(head.rows)
            fused = agree(fused, vectors, self.reranker.agreement)
        # Rounded, so that passages which differ in the last bits alone are ordered by their row.
        fused = np.round(fused, 6)
        order = np.lexsort((head.rows, -fused))
        return head.reranked(BORDER + (1 - BORDER) * fused, scores).take(order)


def passage_texts(view: View, rows: np.ndarray) -> list[str]:
    """Return the texts of passages as they were embedded, the title in front."""
    passages = view.passages(rows.tolist())
    documents = view.documents([passage.doc for passage in passages.values()])
    found = [passages[row] for row in rows.tolist()]
    return [passage_text(documents[p.doc].title, documents[p.doc].text[p.start : p.end]) for p in found]


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
