"""Search a collection by meaning, by words, or by both."""

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np

from ...indexer.encoder import Encoder
from ...indexer.errors import Texts, UsageError, as_text, as_texts
from ...indexer.lexical import QueryWords
from ...indexer.progress import Notify, silent
from ...indexer.store.catalog import storable
from ...indexer.store.collection import StoredCollection
from ...indexer.store.view import View
from ...indexer.wording import counted
from .candidates import Candidates, DenseSearch, allowed_rows, lexical_search
from .estimate import Estimate, shares
from .filters import check_filter
from .fusion import NOTHING, WEIGHT, Ranked, convex, reciprocal_rank
from .relevance import lexical_relevance
from .rerank.models import is_loaded, reranker_for
from .rerank.stage import DEPTH as RERANK_DEPTH
from .rerank.stage import SecondStage, parse_budget
from .results import NOTHING_ANSWERS, Hit, Mode, Passage, Results
from .settings import DEPTH, SearchSettings
from .weighting import FusionWeight
from .why import explain

LEXICAL_SHARE = 2
"""The lexical half returns this many times as many passages, because a longer list costs little more."""

PER_HIT = 4
"""Passages to examine for each hit, because a document may have several."""

QUERIES_AT_ONCE = 256


def search(
    collection: StoredCollection, query: str, settings: SearchSettings = SearchSettings(), notify: Notify = silent
) -> Results:
    """Return the documents that best answer the query; a document is ranked by its best passage.

    Args:
        collection: Where to search.
        query: What to look for, in words.
        settings: How to search.
        notify: Receives messages that the user should read at once, such as the download of a reranker.

    Raises:
        UsageError: A setting or the filter is not valid, or the query is empty or not valid.
        SondeError: The collection's model, or the second stage's, is not available.
    """
    return next(search_many(collection, [as_text(query, "query")], settings, notify))


def search_many(
    collection: StoredCollection,
    queries: Texts,
    settings: SearchSettings = SearchSettings(),
    notify: Notify = silent,
) -> Iterator[Results]:
    """Check all queries at once, then yield their results in order; they are encoded together. See `search`.

    Raises:
        UsageError: A setting or the filter is not valid, or a query is empty or not valid.
        SondeError: The collection's model, or the second stage's, is not available.
    """
    settings.check()
    asked = as_texts(queries, "query")
    for number, query in enumerate(asked, 1):
        which = f"query {number}" if len(asked) > 1 else "the query"
        if not query.strip():
            raise UsageError(f"{which} is empty: say what to look for", code="empty", field="query")
        if not storable(query):
            raise UsageError(f"{which} is not valid Unicode: write it in UTF-8", code="not-unicode", field="query")
    check_filter(collection, settings.where)
    slices = (asked[first : first + QUERIES_AT_ONCE] for first in range(0, len(asked), QUERIES_AT_ONCE))
    return (found for some in slices for found in _search_together(collection, some, settings, notify))


def _search_together(
    collection: StoredCollection, queries: Sequence[str], settings: SearchSettings, notify: Notify
) -> list[Results]:
    loading = collection.load(encoder=settings.mode != "lexical")
    began = time.perf_counter()
    encoder, vectors, notes = _encode(collection, queries, settings.mode)
    with collection.view() as view:
        if encoder is not None and collection.encoder is not encoder:  # the model was changed since the line above
            _, vectors, notes = _encode(collection, queries, settings.mode)
        second, seconds = _timed_second_stage(view, settings, notify)
        stage = FirstStage.over(view, settings)
        found = stage.run(queries, vectors)
        parts = zip(queries, vectors, found, notes, strict=True)
        built = [build_results(view, stage, *each, second=second) for each in parts]
    spent = time.perf_counter() - began - seconds
    shares = {"seconds": spent / len(queries), "loading_seconds": (loading + seconds) / len(queries)}
    return [replace(results, **shares) for results in built]


def _timed_second_stage(view: View, settings: SearchSettings, notify: Notify) -> tuple[SecondStage | None, float]:
    """Return the requested second stage, if any, and the seconds that its model took to load."""
    if not settings.rerank:
        return None, 0.0
    known, began = is_loaded(view, settings.rerank_model), time.perf_counter()
    second = second_stage(view, settings, notify)
    return second, 0.0 if known else time.perf_counter() - began


def second_stage(view: View, settings: SearchSettings, notify: Notify = silent) -> SecondStage:
    """Return the second stage that the settings request, with its model loaded.

    Raises:
        UsageError: The model does not exist.
        SondeError: The model is not available, or cannot score pairs.
    """
    reranker = reranker_for(view, settings.rerank_model, view.collection.device, notify)
    seconds = parse_budget(settings.rerank_budget) if settings.rerank_budget else None
    settings = settings.resolved(view)
    return SecondStage(view, reranker, settings.rerank_depth or RERANK_DEPTH, seconds, weight=settings.rerank_weight)


