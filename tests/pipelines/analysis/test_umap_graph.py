"""The graph of neighbours is the one that UMAP makes of the same neighbours."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sonde.pipelines.analysis.neighbours import neighbours
from sonde.pipelines.analysis.umap import fuzzy_graph


def umaps(rows: np.ndarray, distances: np.ndarray) -> np.ndarray:
    from umap import umap_

    module: Any = umap_
    nothing = np.empty((len(rows), 1), np.float32)
    chance = np.random.RandomState(0)
    return module.fuzzy_simplicial_set(nothing, rows.shape[1], chance, "cosine", {}, rows, distances)[0].toarray()


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 1_000), count=st.integers(5, 120), near=st.integers(2, 20), twins=st.integers(0, 30))
def test_the_same_graph_as_umap(seed: int, count: int, near: int, twins: int) -> None:
    vectors = np.random.default_rng(seed).normal(size=(count, 12)).astype(np.float32)
    vectors[: min(twins, count)] = vectors[0]  # whose distances are 0
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    rows, cosines = neighbours(vectors, vectors, near)
    distances = np.maximum(1 - cosines, 0)
    graph = fuzzy_graph(rows, distances)
    assert graph.dtype == np.float32
    assert graph.toarray() == pytest.approx(umaps(rows, distances), abs=2e-4)
    assert (graph != graph.T).nnz == 0 and not graph.diagonal().any()


def test_strengths_of_a_point_add_up_to_the_logarithm_of_their_number() -> None:
    distances = np.array([[0, 0.1, 0.2, 0.4]] + [[0, 0, 0, 0]] * 3, np.float32)
    graph = fuzzy_graph(np.array([[0, 1, 2, 3], [1, 1, 1, 1], [2, 2, 2, 2], [3, 3, 3, 3]]), distances)
    assert graph[[0], :].sum() == pytest.approx(2, abs=1e-5)
    assert graph[0, 1] == 1
