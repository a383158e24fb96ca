"""BM25 search over the passages of a collection."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tantivy import DocAddress, Index, Occur, Query, Schema, SchemaBuilder, Searcher

from ..errors import SondeError
from ..languages import normalise
from .analysis import UNKNOWN, analyzer, query_counts, query_weights, stop_words, telling_terms, word_spans
from .writer import (
    LexicalState,
    LexicalWriter,
    check_files,
    confirm,
    damaged_index,
    read_state,
    refuse_damaged,
    refuse_other_files,
    tantivy_errors,
)

UNION_ROWS = 1_000
"""Up to this many rows, a union of single terms is faster than Tantivy's term set."""


def any_term(schema: Schema, weights: Mapping[str, float]) -> Query:
    """Match passages with any of the terms, scored by BM25 times the term's weight."""
    return Query.boolean_query([(Occur.Should, _term(schema, term, weight)) for term, weight in weights.items()])


def within(schema: Schema, query: Query, rows: Sequence[int]) -> Query:
    """Match what the query matches among these rows, with the query's own scores."""
    if len(rows) > UNION_ROWS:
        chosen = Query.term_set_query(schema, "row", rows)
    else:
        chosen = Query.boolean_query([(Occur.Should, Query.term_query(schema, "row", row)) for row in rows])
    return Query.boolean_query([(Occur.Must, Query.const_score_query(chosen, 0.0)), (Occur.Must, query)])


def _term(schema: Schema, term: str, weight: float) -> Query:
    # A boost disables the block-max shortcut, so a query of content words without repeats gets no boost.
    query = Query.term_query(schema, "text", term, index_option="freq")
    return query if weight == 1 else Query.boost_query(query, weight)


# Hits fetched beyond k, so that ties at the end are usually all in hand.
MARGIN = 16


@dataclass(frozen=True, slots=True)
class QueryWords:
    """What the words of a query are worth in one index.

    Attributes:
        count: Number of distinct terms that are not function words; of all terms if there are no others.
        information: Sum of all terms' weights times their rarity (inverse document frequency), 0 or more. A passage of
            average length that has each term once gets this score. A term that no passage has counts most.
        rarity: Mean rarity of the counted terms, 0 to 1: 1 if each is in one passage at most.
    """

    count: int
    information: float
    rarity: float