def _encode(
    collection: StoredCollection, queries: Sequence[str], mode: Mode
) -> tuple[Encoder | None, np.ndarray, list[tuple[str, ...]]]:
    """Return the bi-encoder, float32 [m, d] query vectors, and the notes on the encoding of each query.

    A search by words needs no bi-encoder: None, and vectors of length 0.
    """
    if mode == "lexical":
        return None, np.empty((len(queries), 0), dtype=np.float32), [()] * len(queries)
    encoder = collection.encoder
    tokens = encoder.tokenize(queries, query=True)
    notes: list[tuple[str, ...]] = [
        (f"the query has {t.total:,} tokens; the model reads the first {len(t.ids):,}",) if t.total > len(t.ids) else ()
        for t in tokens
    ]
    return encoder, encoder.encode(tokens), notes


@dataclass(frozen=True, slots=True)
class FirstStage:
    """Dense, lexical or fused candidates from one view, grouped by document until there are enough."""

    view: View
    settings: SearchSettings
    dense: DenseSearch
    allowed: np.ndarray | None
    estimate: Estimate

    @classmethod
    def over(cls, view: View, settings: SearchSettings, without: int | None = None) -> "FirstStage":
        """Compile the filter and prepare to search the view; the document `without` is left out.

        Raises:
            UsageError: The filter is not valid.
        """
        allowed = allowed_rows(view, settings.where)
        if without is not None:
            allowed = (view.generation.alive if allowed is None else allowed) & (view.generation.owners != without)
        settings = settings.resolved(view)
        estimate = Estimate.over(view, allowed)
        return cls(view, settings, DenseSearch(view, allowed, settings.breadth), allowed, estimate)

    def run(self, queries: Sequence[str], vectors: np.ndarray) -> list[Ranked]:
        """Return the ranked documents for every query, searching deeper until there are enough.

        The depth steps do not depend on the number of hits requested, and settled documents keep their rank. The first
        pages of a search are therefore the same no matter how many pages follow.
        """
        passages = max(1, len(self.view.generation.owners))
        depth = self.settings.depth or DEPTH if self.settings.mode == "hybrid" else max(PER_HIT * self._wanted, DEPTH)
        depth = min(depth, passages)
        found: list[Ranked] = [NOTHING] * len(queries)
        waiting = list(range(len(queries)))
        while waiting:
            halves = self._halves([queries[place] for place in waiting], vectors[waiting], depth)
            for place, dense, lexical in zip(waiting, *halves, strict=True):
                ranked = self._fuse(queries[place], vectors[place], dense, lexical).grouped(self.view.generation.owners)
                found[place] = found[place].followed_by(ranked, self.view.generation.owners)
            waiting = [place for place in waiting if found[place].candidates >= depth and depth < passages]
            waiting = [place for place in waiting if self._settled(found[place], depth) < self._wanted]
            for place in waiting:
                found[place] = found[place].take(np.arange(self._settled(found[place], depth)))
            depth = min(depth * 4, passages)
        return found

    @property
    def _wanted(self) -> int:
        page = self.settings.k + self.settings.offset
        return max(page, self.settings.rerank_depth or RERANK_DEPTH) if self.settings.rerank else page

    def _settled(self, ranked: Ranked, depth: int) -> int:
        """Return how many of the ranked documents are unlikely to move at a greater depth."""
        return min(len(ranked.rows), depth // PER_HIT) if self.settings.mode == "hybrid" else len(ranked.rows)

    def _halves(
        self, queries: Sequence[str], vectors: np.ndarray, depth: int
    ) -> tuple[Sequence[Candidates | None], Sequence[Candidates | None]]:
        """Return the dense and the lexical candidates for every query; None for a half that the mode does not use.

        Hybrid searches both in parallel, because FAISS and Tantivy release Python's global lock.
        """
        nothing = [None] * len(queries)
        if self.settings.mode == "dense":
            return self.dense.search(vectors, depth), nothing
        if self.settings.mode == "lexical":
            return nothing, self._lexical(queries, depth)
        with ThreadPoolExecutor(1) as beside:
            lexical = beside.submit(self._lexical, queries, depth * LEXICAL_SHARE)
            return self.dense.search(vectors, depth), lexical.result()

    def _lexical(self, queries: Sequence[str], depth: int) -> list[Candidates]:
        return [lexical_search(self.view, query, depth, self.allowed) for query in queries]

    def _fuse(self, query: str, vector: np.ndarray, dense: Candidates | None, lexical: Candidates | None) -> Ranked:
        if dense is None or lexical is None:
            return self._alone(query, dense, lexical)
        rows = np.union1d(dense.rows, lexical.rows)
        similarity = self._similarity(rows, dense, vector)
        bm25 = self._bm25(query, rows, lexical)
        told = self.estimate.query_words(query)
        words = shares(told, bm25)
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
            relevant = self.estimate.relevance(
                dense, dense.scores, convex(dense.scores, np.zeros(len(dense.rows)), 1.0)
            )
            return Ranked(dense.rows, dense.scores, dense.scores, None, len(dense.rows), relevance=relevant)
        if lexical is None:
            return NOTHING
        relevant = lexical_relevance(shares(self.estimate.query_words(query), lexical.scores))
        return Ranked(lexical.rows, lexical.scores, None, lexical.scores, len(lexical.rows), relevance=relevant)

    def _similarity(self, rows: np.ndarray, dense: Candidates, vector: np.ndarray) -> np.ndarray:
        """Return the similarity of ascending `rows`: from the dense search if it found them, else computed."""
        scores, known = np.empty(len(rows), np.float32), np.isin(rows, dense.rows)
        scores[known] = dense.scores[np.argsort(dense.rows)]
        scores[~known] = self.view.generation.segments.read(rows[~known]) @ vector
        return scores

    def _bm25(self, query: str, rows: np.ndarray, lexical: Candidates) -> np.ndarray:
        index = self.view.generation.lexical
        known = dict(zip(lexical.rows.tolist(), lexical.scores.tolist(), strict=True))
        scores = np.array([known.get(row, -1.0) for row in rows.tolist()], dtype=np.float32)
        missing = scores < 0
        scores[missing] = index.score_rows(query, rows[missing]) if index and missing.any() else 0.0
        return scores


def build_results(
    view: View,
    stage: FirstStage,
    query: str,
    vector: np.ndarray,
    ranked: Ranked,
    notes: tuple[str, ...],
    second: SecondStage | None = None,
    asked: bool = True,
) -> Results:
    """Return one page of ranked documents as hits, with notes for the user; `asked` is whether answers are wanted."""
    settings = stage.settings
    kept, reranking = (
        second.run(query, ranked, settings.threshold) if second else (ranked.above(settings.threshold), None)
    )
    page = kept.take(np.arange(len(kept.rows))[settings.offset : settings.offset + settings.k])
    hits = [replace(hit, reranker=reranking) for hit in _hits(view, page, settings.offset, stage.estimate.weak)]
    if settings.explain:
        reranker = second.reranker if second else None
        reasons = explain(view, hits, query, vector, reranker)
        hits = [replace(hit, why=why) for hit, why in zip(hits, reasons, strict=True)]
    strategy = "lexical index" if settings.mode == "lexical" else stage.dense.strategy(settings.k + settings.offset)
    notes = (_nothing(kept, stage.estimate.weak) if asked else ()) + notes + _notes(view, settings, ranked, kept)
    if reranking and reranking.depth < reranking.wanted:
        notes += (
            f"{settings.rerank_budget} sufficed to rerank {reranking.depth} of {reranking.wanted} documents; "
            "the others follow in the first stage's order",
        )
    return Results(query, settings.mode, tuple(hits), strategy, notes, 0.0, reranking, fusion=ranked.weight)


def _hits(view: View, page: Ranked, offset: int, weak: float) -> list[Hit]:
    passages = view.passages(page.rows.tolist())
    documents = view.documents([passage.doc for passage in passages.values()])
    hits = []
    for place, row in enumerate(page.rows.tolist()):
        passage = passages[row]
        document = documents[passage.doc]
        best = Passage(passage.start, passage.end, document.text[passage.start : passage.end])
        score, scores = float(page.scores[place]), page.scores_at(place)
        rank, relevant = offset + place + 1, 0.0 if page.relevance is None else round(float(page.relevance[place]), 6)
        hit = Hit(rank, document.id, score, document.title, document.text, document.metadata, scores, best)
        hits.append(replace(hit, relevance=relevant, weak=relevant < weak))
    return hits


def _nothing(kept: Ranked, weak: float) -> tuple[str, ...]:
    """Return the note that comes before all others if every hit is weak."""
    if kept.relevance is None or not len(kept.rows) or (best := float(kept.relevance.max())) >= weak:
        return ()
    return (f"{NOTHING_ANSWERS}: the highest relevance is {best:.2f}, and hits below {weak:.2f} are weak",)


def _notes(view: View, settings: SearchSettings, ranked: Ranked, kept: Ranked) -> tuple[str, ...]:
    notes = []
    if settings.mode == "hybrid" and view.generation.lexical is None:
        notes.append("the lexical index is missing, so the order is by meaning alone: `sonde repair` rebuilds it")
    if settings.mode == "lexical" and view.generation.lexical is None:
        return ("the lexical index is missing: `sonde repair` rebuilds it",)
    if not len(ranked.rows) and settings.where:
        notes.append(
            "no document passes the filter"
            if settings.mode != "lexical"
            else "no document that passes the filter has these words"
        )
    elif not len(ranked.rows) and settings.mode == "lexical":
        notes.append("no document has any of these words")
    elif len(ranked.rows) and not len(kept.rows):
        similarity = ranked.dense if ranked.dense is not None else ranked.lexical
        best = float(similarity.max()) if similarity is not None else 0.0
        notes.append(f"nothing similar enough: the best score, {best:.3f}, is below the threshold {settings.threshold}")
    elif settings.offset >= len(kept.rows) > 0:
        notes.append(f"only {counted(len(kept.rows), 'hit')}")
    return tuple(notes)
