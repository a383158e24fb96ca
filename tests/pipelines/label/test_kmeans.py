"""KMeans for labels, against scikit-learn: the same seed gives the same clusters."""

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn import cluster

from sonde.pipelines.label.solvers import euclidean_kmeans, nearest

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
