"""Which of many like cases, and which long tests, `make test` leaves out; `make soak` runs all of them."""

import os
from collections.abc import Sequence
from typing import TypeVar

import pytest

T = TypeVar("T")
ALL = os.environ.get("SONDE_CASES") == "all"


def thinned(cases: Sequence[T], every: int = 4) -> Sequence[T]:
    """Return each `every`-th case, or all of them if `SONDE_CASES` is "all"."""
    return cases if ALL else cases[::every]


def soak(held_by: str) -> pytest.MarkDecorator:
    """Skip a test of many seconds unless `SONDE_CASES` is "all"; say which cheaper test holds most of its property."""
    return pytest.mark.skipif(not ALL, reason=f"runs in `make soak`; every run has {held_by}")
