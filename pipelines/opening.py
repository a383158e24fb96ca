"""What one might ask of a collection that one does not know: phrases that its texts use, and titles."""

import numpy as np

from ..indexer.view import View
from .cluster.describe import languages
from .cluster.terms import count_terms

SAMPLE = 400
LENGTH = 1_000
COMMON = 0.2
"""Share of the texts above which a phrase is about all of them, and no question."""


def example_queries(view: View, most: int = 6, seed: int = 0) -> list[str]:
    """Return queries that have good answers: phrases of two words that several of 400 texts use, else titles or words.

    Args:
        view: The collection.
        most: How many to return.
        seed: Of the sample.
    """
    docs = np.array([doc for (doc,) in view.catalog.connection.execute("SELECT doc FROM documents ORDER BY doc")])
    if len(docs) > SAMPLE:
        docs = np.sort(np.random.default_rng(seed).choice(docs, SAMPLE, replace=False))
    sql = f"SELECT title, substr(text, 1, {LENGTH}) FROM documents WHERE doc IN (?)"
    rows = list(view.catalog.select_in(sql, docs.tolist()))
    found = _phrases([text for _, text in rows], languages(view), most)
    titles = dict.fromkeys(title for title, _ in rows if 8 <= len(title) <= 60 and " " in title)
    return list(dict.fromkeys([*found, *titles]))[:most] or _words([text for _, text in rows], languages(view), most)


def _phrases(texts: list[str], spoken: list[str], most: int) -> list[str]:
    """Return phrases that occur in several texts, those that occur together more often than by chance first."""
    counts = count_terms(texts, spoken)
    if counts is None:
        return []
    matrix = counts.matrix.astype(bool)
    often = np.asarray(matrix.sum(axis=0)).ravel()
    known = dict(zip(counts.terms.tolist(), often.tolist(), strict=True))
    limit = max(2, COMMON * len(texts))
    scored: list[tuple[float, str]] = []
    for term, count in known.items():
        words = term.split(" ")
        if len(words) == 2 and 2 <= count <= limit and len(set(words)) == 2:
            both = known.get(words[0], count) * known.get(words[1], count)
            scored.append((count * np.log(count * len(texts) / both), term))  # a local mutual information
    return _different([term for _, term in sorted(scored, key=lambda pair: (-pair[0], pair[1]))], most)


def _words(texts: list[str], spoken: list[str], most: int) -> list[str]:
    """Return the most frequent words."""
    counts = count_terms(texts, spoken, 1)
    if counts is None:
        return []
    often = np.asarray(counts.matrix.sum(axis=0)).ravel()
    return counts.terms[np.lexsort((counts.terms, -often))][:most].tolist()


def _different(terms: list[str], most: int) -> list[str]:
    """Return the first terms that share no word with one before."""
    seen: set[str] = set()
    chosen: list[str] = []
    for term in terms:
        if len(chosen) < most and not seen & set(term.split(" ")):
            chosen.append(term)
            seen |= set(term.split(" "))
    return chosen
