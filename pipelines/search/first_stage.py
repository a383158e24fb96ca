"""The first stage of a search: dense, lexical or fused candidates, with an estimate of their relevance."""

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from ...indexer.encoder.scale import DEFAULT_SCALE, SimilarityScale, known_scale, scale_of
from ...indexer.errors import SondeError
from ...indexer.lexical import QueryWords
from ...indexer.progress import check_wanted
from ...indexer.store.view import View
from .candidates import Candidates, DenseSearch, GatheredDense, ShardedDense, allowed_rows, joined_dense, lexical_search
from .fusion import NOTHING, WEIGHT, Ranked, convex, reciprocal_rank, scaled
from .relevance import WEAK, Calibration, Surroundings, lexical_relevance, relevance
from .settings import DEPTH, PROPERTY, SearchDefaults, SearchSettings
from .weighting import FusionWeight


@dataclass(frozen=True, slots=True)
class Estimate:
    """How relevance is estimated in one view.

    Attributes:
        view: The view that is searched.
        searched: Number of passages that the filter allows.
        calibration: Fitted on the user's own questions; it replaces Sonde's estimate.
    """

    view: View
    searched: int
    calibration: Calibration | None

    @classmethod
    def over(cls, view: View, allowed: np.ndarray | None) -> "Estimate":
        """Prepare estimates in a view; `allowed` is bool [rows], the rows that may be found, or None for all."""
        searched = len(view.generation.owners) if allowed is None else int(np.count_nonzero(allowed))
        return cls(view, searched, SearchDefaults.of(view.catalog.get(PROPERTY)).calibration)

    @property
    def weak(self) -> float:
        """The relevance below which a hit is weak."""
        return self.calibration.weak if self.calibration else WEAK

    def query_words(self, query: str) -> QueryWords:
        """Return what the words of a query are worth in this collection."""
        index = self.view.generation.lexical
        return index.words(query) if index else QueryWords(0, 0.0, 0.0)

    def relevance(
        self, dense: Candidates, similarity: np.ndarray, standing: np.ndarray, words: np.ndarray | None = None
    ) -> np.ndarray | None:
        """Return float64 [n], the relevance of passages; None if nothing was found.

        Args:
            dense: The query's dense candidates, best first.
            similarity: float [n], the passages' similarities.
            standing: float [n], their fused scores, 0 to 1.
            words: float [n], the share of the query's words that each has; None if words were not searched.
        """
        if not len(dense.rows):
            return None
        if self.calibration is not None:
            return self.calibration.chances(similarity)
        scale = self._scale()
        near = self.view.generation.segments.read(dense.rows[:DEPTH])
        surroundings = Surroundings.of(dense.scores[:DEPTH], near, self.searched, scale)
        given = np.zeros(len(similarity)) if words is None else words
        standard = scale.standard(similarity.astype(np.float64))
        return relevance(surroundings, standard, standing, given, float(given.max(initial=0.0)))

    def _scale(self) -> SimilarityScale:
        """Return the levels of the collection's model; those of the default model if it is not available."""
        collection = self.view.collection
        known = known_scale(collection.spec)
        if known is not None:
            return known
        try:
            return scale_of(collection.encoder) if collection.encoder_at_hand else DEFAULT_SCALE
        except SondeError:  # `similar` works without the model, so it must not fail for the model's sake
            return DEFAULT_SCALE


def _shares(told: QueryWords, bm25: np.ndarray) -> np.ndarray:
    """Return float [n], the share of the query's words that passages with these scores have, 0 to 1."""
    return np.minimum(_multiples(told, bm25), 1.0)


def _multiples(told: QueryWords, bm25: np.ndarray) -> np.ndarray:
    """Return float [n], scores as multiples of what a passage gets that has each word once; 0 or more."""
    return np.maximum(bm25 / told.information, 0.0) if told.information > 0 else np.zeros(len(bm25))


LEXICAL_SHARE = 2
"""The lexical half returns this many times as many passages, because a longer list costs little more."""

PER_HIT = 4
"""Passages to examine for each hit, because a document may have several."""

Lexical = Future[list[Candidates]]
"""The candidates of a lexical half, for each query, that another thread finds."""


