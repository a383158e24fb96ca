"""How often each word occurs in each topic, as plain arrays, and names from the words that tell topics apart."""

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from ..cluster.terms import Counts, best_terms, distinctive, weights

KEPT = 20
"""Terms of a topic that are kept."""
VOCABULARY = 50_000
"""Words that are counted, at most: the most frequent."""

Weighted = list[tuple[str, float]]
Words = Callable[[str], list[str]]
"""Takes the describing words out of a text."""


def to_arrays(counts: Counts) -> dict[str, np.ndarray]:
    """Return counts as arrays without objects, to be stored."""
    text = "\n".join(counts.terms.tolist()).encode("utf-8")
    matrix = counts.matrix
    return {
        "counts": matrix.data.astype(np.int64), "counts_word": matrix.indices.astype(np.int32),
        "counts_start": matrix.indptr.astype(np.int64), "words": np.frombuffer(text, np.uint8),
    }  # fmt: skip


def from_arrays(arrays: Mapping[str, np.ndarray]) -> Counts:
    """Return the counts that `to_arrays` stored."""
    from scipy.sparse import csr_matrix

    text = arrays["words"].tobytes().decode("utf-8")
    words = np.array(text.split("\n") if text else [], dtype=object)
    start = arrays["counts_start"]
    matrix = csr_matrix((arrays["counts"], arrays["counts_word"], start), (len(start) - 1, len(words)))
    return Counts(matrix, words)


def terms_of(counts: Counts, groups: np.ndarray, number: int, most: int = KEPT) -> list[Weighted]:
    """Return the distinctive terms of groups of rows with their c-TF-IDF weights, the heaviest first.

    Args:
        counts: Words by row.
        groups: int64 [rows], the group of each, -1 for rows to be left out.
        number: Of groups.
        most: Terms of a group, at most.
    """
    inside = np.flatnonzero(groups >= 0)
    if not number or not len(counts.terms):
        return [[] for _ in range(number)]
    some = Counts(counts.matrix[inside], counts.terms)
    return best_terms(distinctive(weights(some, groups[inside], number), some, groups[inside]), counts.terms, most)


def short_name(terms: Iterable[str], count: int = 3) -> str:
    """Return the first terms that say something new: no second form of a word that is named already."""
    chosen: list[str] = []
    for term in terms:
        if len(chosen) == count:
            break
        if not any(_alike(word, other) for word in term.split() for name in chosen for other in name.split()):
            chosen.append(term)
    return ", ".join(chosen)


def _alike(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    common = max(4, len(short) - 2)
    return short == long or (len(short) >= 4 and long[:common] == short[:common])
