"""What labelling computes by itself: k-means against scikit-learn's, and the minimum against SciPy's."""

import warnings
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize, rosen, rosen_der
from sklearn import cluster

from sonde.pipelines.label.carry import fit_linear
from sonde.pipelines.label.solvers import euclidean_kmeans, minimise, nearest, softmax

KMeans: Any = cluster.KMeans


def texts(count: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(7, 16))
    found = centres[rng.integers(0, 7, count)] + 0.7 * rng.normal(size=(count, 16))
    return (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)


@pytest.mark.parametrize(("count", "k"), [(60, 2), (300, 7), (300, 40), (2_000, 12), (50, 50)])
def test_clusters_are_those_of_scikit_learn(count: int, k: int) -> None:
    for seed in range(3):
        vectors = texts(count, seed)
        expected = KMeans(k, n_init=1, max_iter=20, random_state=seed).fit(vectors)
        centres, labels = euclidean_kmeans(vectors, k, seed)
        assert labels.tolist() == expected.labels_.tolist()
        np.testing.assert_allclose(centres, expected.cluster_centers_, atol=1e-5)
        others = texts(100, seed + 10)
        assert nearest(others, centres)[0].tolist() == expected.predict(others).tolist()
        np.testing.assert_allclose(
            np.sqrt(nearest(others, centres)[1]), expected.transform(others).min(axis=1), atol=1e-5
        )


def test_copies_make_no_more_clusters_than_there_are_texts() -> None:
    vectors = np.repeat(texts(6, 0), 10, axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fewer clusters than asked for
        expected = KMeans(9, n_init=1, max_iter=20, random_state=4).fit(vectors)
    assert euclidean_kmeans(vectors, 9, 4)[1].tolist() == expected.labels_.tolist()


def test_a_curved_valley_is_followed_to_its_end() -> None:
    found = minimise(lambda place: (float(rosen(place)), rosen_der(place)), np.array([-1.2, 1.0]))
    assert found == pytest.approx(np.ones(2), abs=1e-3)


def test_a_minimum_is_left_alone() -> None:
    start = np.array([3.0, -2.0])
    found = minimise(lambda place: (float(((place - start) ** 2).sum()), 2 * (place - start)), start)
    assert found.tolist() == start.tolist()


def test_a_linear_model_has_the_smallest_loss_that_scipy_finds() -> None:
    rng = np.random.default_rng(0)
    features, penalty = rng.normal(size=(80, 6)), 2.0
    shares = softmax(features @ rng.normal(size=(6, 3)) + rng.normal(size=(80, 3)))

    def loss(flat: np.ndarray) -> float:
        found = softmax(features @ flat[:18].reshape(6, 3) + flat[18:])
        return float(-(shares * np.log(found)).sum() + penalty * (flat[:18] ** 2).sum() / 2)

    best = minimize(loss, np.zeros(21), method="BFGS", options={"gtol": 1e-6}).x
    expected = softmax(features @ best[:18].reshape(6, 3) + best[18:])
    model = fit_linear(features, shares, multi_label=False, penalty=penalty)
    np.testing.assert_allclose(softmax(model.margins(features)), expected, atol=2e-4)
