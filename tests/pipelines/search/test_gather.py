"""Questions to replicas that answer, hang or are dead: hedged, passed on at once, given up in time."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from replicas import FakeReplica

from sonde.indexer.store.elsewhere import Question
from sonde.pipelines.search import gather
from sonde.pipelines.search.gather import Gatherer

LONG = 60.0
"""Seconds that a test never waits: what it expects must come without this time passing."""


def question(shard: int = 0, version: str = "000001-a") -> Question:
    return Question(shard, version, np.zeros((1, 2), np.float32), 1)


@pytest.fixture
def unhedged(monkeypatch: pytest.MonkeyPatch) -> None:
    """No question is asked twice unless a replica fails."""
    monkeypatch.setattr(gather, "UNKNOWN", LONG)
    monkeypatch.setattr(gather, "MOST", LONG)


def timed(gatherer: Gatherer, *questions: Question) -> tuple[list[bool], float]:
    """Whether each question was answered, and the seconds that passed."""
    began = time.monotonic()
    answers = gatherer.ask(questions)
    return [answer is not None for answer in answers], time.monotonic() - began


def test_a_question_that_is_not_answered_in_time_goes_to_another_replica_too(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(gather, "UNKNOWN", 0.05)
    answering, hanging = FakeReplica(), FakeReplica(how="hangs")
    gatherer = Gatherer({0: [hanging, answering]}, LONG)
    for _ in range(3):
        answered, seconds = timed(gatherer, question())
        assert answered == [True]
        assert seconds < LONG / 2
    assert (len(hanging.asked), len(answering.asked)) == (1, 3), "it still has a question, so the other is preferred"


@pytest.mark.parametrize("how", ["dead", "breaks"])
def test_a_failed_replica_is_replaced_at_once(unhedged: None, how: str):
    for place in (0, 1):
        both = [FakeReplica(), FakeReplica()]
        both[place].how = how
        gatherer = Gatherer({0: both}, LONG)
        for _ in range(4):
            answered, seconds = timed(gatherer, question())
            assert answered == [True]
            assert seconds < LONG / 2
        assert len(both[place].asked) == 1, "it is shunned for a while"
        assert len(both[1 - place].asked) == 4


def test_a_shard_whose_replicas_are_dead_is_given_up_at_once(unhedged: None):
    gatherer = Gatherer({0: [FakeReplica(how="dead"), FakeReplica(how="breaks")], 1: [FakeReplica()]}, LONG)
    answered, seconds = timed(gatherer, question(0), question(1), question(7))
    assert answered == [False, True, False]
    assert seconds < LONG / 2


def test_a_shard_that_hangs_is_given_up_at_the_deadline_and_the_next_time_sooner(
    unhedged: None, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(gather, "PROBE", 0.05)
    monkeypatch.setattr(gather, "SHUN", LONG)
    hanging = FakeReplica(how="hangs")
    gatherer = Gatherer({0: [hanging], 1: [FakeReplica()]}, deadline=1.0)
    answered, seconds = timed(gatherer, question(0), question(1))
    assert answered == [False, True]
    assert seconds >= 1.0 * gather.OPENING, "a version that was never searched may have to be loaded first"
    answered, seconds = timed(gatherer, question(0))
    assert answered == [False]
    assert seconds < 1.0
    hanging.release()  # answers that come too late show that it lives
    assert gatherer.patience(question(0), gatherer._members[0], time.monotonic()) == 1.0
    assert timed(gatherer, question(0))[0] == [True]


def test_the_replica_with_fewer_waiting_questions_is_asked(unhedged: None):
    both = [FakeReplica(), FakeReplica()]
    gatherer = Gatherer({0: both}, LONG)
    for _ in range(10):
        gatherer.ask([question()])
    assert [len(each.asked) for each in both] == [5, 5]
    gatherer._members[0][0].waiting = 3
    for _ in range(5):
        gatherer.ask([question()])
    assert [len(each.asked) for each in both] == [5, 10]


def test_the_delay_is_that_of_most_recent_answers_within_bounds():
    gatherer = Gatherer({0: [FakeReplica()]}, LONG)
    assert gatherer.delay == gather.UNKNOWN
    gatherer._seconds.extend([0.1] * 95 + [5.0] * 5)
    assert gatherer.delay == pytest.approx(0.1, abs=0.3)
    gatherer._seconds.extend([1e-5] * gather.RECENT)
    assert gatherer.delay == gather.LEAST
    gatherer._seconds.extend([9.0] * gather.RECENT)
    assert gatherer.delay == gather.MOST


def test_how_many_replicas_live(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(gather, "PING", 0.05)
    some = {0: [FakeReplica(), FakeReplica(how="dead")], 1: [FakeReplica(how="hangs")]}
    assert Gatherer(some, LONG).alive() == {0: 1, 1: 0}


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.sampled_from(["answers", "dead", "breaks"]), min_size=1, max_size=4), max_size=5))
def test_a_shard_answers_exactly_if_one_of_its_replicas_lives(replicas: list[list[str]]):
    gatherer = Gatherer({place: [FakeReplica(how=how) for how in some] for place, some in enumerate(replicas)}, LONG)
    for _ in range(3):
        answered, _ = timed(gatherer, *(question(place) for place in range(len(replicas))))
        assert answered == ["answers" in some for some in replicas]


def test_a_replica_that_stays_dead_is_reported_once(unhedged: None, caplog: pytest.LogCaptureFixture):
    replica = FakeReplica(how="breaks")
    gatherer = Gatherer({0: [replica]}, LONG)
    for how in ("breaks", "breaks", "answers", "breaks"):
        replica.how = how
        gatherer.ask([question()])
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 2
    assert all(each.startswith("replica 0 of shard 00 does not answer: ") for each in said)


def test_a_lost_connection_is_not_reported_for_each_replica(unhedged: None, caplog: pytest.LogCaptureFixture):
    gatherer = Gatherer({0: [FakeReplica(how="lost"), FakeReplica(how="lost")]}, LONG)
    assert gatherer.ask([question()]) == [None]
    assert caplog.records == []
