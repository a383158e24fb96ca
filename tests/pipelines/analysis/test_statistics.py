"""Agreement of two labellings, against scikit-learn."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score, v_measure_score
from sklearn.metrics.cluster import contingency_matrix

from sonde.pipelines.analysis.statistics import agreement


@given(st.lists(st.tuples(st.integers(-1, 4), st.integers(-1, 4)), min_size=1, max_size=60))
def test_each_measure_is_that_of_scikit_learn(pairs: list[tuple[int, int]]) -> None:
    classes, labels = np.array(pairs).T
    table = contingency_matrix(classes, labels)
    assert agreement(classes, labels) == pytest.approx(
        {
            "nmi": normalized_mutual_info_score(classes, labels), "ari": adjusted_rand_score(classes, labels),
            "v_measure": v_measure_score(classes, labels), "purity": table.max(axis=0).sum() / table.sum(),
        },
        abs=1e-9,
    )  # fmt: skip
