"""How much time a second stage may take, and in which portions it works through its candidates."""

import re
from collections.abc import Callable, Iterator
from time import perf_counter

from ...indexer.errors import UsageError

FIRST = 4
"""Documents of the first portion, which always runs: it measures how long one takes."""

MOST = 64
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0}
_BUDGET = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|min|m)\s*")

Clock = Callable[[], float]


def parse_budget(text: str) -> float:
    """Return the seconds that "300ms", "1.5s" or "2min" stands for.

    Raises:
        UsageError: It is no such time, or no time at all.
    """
    found = _BUDGET.fullmatch(text)
    seconds = float(found[1]) * _UNITS[found[2]] if found else 0.0
    if not seconds:
        raise UsageError(f"the budget {text!r} is no time: give it as 300ms, 1.5s or 2min")
    return seconds


def portions(count: int, seconds: float | None, clock: Clock = perf_counter) -> Iterator[slice]:
    """Yield slices of `count` candidates, best first: all of them at once, or as many as the time allows.

    With a budget the first portion runs in any case; a later one is as large as the time left allows at the pace
    measured so far, and none is begun once not even one document would fit.
    """
    if seconds is None:
        yield slice(0, count)
        return
    began, done = clock(), min(FIRST, count)
    yield slice(0, done)
    while done < count:
        spent = clock() - began
        size = count if spent <= 0 else int((seconds - spent) / (spent / done))
        if spent >= seconds or size < 1:
            return
        size = min(size, MOST, count - done)
        yield slice(done, done + size)
        done += size