class LexicalIndex:
    """A Tantivy index of passages by row number.

    All languages share one field and hence one set of BM25 statistics (k1 1.2, b 0.75); each passage is analysed in
    its own language, and a query in every language that the index holds. A reader keeps the commit that it opened
    until `refresh`. Scores are unbounded and positive, higher is better.
    """

    def __init__(self, index: Index, folder: Path) -> None:
        self._index = index
        self.folder = folder
        with tantivy_errors(folder):
            index.config_reader("manual")
        self.refresh()

    @classmethod
    def create(cls, folder: Path) -> "LexicalIndex":
        """Make an empty index in a new or empty folder.

        Raises:
            SondeError: The folder holds something, or cannot be written.
        """
        if folder.is_dir() and any(folder.iterdir()):
            raise SondeError(f"{folder} is not empty: a lexical index is made in a new folder")
        with tantivy_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            index = Index(_schema(), str(folder), reuse=False)
            confirm(folder, LexicalState())
        return cls(index, folder)

    @classmethod
    def open(cls, folder: Path) -> "LexicalIndex":
        """Open an index as its last commit left it.

        Raises:
            SondeError: There is none, or it is damaged, or of another version of Sonde.
        """
        if not (folder / "meta.json").is_file():
            raise damaged_index(folder, "there is no index")
        read_state(folder)
        refuse_other_files(folder)
        refuse_damaged(folder)
        with tantivy_errors(folder):
            return cls(Index.open(str(folder)), folder)

    def refresh(self) -> None:
        """See the newest commit."""
        with tantivy_errors(self.folder):
            self._index.reload()
            self._searcher: Searcher = self._index.searcher()
            passages = self._searcher.terms_with_prefix("language", "")
        # The commonest first.
        self.languages = tuple(code for code, _ in sorted(passages, key=lambda found: (-found[1], found[0])))
        self.state = read_state(self.folder)

    @property
    def rows(self) -> int:
        """How many passages the index holds."""
        return self._searcher.num_docs

    def writer(self) -> LexicalWriter:
        """Open the one writer, best as a context; this reader sees its commits at once, others at their `refresh`.

        Raises:
            SondeError: Another process is writing.
        """
        return LexicalWriter(self._index, self.folder, self.refresh)

    def search(
        self, query: str, k: int, *, allowed: np.ndarray | None = None, language: str | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the best passages for free text, which is never read as query syntax.

        Args:
            query: Any text; at most `MAX_TERMS` distinct terms of it count, stop words only if there is nothing else.
            k: How many at most; fewer only when fewer match.
            allowed: bool [rows], the rows that may be found; rows past its end may not.
            language: The query's language, when it is known: analyse it in that one alone.

        Returns:
            (scores float32 [<= k], rows int64 [<= k]), best first, ties by the lower row.
        """
        weights = query_weights(query, self._languages(language))
        permitted = self.rows if allowed is None else int(np.count_nonzero(allowed))
        if k < 1 or not weights or not permitted:
            return np.empty(0, np.float32), np.empty(0, np.int64)
        wanted = any_term(self._schema, weights)
        if allowed is not None and permitted <= UNION_ROWS:
            scores, rows = self._among(wanted, np.flatnonzero(allowed))
            order = np.lexsort((rows, -scores))[:k]
            return scores[order], rows[order]
        return self._best(wanted, k, allowed, permitted)

    def score_rows(self, query: str, rows: np.ndarray | Sequence[int], language: str | None = None) -> np.ndarray:
        """Return the scores that `search` gives to these rows, float32 [len(rows)]; 0 where nothing matches."""
        rows = np.asarray(rows, dtype=np.int64)
        weights = query_weights(query, self._languages(language))
        if not weights or not len(rows) or not self.rows:
            return np.zeros(len(rows), np.float32)
        distinct, places = np.unique(rows, return_inverse=True)
        found_scores, found = self._among(any_term(self._schema, weights), distinct)
        scores = np.zeros(len(distinct), np.float32)
        scores[np.searchsorted(distinct, found)] = found_scores
        return scores[places]

    def words(self, query: str, language: str | None = None) -> "QueryWords":
        """Return what the words of a query are worth here, before any passage is read."""
        languages = self._languages(language)
        weights, telling = query_weights(query, languages), telling_terms(query, languages)
        rarity = self._rarity(weights)
        information = sum(weight * rarity[term] for term, weight in weights.items())
        most = math.log1p(max(self.rows - 0.5, 0.5) / 1.5)  # that of a term which one passage has
        mean = sum(min(rarity[term] / most, 1.0) for term in telling) / max(1, len(telling))
        return QueryWords(len(telling), information, mean)

    def rarity(self, query: str, language: str | None = None) -> dict[str, float]:
        """Return the query's content terms with their inverse document frequencies, greater than 0."""
        return self._rarity(telling_terms(query, self._languages(language)))

    def _rarity(self, terms: Iterable[str]) -> dict[str, float]:
        with tantivy_errors(self.folder):
            found = {term: self._searcher.doc_freq("text", term) for term in terms}
        return {term: math.log1p((self.rows - count + 0.5) / (count + 0.5)) for term, count in found.items()}

    def absent(self, query: str) -> list[str]:
        """Return the content words of a query that no passage has in any form, as they are written, in their order."""
        spans, is_stop_word = word_spans(query), stop_words(query, self.languages)
        words = {word.casefold(): word for start, end in spans if not is_stop_word(word := query[start:end])}
        terms = {word: {term for code in self.languages for term in analyzer(code).query_terms(word)} for word in words}
        with tantivy_errors(self.folder):
            return [
                words[word] for word, some in terms.items()
                if some and not any(self._searcher.doc_freq("text", term) for term in some)
            ]  # fmt: skip

    def misspelled(self, word: str, k: int = 32) -> np.ndarray:
        """Return int64 [m], m at most k: rows of passages with a word that continues the given one or is similar.

        Similar words differ by one letter, or by two if the given word has six letters or more. Of the three kinds,
        only the closest that exists is returned.
        """
        terms = {term for code in self.languages for term in analyzer(code).query_terms(word)}
        for distance in (0, 1, 2) if len(word) > 5 else (0, 1):
            nearly = [
                Query.fuzzy_term_query(self._schema, "text", term, distance=distance, prefix=not distance)
                for term in terms
            ]
            rows = self._hits(Query.boolean_query([(Occur.Should, each) for each in nearly]), k)[1]
            if len(rows):
                return rows
        return np.zeros(0, np.int64)

    def terms(self, query: str, language: str | None = None) -> list[str]:
        """Return the distinct terms that a query is searched by."""
        return list(query_counts(query, self._languages(language)))

    def matches(self, query: str, text: str, language: str | None = None) -> list[tuple[int, int]]:
        """Return the character ranges of a text that match a query's terms, in order.

        Stop words match only where the query has nothing else.

        Args:
            query: As for `search`.
            text: Any text, most often a hit's.
            language: The text's language, as its entry gave it.
        """
        code = normalise(language) or UNKNOWN
        languages = list(dict.fromkeys([*self.languages, code]))
        wanted = telling_terms(query, languages)
        return list(analyzer(code).spans(text, wanted, stop_words(query, languages))) if wanted else []

    def verify(self) -> list[str]:
        """Return one line for every file of the index whose checksum is wrong; none means that all is well."""
        return check_files(self.folder)

    @property
    def _schema(self) -> Schema:
        return self._index.schema

    def _languages(self, language: str | None) -> tuple[str, ...]:
        return (normalise(language) or UNKNOWN,) if language else self.languages

    def _best(self, query: Query, k: int, allowed: np.ndarray | None, permitted: int) -> tuple[np.ndarray, np.ndarray]:
        """Fetch more and more hits until k allowed ones, and all that tie with the last, are among them."""
        k = min(k, permitted)
        limit = min(self.rows, int((k + MARGIN) * self.rows / permitted) if allowed is not None else k + MARGIN)
        while True:
            scores, rows = self._hits(query, limit)
            kept = slice(None) if allowed is None else _among(rows, allowed)
            good, numbers = scores[kept], rows[kept]
            if len(rows) < limit or limit >= self.rows or (len(good) >= k and scores[-1] < good[k - 1]):
                order = np.lexsort((numbers, -good))[:k]
                return good[order], numbers[order]
            limit = min(self.rows, limit * 4)

    def _among(self, query: Query, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return scores and rows of what the query matches among distinct rows, in no particular order."""
        return self._hits(within(self._schema, query, rows.tolist()), len(rows))

    def _hits(self, query: Query, limit: int) -> tuple[np.ndarray, np.ndarray]:
        with tantivy_errors(self.folder):
            searcher = self._searcher  # taken once: addresses mean nothing to the searcher of another commit
            hits = searcher.search(query, limit, count=False).hits
            addresses = [address for _, address in hits]
            rows = np.array(searcher.fast_field_values("row", addresses), np.int64)
        return _steady(np.array([score for score, _ in hits], np.float32)), self._numbered(rows, addresses)

    def _numbered(self, rows: np.ndarray, addresses: Sequence[DocAddress]) -> np.ndarray:
        """Return the rows of hits, int64 [n]; `rows` is what the index itself says."""
        return rows


def _schema() -> Schema:
    """One field of terms joined by spaces: analysed before, so that each passage can have its own language."""
    builder = SchemaBuilder().add_unsigned_field("row", indexed=True, fast=True)
    builder = builder.add_text_field("language", tokenizer_name="raw", index_option="basic")
    return builder.add_text_field("text", tokenizer_name="whitespace", index_option="freq").build()


def _among(rows: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    known = rows < len(allowed)
    known[known] = allowed[rows[known]]
    return known


def _steady(scores: np.ndarray) -> np.ndarray:
    """Round to 16 significant bits: Tantivy adds terms in varying order, so equal passages differ in the last ones."""
    return ((scores.view(np.int32) + 0x80) & ~0xFF).view(np.float32)
