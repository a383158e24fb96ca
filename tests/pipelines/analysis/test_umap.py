"""UMAP: the graph that UMAP itself makes, the layout with any number of threads, and how many threads are taken."""

from collections import Counter
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from thinned import soak

from sonde.pipelines.analysis.neighbours import neighbours
from sonde.pipelines.analysis.umap import AGAIN, ThreadPace, _forces, arrange, fuzzy_graph, project
from sonde.pipelines.analysis.umap_moves import COARSE


def umaps(rows: np.ndarray, distances: np.ndarray) -> np.ndarray:
    from umap import umap_

    module: Any = umap_
    nothing = np.empty((len(rows), 1), np.float32)
    chance = np.random.RandomState(0)
    return module.fuzzy_simplicial_set(nothing, rows.shape[1], chance, "cosine", {}, rows, distances)[0].toarray()


@pytest.mark.long
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


class Machine:
    """A clock that steps move on, by a time that depends on the number of threads."""

    def __init__(self, seconds: dict[int, float]) -> None:
        self.seconds, self.now, self.taken = seconds, 0.0, Counter[int]()

    def step(self, threads: int) -> None:
        self.now += self.seconds[threads]
        self.taken[threads] += 1


def paced(machine: Machine, pace: ThreadPace, steps: int) -> Counter[int]:
    """How often each number of threads is taken in these further steps."""
    machine.taken.clear()
    for _ in range(steps):
        pace.run(machine.step)
    return machine.taken


def test_a_quiet_machine_uses_all_threads_and_a_busy_one_uses_one() -> None:
    quiet, busy = Machine({8: 0.1, 1: 0.7}), Machine({8: 9.0, 1: 0.7})
    assert paced(quiet, ThreadPace(8, lambda: quiet.now), 200) == {8: 196, 1: 4}
    assert paced(busy, ThreadPace(8, lambda: busy.now), 200) == {8: 4, 1: 196}


def test_a_machine_that_becomes_busy_or_quiet_is_noticed() -> None:
    machine = Machine({2: 0.5, 1: 1.0})
    pace = ThreadPace(2, lambda: machine.now)
    assert paced(machine, pace, 100)[2] >= 97
    machine.seconds = {2: 8.0, 1: 1.0}
    assert paced(machine, pace, 100)[2] <= 4, "at once"
    machine.seconds = {2: 0.5, 1: 1.0}
    assert paced(machine, pace, 2 * AGAIN)[2] >= AGAIN - 2, "when it is tried again"


def test_one_core_has_no_choice() -> None:
    machine = Machine({1: 1.0})
    assert paced(machine, ThreadPace(1, lambda: machine.now), 120) == {1: 120}


@given(st.floats(0.01, 20), st.floats(0.01, 20), st.integers(1, 400))
def test_little_is_lost_to_trials(one: float, every: float, steps: int) -> None:
    machine = Machine({4: every, 1: one})
    paced(machine, ThreadPace(4, lambda: machine.now), steps)
    trials = 1 + steps // AGAIN
    assert machine.now <= (steps + 1) * min(one, every) + (trials + 1) * max(one, every)
