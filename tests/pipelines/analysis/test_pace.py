"""Steps are done in one thread or in all of them, whichever is faster just now."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from sonde.pipelines.analysis.umap import AGAIN, ThreadPace


class Machine:
    """A clock that steps move on, by a time that depends on the number of threads."""

    def __init__(self, seconds: dict[int, float]) -> None:
        self.seconds, self.now, self.taken = seconds, 0.0, Counter[int]()

    def step(self, threads: int) -> None:
        self.now += self.seconds[threads]
        self.taken[threads] += 1


def paced(machine: Machine, pace: ThreadPace, steps: int) -> Counter[int]:
    """How often each number of threads was taken in so many more steps."""
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
