"""The name of a new run: the next number where a run has the name, so that nothing is replaced without asking."""

from itertools import count
from typing import TYPE_CHECKING

from .output import say

if TYPE_CHECKING:
    from ..api import Collection


def free_name(opened: "Collection", kind: str, name: str, replace: bool) -> str:
    """Return the name of a new run: the given one or, if a run has it, the next one with a number.

    Args:
        opened: The collection.
        kind: The kind of run.
        name: The name that was asked for.
        replace: Whether a run of this name is to be replaced. An unfinished run always is.
    """
    taken = {run.name for run in opened.uncounted_runs(kind) if run.complete}
    if replace or name not in taken:
        return name
    return next(f"{name}-{number}" for number in count(2) if f"{name}-{number}" not in taken)


def say_name(kind: str, asked: str, given: str) -> None:
    """Say that a run has another name than the one that was asked for."""
    if given != asked:
        say(
            f"a {kind} run {asked!r} already exists, so the new run is named {given!r} (--replace replaces the old run)"
        )
