"""The name of a new run: the next number where a run has the name, so that nothing is replaced unasked."""

from itertools import count
from typing import TYPE_CHECKING

from .output import say

if TYPE_CHECKING:
    from ..api import Collection


def free_name(opened: "Collection", kind: str, name: str, replace: bool) -> str:
    """Return the name of a new run and say so if it is not the given one.

    Args:
        opened: The collection.
        kind: The kind of run.
        name: The name that was asked for.
        replace: Whether a run of this name is to be replaced. An unfinished run always is.
    """
    taken = {run.name for run in opened.uncounted_runs(kind) if run.complete}
    if replace or name not in taken:
        return name
    free = next(f"{name}-{number}" for number in count(2) if f"{name}-{number}" not in taken)
    say(f"there is a {kind} run {name!r} already, which is kept: the new run is {free!r} (--replace replaces a run)")
    return free
