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
USUAL = Patience(30.0)
"""How long a writer waits by default."""
AGAIN = Patience(600.0)
"""How long a run that made room for another writer waits for its own next turn."""
PATIENCE: ContextVar[Patience | None] = ContextVar("patience", default=None)


def asked() -> Patience:
    """Return how long writers in this context wait: as long as `patience` says, or the usual time."""
    return PATIENCE.get() or USUAL


@contextmanager
def patience(wait: Patience) -> Iterator[None]:
    """Set how long writers wait until the context ends."""
    before = PATIENCE.set(wait)
    try:
        yield
    finally:
        PATIENCE.reset(before)
