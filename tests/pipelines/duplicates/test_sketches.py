"""Sketches of sets: which earlier sets they find, and that their hashes are those of datasketch 2."""

import numpy as np
import pytest

from sonde.pipelines.duplicates.sketches import Sketches, _bands


@pytest.mark.parametrize(
    ("least", "shape"),
    [(0.05, (75, 1)), (0.3, (32, 2)), (0.5, (32, 4)), (0.7, (20, 6)), (0.8, (14, 9)), (0.9, (8, 16))],
)
def test_bands_are_those_that_datasketch_chooses(least: float, shape: tuple[int, int]) -> None:
    assert _bands(least) == shape


def test_a_sketch_is_that_of_datasketch() -> None:
    sketches = Sketches(0.7)
    sketches.add(["one two three", "two three four"])
    [first] = sketches._buckets[0]
    assert np.frombuffer(first, np.uint32).tolist() == [
        1596985859,
        54428199,
        2112996390,
        1558922060,
        266488563,
        2676972712,
    ]


def test_most_sets_that_share_four_fifths_are_found_and_hardly_any_others() -> None:
    rng, sketches = np.random.default_rng(0), Sketches(0.7)
    sets = [[f"{number} {word}" for word in range(40)] for number in range(300)]
    assert [found for each in sets if (found := sketches.add(each))] == []
    near = [[*rng.permutation(each)[:36].tolist(), f"{number} other"] for number, each in enumerate(sets)]
    found = [sketches.add(each) for each in near]
    assert sum(number in one for number, one in enumerate(found)) >= 298
    assert sum(len(one) for one in found) <= 302


def test_the_same_set_in_another_order_is_found() -> None:
    sketches = Sketches(0.9)
    assert [sketches.add(each) for each in (["a", "b", "c"], ["x"], ["c", "a", "b"], ["x"])] == [[], [], [0], [1]]
