"""How long a writer waits while another one writes."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from ..progress import Notify, silent


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a writer waits while another process writes, in seconds from 0, and who is told about it."""

    seconds: float = 0.0
    notify: Notify = silent


NONE = Patience()
PATIENCE: ContextVar[Patience] = ContextVar("patience", default=NONE)
"""Default patience. The command line sets it; elsewhere, a busy collection fails at once."""


@contextmanager
def patience(wait: Patience) -> Iterator[None]:
    """Set the default patience until the context ends."""
    before = PATIENCE.set(wait)
    try:
        yield
    finally:
        PATIENCE.reset(before)
