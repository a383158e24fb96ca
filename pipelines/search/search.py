"""Search a collection by meaning, by words, by both, or by example: a stored document or a pasted text."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from ...indexer.document import Document
from ...indexer.encoder import Encoder
from ...indexer.errors import SondeError, Texts, UsageError, as_text, as_texts
from ...indexer.ingest.chunker import Chunker
from ...indexer.progress import Notify, check_wanted, silent
from ...indexer.store.collection import StoredCollection
from ...indexer.store.view import View, document_vectors, normalized
from ...indexer.wording import shown_id
from .candidates import check_complete
from .filters import check_filter
from .first_stage import FirstStage
from .foreign import relevance_notes
from .hits import build_results
from .rerank.models import is_loaded, reranker_for
from .rerank.stage import SecondStage, parse_budget
from .results import Mode, Results
from .settings import SearchDefaults, SearchSettings

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
    excerpts: bool = True,
) -> Iterator[Results]:
    """Check all queries at once, then yield their results in order; they are encoded together. See `search`.

    Without `excerpts`, the whole passage is the excerpt: for measures, which need ids and scores only.

    Raises:
        UsageError: A setting or the filter is not valid, or a query is empty or not valid.
        SondeError: The collection's model, or the second stage's, is not available.
    """
    settings.check()
    asked = as_texts(queries, "query")
    for number, query in enumerate(asked, 1):
        check_query(query, f"query {number}" if len(asked) > 1 else "the query")
    check_filter(collection, settings.where)
    slices = (asked[first : first + QUERIES_AT_ONCE] for first in range(0, len(asked), QUERIES_AT_ONCE))
    return (found for some in slices for found in _search_together(collection, some, settings, notify, excerpts))


def best_documents(collection: StoredCollection, query: str, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the documents that best answer a query without reading their texts, so that a thousand cost little.

    Copies of a text count one by one, unlike the hits of `search`.

    Args:
        collection: Where to search.
        query: What to look for, in words.
        k: Number of documents, 1 or more.

    Returns:
        int64 [m] document numbers, best first, and float64 [m] relevances, 0 to 1.

    Raises:
        UsageError: The query is empty, or k is below 1.
        SondeError: The collection's model is not available, or a shard did not answer.
    """
    settings = SearchSettings(k=k, collapse=False)
    settings.check()
    check_query(as_text(query, "query"), "the query")
    with collection.view() as view:
        stage = FirstStage.over(view, settings)
        with stage.begun([query]) as words:
            vectors, _ = _encode(collection, [query], settings.mode)
            (found,) = stage.run([query], vectors, words)
        check_complete(stage.dense)
        kept = found.take(np.arange(min(k, len(found.rows))))
    relevance = np.zeros(len(kept.rows)) if kept.relevance is None else kept.relevance.astype(np.float64)
    return view.generation.owners[kept.rows], relevance


def check_query(query: str, which: str) -> None:
    """Raise UsageError if a query is empty; `which` names it."""
    if not query.strip():
        raise UsageError(f"{which} is empty: say what to look for", code="empty", field="query")


def _search_together(
    collection: StoredCollection, queries: Sequence[str], settings: SearchSettings, notify: Notify, excerpts: bool
) -> list[Results]:
    loading = collection.load(encoder=settings.mode != "lexical")
    began = time.perf_counter()
    with collection.view() as view:  # also of the model, which another process may change
        second, seconds = _timed_second_stage(view, settings, notify)
        stage = FirstStage.over(view, settings)
        with stage.begun(queries) as words:
            vectors, notes = _encode(collection, queries, settings.mode)
            if settings.mode != "lexical":
                notes = [(*known, *relevance_notes(view, query)) for known, query in zip(notes, queries, strict=True)]
            found = stage.run(queries, vectors, words)
        check_wanted()
        parts = zip(queries, vectors, found, notes, strict=True)
        built = [build_results(view, stage, *each, second=second, excerpts=excerpts) for each in parts]
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
    settings = settings.resolved(SearchDefaults.in_force(view))
    return SecondStage(view, reranker, settings.reranked, seconds, weight=settings.rerank_weight)


def _encode(
    collection: StoredCollection, queries: Sequence[str], mode: Mode
) -> tuple[np.ndarray, list[tuple[str, ...]]]:
    """Return float32 [m, d] query vectors, and the notes on the encoding of each query.

    A search by words needs no bi-encoder: vectors of length 0.
    """
    if mode == "lexical":
        return np.empty((len(queries), 0), dtype=np.float32), [()] * len(queries)
    encoder = collection.encoder
    tokens = encoder.tokenize(queries, query=True)
    notes: list[tuple[str, ...]] = [
        (f"the query has {t.total:,} tokens; the model reads the first {len(t.ids):,}",) if t.total > len(t.ids) else ()
        for t in tokens
    ]
    return encoder.encode(tokens), notes


def similar(collection: StoredCollection, key: str | int, settings: SearchSettings = SearchSettings()) -> Results:
    """Return the documents most similar to a stored one, which is left out.

    For a document of several passages, the normalised mean of their embeddings is compared.

    Raises:
        SondeError: No document has this id.
        UsageError: A setting or the filter is not valid.
    """
    began, key = time.perf_counter(), as_text(key, "id")
    dense = _checked(collection, settings)
    loading = collection.load(encoder=False)
    with collection.view() as view:
        doc = view.document_number(key)
        if doc is None:
            said = f"there is no document with the id {shown_id(key)} in {collection.named}"
            raise SondeError(said, code="not-found", field="id", value=str(key))
        [vector] = document_vectors(view, [doc])
        return _closest(view, key, vector, dense, (began, loading), without=doc)


def like(collection: StoredCollection, text: str, settings: SearchSettings = SearchSettings()) -> Results:
    """Return the documents most similar to a text, which is treated as a document, not as a query.

    Raises:
        UsageError: The text is empty, or a setting or the filter is not valid.
        SondeError: The collection's model is not available.
    """
    began, text = time.perf_counter(), as_text(text, "text")
    if not text.strip():
        raise UsageError("the example text is empty")
    dense = _checked(collection, settings)
    loading = collection.load()
    encoder = collection.encoder
    vector = _embedded(encoder, text)
    with collection.view() as view:
        if collection.encoder is not encoder:  # the model was changed since the text was embedded
            vector = _embedded(collection.encoder, text)
        return _closest(view, text, vector, dense, (began, loading))


def _embedded(encoder: Encoder, text: str) -> np.ndarray:
    """Return float32 [d]: a text's embedding as a document."""
    [passages] = Chunker(encoder).split([Document(text)])
    mean = encoder.encode([passage.tokens for passage in passages]).mean(axis=0, keepdims=True)
    [vector] = normalized(mean) if encoder.spec.normalize else mean
    return vector


def _checked(collection: StoredCollection, settings: SearchSettings) -> SearchSettings:
    """Return the settings of a search by embeddings only, checked before anything is loaded."""
    if settings.rerank:
        raise UsageError("rerank is for searches: documents that are like another one are compared by their vectors")
    settings.check()
    check_filter(collection, settings.where)
    return replace(settings, mode="dense", explain=False)


def _closest(
    view: View,
    query: str,
    vector: np.ndarray,
    dense: SearchSettings,
    times: tuple[float, float],
    without: int | None = None,
) -> Results:
    stage = FirstStage.over(view, dense, without)
    [ranked] = stage.run([query], vector[None])
    notes = relevance_notes(view, query if without is None else None)
    results = build_results(view, stage, query, vector, ranked, notes, asked=False)
    began, loading = times
    return replace(results, seconds=time.perf_counter() - began - loading, loading_seconds=loading)
