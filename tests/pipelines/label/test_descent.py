"""The minimum of a function, against the formula and SciPy."""

import numpy as np
import pytest
from scipy.optimize import minimize, rosen, rosen_der

from sonde.pipelines.label.carry import fit_linear
from sonde.pipelines.label.labels import softmax
from sonde.pipelines.label.solvers import minimise


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
