"""How close a decision was, and to what, compared with values worked out by hand."""

import numpy as np
import pytest

from sonde.pipelines.label.labels import NONE
from sonde.pipelines.label.outcome import closeness
from sonde.pipelines.label.solvers import sigmoid


def test_closeness_by_hand() -> None:
    shares = np.array([[0.5, 0.4, 0.1], [0.2, 0.2, 0.6], [0.34, 0.33, 0.33]])
    one = closeness(shares, False, 0.0)
    assert one["margins"].tolist() == pytest.approx([0.1, 0.4, 0.01], abs=1e-6)
    assert one["others"].tolist() == [1, 0, 1]
    assert one["other_scores"].tolist() == pytest.approx([0.4, 0.2, 0.33], abs=1e-6)
    least = closeness(shares, False, 0.55)
    assert least["margins"].tolist() == pytest.approx([0.05, 0.05, 0.21], abs=1e-6)
    assert least["others"].tolist() == [0, NONE, 0]
    assert least["other_scores"].tolist() == pytest.approx([0.5, np.nan, 0.34], abs=1e-6, nan_ok=True)
    several = closeness(sigmoid(np.array([[0.0, 2.0], [3.0, -1.0]])), True, 0.5)
    assert several["margins"].tolist() == pytest.approx([0.0, 0.2310586], abs=1e-6)
    assert several["others"].tolist() == [0, 1]
    assert several["other_scores"].tolist() == pytest.approx([0.5, 0.2689414], abs=1e-6)