@cache
def _beside(process: int) -> ThreadPoolExecutor:
    """Return the threads of all searches: a new one starts more slowly than the lexical half runs on a busy machine."""
    return ThreadPoolExecutor(thread_name_prefix="lexical")


@dataclass(frozen=True, slots=True)
class FirstStage:
    """Dense, lexical or fused candidates from one view, grouped by document until there are enough."""

    view: View
    settings: SearchSettings
    dense: DenseSearch | ShardedDense | GatheredDense
    allowed: np.ndarray | None
    estimate: Estimate
    tuned: Mapping[str, float]

    @classmethod
    def over(
        cls, view: View, settings: SearchSettings, without: int | None = None, defaults: SearchDefaults | None = None
    ) -> "FirstStage":
        """Compile the filter and prepare to search the view; the document `without` is left out.

        `defaults` apply where the settings are None; without them, those that the collection stores.

        Raises:
            UsageError: The filter is not valid.
        """
        allowed = allowed_rows(view, settings.where)
        if without is not None:
            allowed = (view.generation.alive if allowed is None else allowed) & (view.generation.owners != without)
        own = SearchDefaults.in_force(view) if defaults is None else defaults
        tuned, settings = settings.tuned(own), settings.resolved(own)
        estimate = Estimate.over(view, allowed)
        dense = joined_dense if view.parts else DenseSearch
        return cls(view, settings, dense(view, allowed, settings.breadth), allowed, estimate, tuned)

    @contextmanager
    def begun(self, queries: Sequence[str], depth: int | None = None) -> Iterator[Lexical | None]:
        """Search by words beside the block, as hybrid searches do first; `run` takes what this yields.

        Words need no vectors, and FAISS, Tantivy and ONNX Runtime release Python's global lock.
        """
        if self.settings.mode != "hybrid":
            yield None
            return
        lexical = _beside(os.getpid()).submit(self._lexical, queries, (depth or self._first_depth) * LEXICAL_SHARE)
        try:
            yield lexical
        finally:
            lexical.cancel()
            wait([lexical])

    def run(self, queries: Sequence[str], vectors: np.ndarray, begun: Lexical | None = None) -> list[Ranked]:
        """Return the ranked documents for every query, searching deeper until there are enough.

        The depth steps do not depend on the number of hits requested, and settled documents keep their rank. The first
        pages of a search are therefore the same no matter how many pages follow.
        """
        passages, depth = self._passages, self._first_depth
        found: list[Ranked] = [NOTHING] * len(queries)
        waiting = list(range(len(queries)))
        while waiting:
            asked = [queries[place] for place in waiting]
            with nullcontext(begun) if begun else self.begun(asked, depth) as lexical:
                halves = self._halves(asked, vectors[waiting], depth, lexical)
            begun = None
            for place, dense, lexical in zip(waiting, *halves, strict=True):
                check_wanted()
                ranked = self._fuse(queries[place], vectors[place], dense, lexical).grouped(self.view.generation.owners)
                ranked = found[place].followed_by(ranked, self.view.generation.owners)
                found[place] = replace(ranked, settled=self._settled(ranked, depth))
            deeper = [place for place in waiting if found[place].candidates >= depth and depth < passages]
            waiting = [place for place in deeper if found[place].settled < self.wanted]
            for place in waiting:
                found[place] = found[place].take(np.arange(found[place].settled))
            depth = min(depth * 4, passages)
        return found

    @property
    def wanted(self) -> int:
        """How many documents are searched for, if there are as many."""
        page = self.settings.k + self.settings.offset
        return max(page, self.settings.considered) if self.settings.rerank else page

    @property
    def missing(self) -> tuple[int, ...]:
        """The shards whose embeddings were not searched, because no process answered for them."""
        return tuple(sorted(self.dense.missing)) if isinstance(self.dense, GatheredDense) else ()

    def _settled(self, ranked: Ranked, depth: int) -> int:
        """Return how many of the ranked documents are unlikely to move at a greater depth."""
        if self.settings.mode != "hybrid" or ranked.candidates < depth or depth == self._passages:
            return len(ranked.rows)
        return min(len(ranked.rows), depth // PER_HIT)

    @property
    def _passages(self) -> int:
        return max(1, len(self.view.generation.owners))

    @property
    def _first_depth(self) -> int:
        """How many passages the dense half looks for first."""
        depth = self.settings.depth or DEPTH if self.settings.mode == "hybrid" else max(PER_HIT * self.wanted, DEPTH)
        return min(depth, self._passages)

    def _halves(
        self, queries: Sequence[str], vectors: np.ndarray, depth: int, lexical: Lexical | None
    ) -> tuple[Sequence[Candidates | None], Sequence[Candidates | None]]:
        """Return the dense and the lexical candidates for every query; None for a half that the mode does not use."""
        nothing = [None] * len(queries)
        if self.settings.mode == "lexical":
            return nothing, self._lexical(queries, depth)
        return self.dense.search(vectors, depth), lexical.result() if lexical else nothing

    def _lexical(self, queries: Sequence[str], depth: int) -> list[Candidates]:
        return [lexical_search(self.view, query, depth, self.allowed) for query in queries]

    def _fuse(self, query: str, vector: np.ndarray, dense: Candidates | None, lexical: Candidates | None) -> Ranked:
        if dense is None or lexical is None:
            return self._alone(query, dense, lexical)
        rows = np.array(sorted({*dense.rows.tolist(), *lexical.rows.tolist()}), dtype=np.int64)
        similarity = self._similarity(rows, dense, vector)
        bm25 = self._bm25(query, rows, lexical)
        told = self.estimate.query_words(query)
        words = _shares(told, bm25)
        weight = self._weight(told, float(words.max(initial=0.0)))
        standing = convex(similarity, bm25, weight.dense)
        relevant = self.estimate.relevance(dense, similarity, standing, words)
        fused = standing if self.settings.fusion == "convex" else reciprocal_rank(similarity, bm25, weight.dense)
        order = np.lexsort((rows, -fused))
        candidates = max(len(dense.rows), len(lexical.rows) // LEXICAL_SHARE)
        relevant = None if relevant is None else relevant[order]
        return Ranked(
            rows[order], fused[order], similarity[order], bm25[order], candidates, relevance=relevant, weight=weight
        )

    def _weight(self, told: QueryWords, cover: float) -> FusionWeight:
        """Return the share of the dense half: the one that is set, or one chosen for the query."""
        chosen = FusionWeight.of(told.count, cover, told.rarity)
        if self.settings.weight is None and self.settings.fusion == "convex":
            return chosen
        return replace(chosen, dense=WEIGHT if self.settings.weight is None else self.settings.weight, chosen=False)

    def _alone(self, query: str, dense: Candidates | None, lexical: Candidates | None) -> Ranked:
        """Return the candidates of the only half, with their relevance."""
        if dense is not None:
            relevant = self.estimate.relevance(dense, dense.scores, scaled(dense.scores, DEPTH))
            return Ranked(dense.rows, dense.scores, dense.scores, None, len(dense.rows), relevance=relevant)
        if lexical is None:
            return NOTHING
        relevant = lexical_relevance(_multiples(self.estimate.query_words(query), lexical.scores))
        return Ranked(lexical.rows, lexical.scores, None, lexical.scores, len(lexical.rows), relevance=relevant)

    def _similarity(self, rows: np.ndarray, dense: Candidates, vector: np.ndarray) -> np.ndarray:
        """Return the similarity of ascending `rows`: from the dense search if it found them, else computed."""
        found = dict(zip(dense.rows.tolist(), dense.scores.tolist(), strict=True))
        scores = np.array([found.get(row, np.nan) for row in rows.tolist()], dtype=np.float32)
        missing = np.isnan(scores)
        scores[missing] = self.view.generation.segments.read(rows[missing]) @ vector
        return scores

    def _bm25(self, query: str, rows: np.ndarray, lexical: Candidates) -> np.ndarray:
        index = self.view.generation.lexical
        known = dict(zip(lexical.rows.tolist(), lexical.scores.tolist(), strict=True))
        scores = np.array([known.get(row, -1.0) for row in rows.tolist()], dtype=np.float32)
        missing = scores < 0
        scores[missing] = index.score_rows(query, rows[missing]) if index and missing.any() else 0.0
        return scores
