"""Why a hit matched: the query's words in it, and the sentences that are closest in meaning."""

from collections.abc import Sequence

import numpy as np

from ...indexer.errors import SondeError
from ...indexer.ingest.chunker import passage_text
from ...indexer.lexical.analysis import stop_words
from ...indexer.progress import check_wanted
from ...indexer.store.documents import languages_by_id
from ...indexer.store.view import View
from ...indexer.wording import shown_id
from .excerpts import sentence_bounds
from .rerank.stage import Reranker
from .results import Hit, Match, Sentence, Why

SENTENCES = 3


def explain(
    view: View, hits: Sequence[Hit], query: str, vector: np.ndarray, reranker: Reranker | None = None
) -> list[Why]:
    """Return, for each hit, the terms of `query` that it contains and the best sentences of its passage.

    Args:
        view: The view that the hits come from.
        hits: Hits of that view; the sentences of all of them are embedded together.
        query: The query's text.
        vector: float32 [d], the encoded query; empty for a lexical search, which returns no best sentences.
        reranker: The second stage, which may know which words match each other.
    """
    own = languages_by_id(view.catalog, [hit.id for hit in hits])
    usual = view.catalog.get("language")
    languages = [own[hit.id] or usual for hit in hits]
    sentences = _sentences(view, hits, vector, languages) if len(vector) else [()] * len(hits)
    return [
        _why(view, hit, query, language, best, reranker)
        for hit, language, best in zip(hits, languages, sentences, strict=True)
    ]


def _why(
    view: View, hit: Hit, query: str, language: str | None, best: tuple[Sentence, ...], reranker: Reranker | None
) -> Why:
    check_wanted()
    lexical = view.generation.lexical
    spans = lexical.matches(query, hit.passage.text, language) if lexical else []
    in_title = lexical.matches(query, hit.title, language) if lexical else []
    terms = tuple((hit.passage.start + start, hit.passage.start + end) for start, end in spans)
    matches: tuple[Match, ...] = ()
    if reranker and hit.scores.rerank is not None:
        idle = stop_words(query, [*(lexical.languages if lexical else ()), *([language] if language else ())])
        matches = tuple(match for match in _matches(hit, query, reranker) if not idle(match.query))
    return Why(terms, tuple((start, end) for start, end in in_title), best, matches)


def best_passage(view: View, key: str, query: str) -> str:
    """Return the document's title followed by its passage that is most similar to a query.

    Raises:
        SondeError: No document has this id, or the model is not available.
    """
    doc = view.document_number(key)
    if doc is None:
        raise SondeError(f"there is no document with the id {shown_id(key)} in {view.collection.named}")
    rows, document = view.rows_of(doc), view.documents([doc])[doc]
    if not rows:
        return passage_text(document.title, document.text)
    [vector] = view.collection.encoder.encode_texts([query], query=True)
    best = rows[int(np.argmax(view.generation.segments.read(np.array(rows)) @ vector))]
    place = view.passages([best])[best]
    return passage_text(document.title, document.text[place.start : place.end])


def _matches(hit: Hit, query: str, reranker: Reranker) -> tuple[Match, ...]:
    text = passage_text(hit.title, hit.passage.text)
    # The text that was read is the title followed by the passage.
    before = len(text) - len(hit.passage.text) if hit.passage.text.strip() else len(text)
    found = []
    for match in reranker.matches(query, text):
        title = match.start < before
        shift = 0 if title else hit.passage.start - before
        found.append(Match(match.query, match.word, match.start + shift, match.end + shift, title, match.similarity))
    return tuple(found)


def _sentences(
    view: View, hits: Sequence[Hit], vector: np.ndarray, languages: Sequence[str | None]
) -> list[tuple[Sentence, ...]]:
    """Return the best sentences of each hit's passage; the sentences of all hits are encoded in one call."""
    bounds = [sentence_bounds(hit.passage.text, language) for hit, language in zip(hits, languages, strict=True)]
    texts = [[hit.passage.text[start:end].strip() for start, end in one] for hit, one in zip(hits, bounds, strict=True)]
    flat = [text for one in texts for text in one]
    if not flat:
        return [()] * len(hits)
    similarities = view.collection.encoder.encode_texts(flat) @ vector
    ends = np.cumsum([len(one) for one in texts])[:-1]
    return [
        _best(hit.passage.start, one, spans, scores)
        for hit, one, spans, scores in zip(hits, texts, bounds, np.split(similarities, ends), strict=True)
    ]


def _best(
    offset: int, texts: list[str], bounds: list[tuple[int, int]], similarities: np.ndarray
) -> tuple[Sentence, ...]:
    best = np.argsort(-similarities, kind="stable")[:SENTENCES]
    return tuple(Sentence(offset + bounds[i][0], offset + bounds[i][1], texts[i], float(similarities[i])) for i in best)
