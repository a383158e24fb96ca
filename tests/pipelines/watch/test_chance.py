"""What chance explains, and what it does not: shares of groups and places of new texts, on made vectors."""

import numpy as np
import pytest
from scipy.stats import binom

from sonde.pipelines.analysis.appeared import SCALES, Place, _unusual, around, find_places, scored
from sonde.pipelines.analysis.statistics import Batch, chances
from sonde.pipelines.watch.groups import compare_shares

TIMES = 199


def directions(vectors: np.ndarray) -> np.ndarray:
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def blobs(count: int, groups: int = 8, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Vectors of length 1 around the means of groups, and the number of each one's group."""
    chance = np.random.default_rng(seed)
    labels = np.arange(count) % groups
    return directions(4 * chance.normal(size=(groups, 16))[labels] + chance.normal(size=(count, 16))), labels


def planted(count: int, new: int, together: int, seed: int = 0) -> tuple[np.ndarray, Batch]:
    """`count` vectors of which the last `new` are new, and of these the last `together` lie where no other is."""
    chance = np.random.default_rng(seed)
    vectors, _ = blobs(count, seed=seed)
    vectors[:] = vectors[chance.permutation(count)]
    vectors[count - together :] = directions(4 * chance.normal(size=(1, 16)) + chance.normal(size=(together, 16)))
    return vectors, Batch.of(np.arange(count), np.arange(count) >= count - new)


def places(vectors: np.ndarray, batch: Batch, alarms: float = 0.005, times: int = TIMES) -> list[Place]:
    return find_places(batch, around(vectors), alarms, times, 0)


def test_a_planted_group_of_eight_among_400_new_texts_is_found() -> None:
    for seed in range(3):
        [place] = places(*planted(4_000, 400, 8, seed))
        assert place.rows.tolist() == list(range(3_992, 4_000))
        assert (place.old, place.p) == (0, 1 / (TIMES + 1))
        assert (place.near, place.scale) == (7, 7)
        assert place.expected == pytest.approx(0.7)


@pytest.mark.long
def test_quiet_batches_raise_hardly_any_alarm() -> None:
    vectors, labels = blobs(600)
    table = around(vectors)
    alarms = []
    for seed, batch in enumerate(Batch.of(np.arange(600), np.arange(600) < 120).exchanged(100, 7)):
        new = find_places(batch, table, 0.005, TIMES, seed)
        moved = compare_shares(batch, labels, 8, TIMES, seed).p <= 0.005
        alarms.append(bool(new) or bool(moved.any()))
    assert sum(alarms) <= 3


def test_a_promise_of_half_is_about_kept_and_not_by_silence() -> None:
    vectors, labels = blobs(300, 3)
    batches = list(Batch.of(np.arange(300), np.arange(300) < 60).exchanged(60, 1))
    moved = [(compare_shares(batch, labels, 3, TIMES, 3).p <= 0.5).any() for batch in batches]
    assert 18 <= sum(moved) <= 42
    assert vectors.shape == (300, 16)


def test_neighbours_are_counted_as_by_hand() -> None:
    vectors, batch = planted(300, 90, 12)
    table = around(vectors)
    cosines = vectors.astype(np.float64) @ vectors.T.astype(np.float64)
    np.fill_diagonal(cosines, -2)
    assert (table == np.argsort(-cosines, axis=1, kind="stable")[:, :50]).mean() > 0.999
    rows, scores, near = scored(batch.fresh, table, {scale: _unusual(scale, 0.3) for scale in SCALES})
    assert rows.tolist() == list(range(210, 300))
    for place, row in enumerate(rows.tolist()):
        for column, scale in enumerate(SCALES):
            count = sum(batch.new[other] for other in table[row, :scale])
            assert near[place, column] == count
            expected = -np.log(binom.sf(count - 1, scale, 0.3)) if count >= scale * 0.65 else 0
            assert scores[place, column] == pytest.approx(expected, abs=1e-9)


def test_the_chance_of_a_score_counts_the_real_choice_too() -> None:
    by_chance = np.array([1.0, 2.0, 2.0, 5.0])
    assert chances(np.array([6.0, 5.0, 2.0, 0.5]), by_chance).tolist() == [1 / 5, 2 / 5, 4 / 5, 1.0]


def test_one_text_sent_thirty_times_is_one_text() -> None:
    vectors, batch = planted(1_000, 200, 1)
    again = Batch.of(np.append(np.arange(1_000), np.full(30, 999)), np.append(batch.new, np.ones(30, bool)))
    assert (len(again.copies), again.copies[999]) == (1_000, 31)
    assert places(vectors, again) == []
    labels = np.append(np.arange(999) % 3, 3)
    assert (compare_shares(again, labels, 4, TIMES, 0).p > 0.05).all()


def test_a_text_that_an_old_document_has_is_not_new() -> None:
    vectors, batch = planted(1_000, 200, 8)
    group = np.append(np.arange(1_000), np.arange(992, 1_000))
    repeated = Batch.of(group, np.append(batch.new, np.zeros(8, bool)))
    assert repeated.fresh.sum() == 192
    assert len(places(vectors, batch)) == 1
    assert places(vectors, repeated) == []


def test_texts_are_exchanged_with_those_that_have_as_many_copies() -> None:
    group = np.repeat(np.arange(40), np.repeat([1, 3], 20))
    batch = Batch.of(group, np.random.default_rng(0).random(len(group)) < 0.3)
    for exchanged in batch.exchanged(20, 0):
        for rows in (slice(0, 20), slice(20, 40)):
            for part in ("new", "old", "fresh"):
                assert getattr(exchanged, part)[rows].sum() == getattr(batch, part)[rows].sum()


def test_the_order_of_the_documents_changes_no_place() -> None:
    vectors, batch = planted(1_000, 200, 10)
    order = np.random.default_rng(5).permutation(1_000)
    [first] = places(vectors, batch)
    [second] = places(vectors[order], Batch.of(np.arange(1_000), batch.new[order]))
    assert order[second.rows].tolist() != second.rows.tolist()
    assert sorted(order[second.rows].tolist()) == first.rows.tolist()
    assert (first.old, first.near, first.scale) == (second.old, second.near, second.scale)


def test_the_same_seed_gives_the_same_result() -> None:
    vectors, batch = planted(500, 100, 6)
    one, two = (find_places(batch, around(vectors), 0.2, 49, 3) for _ in range(2))
    assert [(place.rows.tolist(), place.p) for place in one] == [(place.rows.tolist(), place.p) for place in two]


def test_a_group_that_grew_and_one_that_shrank_are_told_from_the_others() -> None:
    labels = np.repeat([0, 1, 2, 3], 500)
    new = np.zeros(2_000, bool)
    for group, count in enumerate((100, 100, 160, 40)):
        new[500 * group : 500 * group + count] = True
    found = compare_shares(Batch.of(np.arange(2_000), new), labels, 4, TIMES, 0)
    assert found.new.tolist() == [0.25, 0.25, 0.4, 0.1]
    assert found.old.tolist() == [0.25, 0.25, 340 / 1600, 460 / 1600]
    assert (found.p <= 0.005).tolist() == [False, False, True, True]


@pytest.mark.parametrize("count", [2, 4, 6])
def test_few_texts_raise_no_alarm_and_no_error(count: int) -> None:
    vectors, labels = blobs(count, 2)
    batch = Batch.of(np.arange(count), np.arange(count) % 2 == 0)
    assert places(vectors, batch) == []
    assert (compare_shares(batch, labels, 2, TIMES, 0).p > 0.05).all()
