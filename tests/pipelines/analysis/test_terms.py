"""Counts of terms, against scikit-learn's vectorizer and SciPy's sparse matrices."""

import itertools
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer

from sonde.pipelines.analysis.terms import ENOUGH, Counts, count_terms

csr_matrix: Any = sparse.csr_matrix
WORDS = st.lists(st.sampled_from(["apple", "pear", "fig", "kiwi", "plum", "grape"]), max_size=8).map(" ".join)


def dense(counts: Counts) -> np.ndarray:
    """Counts as a table [texts, terms]."""
    table = np.zeros((len(counts.starts) - 1, len(counts.terms)))
    table[counts.rows, counts.columns] = counts.values
    return table


def words_and_pairs(text: str) -> list[str]:
    words = text.split()
    return words + [" ".join(pair) for pair in itertools.pairwise(words)]


@given(st.lists(WORDS, min_size=1, max_size=2 * ENOUGH))
def test_counts_are_those_of_scikit_learn(texts: list[str]) -> None:
    counts = count_terms(texts, [])
    grams: Any = CountVectorizer(min_df=2 if len(texts) >= ENOUGH else 1)
    grams.set_params(analyzer=words_and_pairs)
    try:
        expected = grams.fit_transform(texts)
    except ValueError:  # no term is left
        assert counts is None
        return
    assert counts is not None
    assert counts.terms.tolist() == grams.get_feature_names_out().tolist()
    expected.sort_indices()
    for mine, theirs in ((counts.starts, "indptr"), (counts.columns, "indices"), (counts.values, "data")):
        assert mine.tolist() == getattr(expected, theirs).tolist()


@given(st.lists(st.dictionaries(st.integers(0, 6), st.integers(1, 5)), min_size=1, max_size=12), st.integers(1, 4))
def test_sums_and_selections_are_those_of_scipy(rows: list[dict[int, int]], groups: int) -> None:
    counts = Counts.of_rows(rows, list("abcdefg"))
    table = csr_matrix(dense(counts))
    assert counts.totals().tolist() == np.asarray(table.sum(axis=0)).ravel().tolist()
    assert counts.sums().tolist() == np.asarray(table.sum(axis=1)).ravel().tolist()
    chosen = np.arange(len(rows))[::-2]
    assert dense(counts.of(chosen)).tolist() == table[chosen].toarray().tolist()
    group = np.arange(len(rows)) % groups
    member = csr_matrix((np.ones(len(rows)), (group, np.arange(len(rows)))), shape=(groups, len(rows)))
    assert dense(counts.grouped(group, groups)).tolist() == (member @ table).toarray().tolist()
    kept = counts.values > 2
    assert dense(counts.where(kept)).tolist() == table.multiply(table > 2).toarray().tolist()
