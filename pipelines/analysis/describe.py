"""Describe groups of vectors: centroids, silhouettes, terms, representatives, names; and example queries."""

from collections.abc import Sequence

import numpy as np

from ...indexer.ann.gpu import on_gpu
from ...indexer.progress import Notify, silent
from ...indexer.store.documents import chosen_texts, document_numbers, ids_by_number, language_counts
from ...indexer.store.runs import Item
from ...indexer.store.view import View, normalized
from .corpus import Corpus, texts_of
from .neighbours import neighbours, sample_rows
from .terms import best_terms, count_terms, distinctive, weights


def silhouettes(vectors: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return float64 [n] silhouettes, -1 to 1, higher is better (Rousseeuw, J. Comput. Appl. Math. 20, 1987).

    The mean cosine distance to a cluster is one minus the product with the sum of its vectors, so no pair of vectors
    has to be compared. A GPU multiplies in float32, which changes the sixth digit.

    Args:
        vectors: float32 [n, d], of length 1.
        labels: int64 [n], the cluster of each; outliers (-1) get NaN and do not affect other rows.
    """
    found = np.full(len(labels), np.nan)
    inside = np.flatnonzero(labels >= 0)
    numbers, own = np.unique(labels[inside], return_inverse=True)
    if len(numbers) < 2:
        found[inside] = 0.0
        return found
    sums = np.array([vectors[rows].sum(axis=0, dtype=np.float64) for rows in membership_matrix(own, inside)])
    sizes = np.bincount(own).astype(float)
    for start in range(0, len(inside), 16_384):
        rows = inside[start : start + 16_384]
        found[rows] = _block(_sums_of_products(vectors[rows], sums, sizes), own[start : start + 16_384], sizes)
    return found


def _sums_of_products(vectors: np.ndarray, sums: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return float64 [n, k] products with the sums; a GPU takes the means, so float32 suffices for large clusters."""
    return on_gpu(
        "silhouettes",
        lambda gpu: gpu.products(vectors, (sums / sizes[:, None]).astype(np.float32)) * sizes,
        lambda: vectors.astype(np.float64) @ sums.T,
    )


def membership_matrix(own: np.ndarray, rows: np.ndarray) -> list[np.ndarray]:
    """Return the rows of each group 0, 1, 2 … in their order; `own` holds each row's group."""
    order = np.argsort(own, kind="stable")
    return np.split(rows[order], np.cumsum(np.bincount(own))[:-1])


def _block(products: np.ndarray, own: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    rows = np.arange(len(own))
    alone = sizes[own] <= 1
    within = 1 - (products[rows, own] - 1) / np.maximum(sizes[own] - 1, 1)
    distances = 1 - products / sizes
    distances[rows, own] = np.inf
    other = distances.min(axis=1)
    values = (other - within) / np.maximum(np.maximum(within, other), 1e-12)
    return np.where(alone, 0.0, values)


VOTERS = 10
"""Neighbours that vote on where a text belongs."""


def vote(
    queries: np.ndarray, fitted: np.ndarray, labels: np.ndarray, notify: Notify = silent
) -> tuple[np.ndarray, np.ndarray]:
    """Return the cluster that most of the nearest fitted vectors belong to, each weighing its cosine.

    Args:
        queries: float32 [m, d], of length 1.
        fitted: float32 [n, d], of length 1, n at least 1.
        labels: int64 [n], the cluster of each; -1 (an outlier) is voted for like any other.
        notify: Receives progress.

    Returns:
        int64 [m] clusters, and float32 [m] shares of the votes, 0 to 1. Of equal ones the nearer neighbour's wins.
    """
    rows, cosines = neighbours(queries, fitted, VOTERS, notify)
    return ballot(labels[rows], cosines)


def ballot(votes: np.ndarray, cosines: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return which of the neighbours' clusters, int64 [m, k], wins, and its share; each weighs its cosine."""
    weights = np.maximum(cosines, 1e-6)
    totals = np.zeros_like(weights)
    for other in range(votes.shape[1]):
        totals += np.where(votes == votes[:, other : other + 1], weights[:, other : other + 1], 0)
    best = totals.argmax(axis=1)
    every = np.arange(len(votes))
    return votes[every, best], np.minimum(totals[every, best] / weights.sum(axis=1), 1)


def centroids(vectors: np.ndarray, labels: np.ndarray, count: int) -> np.ndarray:
    """Return float32 [count, d]: the direction of each cluster's mean; zeros for one that is empty."""
    inside = np.flatnonzero(labels >= 0)
    found = np.zeros((count, vectors.shape[1]), np.float64)
    if len(inside):
        for number, rows in enumerate(membership_matrix(labels[inside], inside)):
            found[number] = vectors[rows].sum(axis=0, dtype=np.float64)
    return normalized(found).astype(np.float32)


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

    The names are placeholders ("cluster 3"). The data: `size` (documents), `distinct` (texts), `terms` (with c-TF-IDF
    weights, best first), `representatives` (ids of the documents nearest the centroid), `cohesion` (mean cosine to the
    centroid), and `stability` (0 to 1, or null).

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
    rows_of = membership_matrix(labels + 1, np.arange(len(labels))) if len(labels) else []
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
        items.append(Item(number, placeholder(number), data))
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
    found = best_terms(weighted)
    return dict(zip(numbers.tolist(), found, strict=True))


def sampled(labels: np.ndarray, seed: int, most: int = TERM_DOCUMENTS) -> np.ndarray:
    """Return ascending rows: all, or about `most` of them, of each cluster its share and no fewer than 20."""
    if len(labels) <= most:
        return np.arange(len(labels))
    random = np.random.default_rng(seed)
    kept = []
    for rows in membership_matrix(np.unique(labels, return_inverse=True)[1], np.arange(len(labels))):
        count = min(len(rows), max(LEAST, round(most * len(rows) / len(labels))))
        kept.append(random.choice(rows, count, replace=False))
    return np.sort(np.concatenate(kept))


def languages(view: View) -> list[str]:
    """Return the languages that at least a twentieth of the documents have, the commonest first."""
    found = language_counts(view.catalog)
    total = sum(count for _, count in found)
    return [language for language, count in found if language and count * 20 >= total]


def ids_of(view: View, docs: np.ndarray) -> list[str]:
    """Return the ids of documents in the order of their numbers given."""
    found = ids_by_number(view.catalog, docs.tolist())
    return [found[doc] for doc in docs.tolist()]


def placeholder(number: int) -> str:
    """Return the name of a cluster whose texts have no usable word."""
    return f"cluster {number}"


def name_by_terms(terms: Sequence[tuple[str, float]], number: int) -> str:
    """Return the name that clusters of earlier versions got: their best terms, or the number where there is none."""
    return ", ".join(term for term, _ in terms[:NAME_TERMS]) or placeholder(number)


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
    docs = document_numbers(view.catalog)
    docs = docs[sample_rows(len(docs), SAMPLE, seed)]
    rows = [(each.title, each.text) for each in chosen_texts(view.catalog, docs.tolist(), LENGTH)]
    found = _phrases([text for _, text in rows], languages(view), most)
    titles = dict.fromkeys(title for title, _ in rows if 8 <= len(title) <= 60 and " " in title)
    return list(dict.fromkeys([*found, *titles]))[:most] or _words([text for _, text in rows], languages(view), most)


def _phrases(texts: list[str], spoken: list[str], most: int) -> list[str]:
    """Return phrases that occur in several texts, those that occur together more often than by chance first."""
    counts = count_terms(texts, spoken)
    if counts is None:
        return []
    often = np.bincount(counts.columns, minlength=len(counts.terms))
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
    return counts.terms[np.lexsort((counts.terms, -counts.totals()))][:most].tolist()


def _different(terms: list[str], most: int) -> list[str]:
    """Return the first terms that share no word with one before."""
    seen: set[str] = set()
    chosen: list[str] = []
    for term in terms:
        if len(chosen) < most and not seen & set(term.split(" ")):
            chosen.append(term)
            seen |= set(term.split(" "))
    return chosen
