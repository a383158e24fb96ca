"""How many threads a step that is done again and again goes fastest with, just now.

All of them, on a machine that has nothing else to do. Beside other work, and in a container that may use fewer cores
than it sees, threads wait at the end of each step for one that is not running: a step of half a millisecond was
sixteen times as slow in two threads as in one (benchmarks/README.md).
"""

from collections.abc import Callable
from time import perf_counter

AGAIN = 50
"""After so many steps the other way is tried again."""
WEIGHT = 0.3
"""Of the last step in the time that one is expected to take."""


class Pace:
    """Tells for each step how many threads to take, one or all, and learns from the seconds that it took."""

    def __init__(self, threads: int, clock: Callable[[], float] = perf_counter) -> None:
        self.threads = threads
        self.clock = clock
        self.seconds: dict[int, float] = {}
        self.steps = 0

    def run(self, step: Callable[[int], None]) -> None:
        """Do a step with the number of threads that it is given."""
        threads = self._next()
        began = self.clock()
        step(threads)
        taken = self.clock() - began
        before = self.seconds.get(threads, taken)
        self.seconds[threads] = taken if self._trial() else before + WEIGHT * (taken - before)
        self.steps += 1

    def _next(self) -> int:
        untried = [threads for threads in (self.threads, 1) if threads not in self.seconds]
        if untried:
            return untried[0]
        best = min(self.seconds, key=self.seconds.__getitem__)
        return next((one for one in self.seconds if one != best), best) if self._trial() else best

    def _trial(self) -> bool:
        return self.steps % AGAIN == 0
