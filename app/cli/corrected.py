"""The command line that was probably meant: the collection first, a query of several words in quotes."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from ...indexer.errors import SondeError

QUERIES = ("search", "ask")
"""Commands with a collection and a text."""


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
    later = [
        place for place in range(first + 1, len(words)) if _is_value(words, place) and _is_collection(words[place])
    ]
    if not later:
        return None
    turned = list(words)
    turned[first], turned[later[0]] = words[later[0]], words[first]
    return f"{given!r} is not a collection; put the collection first: sonde {shlex.join(turned)}"


def in_quotes(words: Sequence[str], message: str) -> str | None:
    """Return what to say if a query or question has several words without quotes; None if it is something else.

    Args:
        words: What follows `sonde`.
        message: What Click says.
    """
    if not message.startswith("Got unexpected extra argument") or len(words) < 4 or words[0] not in QUERIES:
        return None
    end = next((place for place, word in enumerate(words) if word.startswith("-")), len(words))
    if end < 4:
        return None
    query = " ".join(words[2:end])
    return f"put the words in quotes: sonde {shlex.join([*words[:2], query, *words[end:]])}"


def _is_value(words: Sequence[str], place: int) -> bool:
    return not words[place].startswith("-") and not words[place - 1].startswith("--")


def _is_collection(word: str) -> bool:
    from ..api.functions import lasting_file

    try:
        return lasting_file(Path(word)) is not None
    except (OSError, ValueError):  # a long query is no path
        return False
