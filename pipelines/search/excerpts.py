"""What to show of a hit: the part of its passage with most of the query's words, and why it matched."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from sentencex import get_sentence_boundaries  # pyright: ignore[reportAttributeAccessIssue]  (written in Rust)

from ...indexer.document import PAGE_BREAK
from ...indexer.errors import SondeError
from ...indexer.ingest.chunker import passage_text
from ...indexer.languages import normalise
from ...indexer.lexical import LexicalIndex
from ...indexer.lexical.analysis import UNKNOWN, analyzer, stop_words
from ...indexer.progress import check_wanted
from ...indexer.store.documents import languages_by_id
from ...indexer.store.view import View
from ...indexer.wording import shown_id
from .rerank.stage import Reranker
from .results import Hit, Match, Passage, Sentence, Why

LENGTH = 300
"""Maximum number of characters of an excerpt."""
LEAD = 40
"""Characters shown before the first match of a sentence that is longer than an excerpt."""
WORDS = 2.0
"""Weight of the share of the query's words against the cosine of a sentence, if that is known."""
ALL_WORDS = 0.999
"""Share of the query's words above which a passage has all of them: the shares are sums of floats."""

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Excerpts:
    """Chooses the excerpts of one query's hits.

    Attributes:
        query: The query's text.
        lexical: The index that knows how rare words are; None if it is missing.
        rarity: The query's content terms with their inverse document frequencies.
        usual: The language of passages that have none of their own.
    """

    query: str
    lexical: LexicalIndex | None
    rarity: Mapping[str, float]
    usual: str | None

    @classmethod
    def over(cls, view: View, query: str) -> "Excerpts":
        """Prepare to choose excerpts in a view."""
        lexical = view.generation.lexical
        return cls(query, lexical, lexical.rarity(query) if lexical else {}, view.catalog.get("language"))

    def choose(self, passage: Passage, language: str | None, closest: Sequence[Sentence] = ()) -> Passage:
        """Return the sentences to show, with their offsets in the document's text.

        The excerpt is built around the sentence with most of the query's words, weighted by their rarity. Then it takes
        in the sentences that follow, and those before it, as long as they fit. It is the beginning of the passage if
        no word matches.

        Args:
            passage: The hit's best passage.
            language: The document's own language, if it has one.
            closest: Sentences of the passage with their cosines, which count too.
        """
        if len(passage.text) <= LENGTH:
            return passage
        language = language or self.usual
        bounds = _sentence_bounds(passage.text, language)
        scores = self._shares(passage.text, bounds, language)
        known = {sentence.start - passage.start: sentence.similarity for sentence in closest}
        least = min(known.values(), default=0.0)
        scores = [WORDS * share + known.get(start, least) for share, (start, _) in zip(scores, bounds, strict=True)]
        place = max(range(len(bounds)), key=lambda place: (scores[place], -place), default=0)
        start, end = self._around(passage.text, bounds, place, language)
        end = start + len(passage.text[start:end].rstrip())
        return Passage(passage.start + start, passage.start + end, passage.text[start:end])

    def page(self, text: str, excerpt: Passage, language: str | None) -> int | None:
        """Return the page, from 1, on which most of the query's words in an excerpt stand; of several, the longest.

        Args:
            text: The text of the whole document. Without page breaks, it has no pages.
            excerpt: The excerpt.
            language: The document's own language, if it has one.
        """
        if PAGE_BREAK not in text:
            return None
        ends = [place for place, sign in enumerate(excerpt.text) if sign == PAGE_BREAK] + [len(excerpt.text)]
        bounds = list(zip([0, *ends], ends, strict=False))
        shares = self._shares(excerpt.text, bounds, language or self.usual)
        best = max(range(len(bounds)), key=lambda place: (shares[place], bounds[place][1] - bounds[place][0]))
        return 1 + text.count(PAGE_BREAK, 0, excerpt.start) + best

    def has_all_words(self, passage: Passage, language: str | None) -> bool:
        """Return whether a passage has every content word of the query that any passage has.

        Args:
            passage: The hit's best passage.
            language: The document's own language, if it has one.
        """
        whole = [(0, len(passage.text))]
        return bool(self.rarity) and self._shares(passage.text, whole, language or self.usual)[0] > ALL_WORDS

    def _shares(self, text: str, bounds: Sequence[Span], language: str | None) -> list[float]:
        """Return for each sentence the share of the query's words that it has, 0 to 1."""
        total = sum(self.rarity.values())
        if not total:
            return [0.0] * len(bounds)
        terms = analyzer(normalise(language) or UNKNOWN).terms
        found = (self.rarity.keys() & set(terms(text[start:end])) for start, end in bounds)
        return [sum(self.rarity[term] for term in some) / total for some in found]

    def _around(self, text: str, bounds: Sequence[Span], place: int, language: str | None) -> Span:
        if not bounds:
            return _between_words(text, 0, LENGTH)
        first = last = place
        start, end = bounds[place]
        if end - start > LENGTH:
            return self._within(text, start, end, language)
        while last + 1 < len(bounds) and bounds[last + 1][1] - start <= LENGTH:
            last += 1
        while first and bounds[last][1] - bounds[first - 1][0] <= LENGTH:
            first -= 1
        return bounds[first][0], bounds[last][1]

    def _within(self, text: str, start: int, end: int, language: str | None) -> Span:
        """Return the part of a long sentence that has most matches, the earlier one if several have as many."""
        matches = self.lexical.matches(self.query, text[start:end], language) if self.lexical else []
        starts = [max(0, begin - LEAD) for begin, _ in matches] or [0]
        best = max(starts, key=lambda begin: sum(begin <= a and b <= begin + LENGTH for a, b in matches))
        best = min(best, end - start - LENGTH)
        return _between_words(text, start + best, start + best + LENGTH)


def _sentence_bounds(text: str, language: str | None) -> list[Span]:
    """Return the start and end of each sentence of a text, without empty ones."""
    found = get_sentence_boundaries(language or "en", text)
    return [(one["start_index"], one["end_index"]) for one in found if one["text"].strip()]


def _between_words(text: str, start: int, end: int) -> Span:
    """Return a range moved inwards to spaces, if there are any near its ends."""
    if start > 0 and not text[start - 1].isspace():
        start = text.find(" ", start, start + LEAD) + 1 or start
    if end < len(text) and not text[end].isspace():
        end = max(text.rfind(" ", end - LEAD, end), 0) or end
    return start, min(end, len(text))


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
    bounds = [_sentence_bounds(hit.passage.text, language) for hit, language in zip(hits, languages, strict=True)]
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
