"""A collection that was not given first: the command line in the right order."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from ...indexer.errors import SondeError


def swapped(words: Sequence[str], error: SondeError) -> str | None:
    """Return what to say if another argument is the collection that is missing; None if there is no such one.

    Args:
        words: What follows `sonde`.
        error: Why the command failed.
    """
    given = str(error.value)
    if error.code != "no-collection" or given not in words:
        return None
    first = list(words).index(given)
    later = [place for place in range(first + 1, len(words)) if _is_value(words, place) and _is_collection(words[place])]
    if not later:
        return None
    turned = list(words)
    turned[first], turned[later[0]] = words[later[0]], words[first]
    return f"{given!r} is not a collection: the collection comes first: sonde {shlex.join(turned)}"


def _is_value(words: Sequence[str], place: int) -> bool:
    return not words[place].startswith("-") and not words[place - 1].startswith("--")


def _is_collection(word: str) -> bool:
    try:
        return (Path(word) / "catalog.db").is_file()
    except (OSError, ValueError):  # a long query is no path
        return False
