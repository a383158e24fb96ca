"""What a long piece of work tells about itself while it runs."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a stage has come; `total` is None where the end is not known."""

    stage: str
    done: int
    total: int | None
    unit: str


Notify = Callable[[Progress | str], None]
"""Receives progress, and sentences that the user should read."""


def silent(_: Progress | str) -> None:
    """Tell nobody."""
