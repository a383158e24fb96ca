"""Which of many like cases `make test` tries; `make soak` tries all of them."""

import os
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def thinned(cases: Sequence[T], every: int = 4) -> Sequence[T]:
    """Return each `every`-th case, or all of them if `SONDE_CASES` is "all"."""
    return cases if os.environ.get("SONDE_CASES") == "all" else cases[::every]
