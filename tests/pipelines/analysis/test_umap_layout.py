"""The layout of UMAP's graph: its forces, the same places with any number of threads, and as faithful as UMAP's own."""

from importlib import import_module
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from thinned import soak

from sonde.pipelines.analysis.umap import _forces, arrange, project
from sonde.pipelines.analysis.umap_moves import COARSE

A, B = 1.577, 0.895


@pytest.fixture
def themes() -> tuple[np.ndarray, np.ndarray]:
    """Six themes of a hundred unit vectors each, and the theme of each."""
    chance = np.random.default_rng(5)
    centres = chance.normal(size=(6, 40))
    themes = np.repeat(np.arange(6), 100)
    vectors = centres[themes] + 0.8 * chance.normal(size=(600, 40))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32), themes


def test_forces_are_those_of_the_curve() -> None:
    squared = np.exp(np.random.default_rng(0).uniform(-12, 8, 2_000)).astype(np.float32)
    pull, push = (force[squared.view(np.int32) >> COARSE] for force in _forces(A, B))
    curve = 1 / (1 + A * squared.astype(float) ** B)
    # The gradients of log(curve) and log(1 - curve) by a place, over the gap to the other (UMAP's formulas).
    assert pull == pytest.approx(-2 * A * B * squared.astype(float) ** (B - 1) * curve, rel=8e-3)
    assert push == pytest.approx(2 * B * curve / (0.001 + squared.astype(float)), rel=8e-3)
    assert all(np.isfinite(force).all() for force in _forces(A, B))


def test_two_points_that_belong_together_are_drawn_together_and_strangers_apart() -> None:
    start = np.array([[0, 0], [8, 0], [0.1, 0.1], [8.1, 0.1]], np.float32)  # 0 and 1, 2 and 3 are neighbours
    graph = csr_matrix(([1.0, 1.0, 1.0, 1.0], ([0, 1, 2, 3], [1, 0, 3, 2])), shape=(4, 4))
    places = arrange(start, graph, A, B, 500, 0)
    apart = np.linalg.norm(places[:, None] - places[None], axis=2)
    assert max(apart[0, 1], apart[2, 3]) < 1.5
    assert min(apart[0, 2], apart[0, 3], apart[1, 2], apart[1, 3]) > 3


def test_the_same_places_with_any_number_of_threads_and_others_with_another_seed(
    themes: tuple[np.ndarray, np.ndarray],
) -> None:
    import numba

    places = project(themes[0], 2, 7)
    before = numba.get_num_threads()
    try:
        numba.set_num_threads(1)
        assert np.array_equal(project(themes[0], 2, 7), places)
    finally:
        numba.set_num_threads(before)
    assert not np.array_equal(project(themes[0], 2, 8), places)


def test_neighbours_on_the_plane_share_a_theme(themes: tuple[np.ndarray, np.ndarray]) -> None:
    vectors, theme = themes
    places = project(vectors, 2, 0, spread_out=0.1)
    nearest = np.linalg.norm(places[:, None] - places[None], axis=2).argsort(axis=1)[:, 1:6]
    assert (theme[nearest] == theme[:, None]).mean() > 0.98


@soak("test_neighbours_on_the_plane_share_a_theme")
def test_as_faithful_as_umaps_own(themes: tuple[np.ndarray, np.ndarray]) -> None:
    from sklearn.manifold import trustworthiness

    library: Any = import_module("umap")  # for its type, pyright would read the whole library

    vectors, _ = themes
    theirs = library.UMAP(min_dist=0.1, metric="cosine", random_state=0, n_jobs=1).fit_transform(vectors)
    ours = project(vectors, 2, 0, spread_out=0.1)
    faithful = [trustworthiness(vectors, places, n_neighbors=15, metric="cosine") for places in (ours, theirs)]
    assert faithful[0] > faithful[1] - 0.01


def test_identical_points_and_points_without_neighbours_stay_finite() -> None:
    start = np.zeros((5, 3), np.float32)
    graph = csr_matrix(([1.0, 1.0], ([0, 1], [1, 0])), shape=(5, 5))
    assert np.isfinite(arrange(start, graph, A, B, 50, 0)).all()
