"""What is said of each cluster: size, representatives, terms, cohesion, stability, and a name."""

from collections.abc import Sequence

import numpy as np

from ...indexer.runs import Item
from ...indexer.view import View
from .carrying import centroids
from .corpus import Corpus, texts_of
from .silhouette import members
from .terms import best_terms, count_terms, distinctive, weights

REPRESENTATIVES = 5
TYPICAL = 30
"""Texts nearest to a centroid that candidate labels are compared with."""
TERM_DOCUMENTS = 20_000
"""Texts that terms are counted in, at most; each cluster gets its share, and at least `LEAST` where it has them."""
LEAST = 20
NAME_TERMS = 3
OUTLIERS = "outliers"


def describe(
    view: View, corpus: Corpus, labels: np.ndarray, stability: np.ndarray | None, seed: int
) -> tuple[list[Item], list[np.ndarray]]:
    """Return one item for each cluster 0, 1, 2 …, and one, -1, for the outliers if there are any; and typical texts.

    These are int64 rows of the vectors nearest each cluster's centroid, the nearest first.

    Its data: `size` (documents), `distinct` (texts), `terms` (with c-TF-IDF weights, best first), `representatives`
    (ids of the documents nearest the centroid), `cohesion` (mean cosine to the centroid), and `stability` (0 to 1, or
    null).

    Args:
        view: Of the collection.
        corpus: What was clustered.
        labels: int64 [m], the cluster of each distinct vector, -1 for outliers.
        stability: float [k], or None.
        seed: Of the sample of texts that terms are counted in.
    """
    count = int(labels.max(initial=-1)) + 1
    terms = cluster_terms(view, corpus, labels, seed)
    sizes = np.bincount(labels[corpus.group] + 1, minlength=count + 1)
    means = centroids(corpus.vectors, labels, count)
    rows_of = members(labels + 1, np.arange(len(labels))) if len(labels) else []
    items = [Item(-1, OUTLIERS, {"size": int(sizes[0]), "distinct": len(rows_of[0])})] if sizes[0] else []
    typical = []
    for number in range(count):
        rows = rows_of[number + 1]
        cosines = np.einsum("ij,j->i", corpus.vectors[rows], means[number])
        near = rows[np.lexsort((rows, -cosines))[:TYPICAL]]
        typical.append(near)
        data = {
            "size": int(sizes[number + 1]),
            "distinct": len(rows),
            "terms": [list(pair) for pair in terms.get(number, [])],
            "representatives": ids_of(view, corpus.snapshot.docs[corpus.first[near[:REPRESENTATIVES]]]),
            "cohesion": round(float(cosines.mean(dtype=np.float64)), 4),
            "stability": None if stability is None else round(float(stability[number]), 4),
        }
        items.append(Item(number, name_of(terms.get(number, []), number), data))
    return items, typical


def cluster_terms(view: View, corpus: Corpus, labels: np.ndarray, seed: int) -> dict[int, list[tuple[str, float]]]:
    """Return the terms that set each cluster apart, best first, by its number; outliers count as a group."""
    rows = sampled(labels, seed)
    counts = (
        count_terms(texts_of(view, corpus.snapshot.docs[corpus.first[rows]]), languages(view)) if len(rows) else None
    )
    if counts is None:
        return {}
    numbers, groups = np.unique(labels[rows], return_inverse=True)
    weighted = distinctive(weights(counts, groups, len(numbers)), counts, groups)
    found = best_terms(weighted, counts.terms)
    return dict(zip(numbers.tolist(), found, strict=True))


def sampled(labels: np.ndarray, seed: int, most: int = TERM_DOCUMENTS) -> np.ndarray:
    """Return ascending rows: all, or about `most` of them, of each cluster its share and no fewer than 20."""
    if len(labels) <= most:
        return np.arange(len(labels))
    random = np.random.default_rng(seed)
    kept = []
    for rows in members(np.unique(labels, return_inverse=True)[1], np.arange(len(labels))):
        count = min(len(rows), max(LEAST, round(most * len(rows) / len(labels))))
        kept.append(random.choice(rows, count, replace=False))
    return np.sort(np.concatenate(kept))


def languages(view: View) -> list[str]:
    """Return the languages that at least a twentieth of the documents have, the commonest first."""
    common = view.catalog.get("language")
    sql = "SELECT coalesce(language, ?) AS l, count(*) FROM documents GROUP BY l ORDER BY 2 DESC, 1"
    found = view.catalog.connection.execute(sql, (common,)).fetchall()
    total = sum(count for _, count in found)
    return [language for language, count in found if language and count * 20 >= total]


def ids_of(view: View, docs: np.ndarray) -> list[str]:
    """Return the ids of documents in the order of their numbers given."""
    found = dict(view.catalog.select_in("SELECT doc, key FROM documents WHERE doc IN (?)", docs.tolist()))
    return [found[doc] for doc in docs.tolist()]


def name_of(terms: Sequence[tuple[str, float]], number: int) -> str:
    """Return a name made of the best terms, or of the number where there is none."""
    return ", ".join(term for term, _ in terms[:NAME_TERMS]) or f"cluster {number}"
