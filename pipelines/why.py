"""Why a hit matched: the query's words in it, and the sentences that are closest in meaning."""

import numpy as np
from sentencex import get_sentence_boundaries  # pyright: ignore[reportAttributeAccessIssue]  (written in Rust)

from ..indexer.chunker import passage_text
from ..indexer.errors import SondeError
from ..indexer.view import View
from .rerank.reranker import Reranker
from .results import Hit, Match, Sentence, Why

SENTENCES = 3


def explain(view: View, hit: Hit, query: str, vector: np.ndarray, reranker: Reranker | None = None) -> Why:
    """Return the terms of `query` that the hit holds, and the best sentences of its passage.

    Args:
        view: The view that the hit comes from.
        hit: A hit of that view.
        query: The query's text.
        vector: float32 [d], the encoded query; empty for a lexical search, which then has no best sentences.
        reranker: The second stage, which may know which words matched which.
    """
    lexical = view.generation.lexical
    sql = "SELECT language FROM documents WHERE key = ?"
    [own] = view.catalog.connection.execute(sql, (hit.id,)).fetchone()
    language = own or view.catalog.get("language")
    spans = lexical.matches(query, hit.passage.text, language) if lexical else []
    in_title = lexical.matches(query, hit.title, language) if lexical else []
    terms = tuple((hit.passage.start + start, hit.passage.start + end) for start, end in spans)
    sentences = _sentences(view, hit, vector, language or "en") if len(vector) else ()
    matches = _matches(hit, query, reranker) if reranker and hit.scores.rerank is not None else ()
    return Why(terms, tuple((start, end) for start, end in in_title), sentences, matches)


def best_passage(view: View, key: str, query: str) -> str:
    """Return the passage of a document that is most similar to a query, with the document's title before it.

    Raises:
        SondeError: There is no document with this id, or the model cannot be had.
    """
    doc = view.document_number(key)
    if doc is None:
        raise SondeError(f"there is no document with the id {key!r} in {view.collection.path}")
    rows, document = view.rows_of(doc), view.documents([doc])[doc]
    if not rows:
        return passage_text(document.title, document.text)
    [vector] = view.collection.encoder.encode_texts([query], query=True)
    best = rows[int(np.argmax(view.generation.segments.read(np.array(rows)) @ vector))]
    place = view.passages([best])[best]
    return passage_text(document.title, document.text[place.start : place.end])


def _matches(hit: Hit, query: str, reranker: Reranker) -> tuple[Match, ...]:
    text = passage_text(hit.title, hit.passage.text)
    # The passage stands at the end of what was read; what is before it is the title.
    before = len(text) - len(hit.passage.text) if hit.passage.text.strip() else len(text)
    found = []
    for match in reranker.matches(query, text):
        title = match.start < before
        shift = 0 if title else hit.passage.start - before
        found.append(Match(match.query, match.word, match.start + shift, match.end + shift, title, match.similarity))
    return tuple(found)


def _sentences(view: View, hit: Hit, vector: np.ndarray, language: str) -> tuple[Sentence, ...]:
    bounds = [
        (found["start_index"], found["end_index"])
        for found in get_sentence_boundaries(language, hit.passage.text)
        if found["text"].strip()
    ]
    if not bounds:
        return ()
    texts = [hit.passage.text[start:end].strip() for start, end in bounds]
    similarities = view.collection.encoder.encode_texts(texts) @ vector
    best = np.argsort(-similarities, kind="stable")[:SENTENCES]
    offset = hit.passage.start
    return tuple(Sentence(offset + bounds[i][0], offset + bounds[i][1], texts[i], float(similarities[i])) for i in best)
