"""The excerpt of a hit: the part of its passage that has most of the query's words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sentencex import get_sentence_boundaries  # pyright: ignore[reportAttributeAccessIssue]  (written in Rust)

from ...indexer.languages import normalise
from ...indexer.lexical import LexicalIndex
from ...indexer.lexical.analysis import UNKNOWN, analyzer
from ...indexer.store.view import View
from .results import Passage, Sentence

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
        bounds = sentence_bounds(passage.text, language)
        scores = self._shares(passage.text, bounds, language)
        known = {sentence.start - passage.start: sentence.similarity for sentence in closest}
        least = min(known.values(), default=0.0)
        scores = [WORDS * share + known.get(start, least) for share, (start, _) in zip(scores, bounds, strict=True)]
        place = max(range(len(bounds)), key=lambda place: (scores[place], -place), default=0)
        start, end = self._around(passage.text, bounds, place, language)
        end = start + len(passage.text[start:end].rstrip())
        return Passage(passage.start + start, passage.start + end, passage.text[start:end])

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


def sentence_bounds(text: str, language: str | None) -> list[Span]:
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
