"""The command line that was probably meant: the collection first, a query of several words in quotes."""

import re
import shlex
from collections.abc import Sequence
from difflib import get_close_matches
from itertools import pairwise
from pathlib import Path
from typing import Any

from ...indexer.errors import SondeError
from ...indexer.wording import on_one_line
from .groups import DefaultGroup, no_command

QUERIES = ("search", "ask")
"""Commands with a collection and a text."""
SEVERAL = ("serve", "mcp")
"""Commands with several collections, whose order does not matter."""
FILTER = "--where"
LONGEST_WORD = 500
"""Characters of an argument that a sentence shows, at most: long paths whole, but no text of a whole file."""
ELSEWHERE = {
    **dict.fromkeys(("--limit", "--top", "--top-k", "--num", "--number", "--n", "-n"), "-k"),
    **dict.fromkeys(("--output", "--out", "-o"), "--to"),
    "--filter": "--where",
}
"""Options that other programs have, with those of `sonde`."""
_NO_NUMBER = re.compile(r"Invalid value for '(?P<option>[^']+)'.*?: (?P<value>'.*') is not a valid (?P<kind>int|float)")
_COMPARISON = re.compile("[<>=!]+|i?like", re.IGNORECASE)
_OPERATOR = re.compile(r"[<>=!]+\S*|and|or|not|in|is|i?like|between", re.IGNORECASE)


def swapped(words: Sequence[str], error: SondeError) -> str | None:
    """Return what to say if another argument is the collection that is missing; None if there is no such one.

    A missing one that is called as collections are was meant as such.

    Args:
        words: What follows `sonde`.
        error: Why the command failed.
    """
    given = str(error.value)
    if error.code != "no-collection" or given not in words or words[0] in SEVERAL or given.endswith(".sonde"):
        return None
    first = list(words).index(given)
    later = [
        place for place in range(first + 1, len(words)) if _is_value(words, place) and _is_collection(words[place])
    ]
    if not later:
        return None
    turned = list(words)
    turned[first], turned[later[0]] = words[later[0]], words[first]
    return f"{shortened(given)!r} is not a collection; put the collection first: {_command(turned)}"


def shortened(word: str) -> str:
    """Return an argument as a sentence shows it: cut after `LONGEST_WORD` characters."""
    return word if len(word) <= LONGEST_WORD else on_one_line(word, LONGEST_WORD)


def _command(words: Sequence[str]) -> str:
    return f"sonde {shlex.join(map(shortened, words))}"


def corrected(words: Sequence[str], message: str, context: Any) -> str | None:
    """Return what to say of an option, a number or arguments too many, if it is clear what was meant; None otherwise.

    Args:
        words: What follows `sonde`.
        message: What Click says.
        context: Click's context of the command, if it has one.
    """
    if said := _NO_NUMBER.match(message):
        return f"{said['option']} is {said['value']}: write {_number_like(said['value'], said['kind'])}"
    if message.startswith("No such option"):
        return _other_option(words, context) or _command_behind(words, context)
    if not message.startswith("Got unexpected extra argument"):
        return None
    said = _filter_in_quotes(words) or _query_in_quotes(words) or _command_behind(words, context)
    return said or _no_command(words, context)


def _number_like(value: str, kind: str) -> str:
    if kind == "int":
        return "a whole number"
    with_point = value.strip("'").replace(",", ".")
    return with_point if re.fullmatch(r"-?\d+\.\d+", with_point) else "a number such as 0.5"


def _other_option(words: Sequence[str], context: Any) -> str | None:
    known = {option for each in context.command.params for option in each.opts} if context else set()
    for given in (word.partition("=")[0] for word in words):
        if given not in known and (meant := ELSEWHERE.get(given)) in known:
            return f"there is no option {given} of `{context.command_path}`: did you mean {meant}?"
    return None


def _filter_in_quotes(words: Sequence[str]) -> str | None:
    place = words.index(FILTER) + 1 if FILTER in words else len(words)
    end = _next_option(words, place)
    if not any(map(_OPERATOR.fullmatch, words[place + 1 : place + 2])):
        return None
    parts = words[place:end]
    values = [_as_value(word) if _COMPARISON.fullmatch(before) else word for before, word in pairwise(["", *parts])]
    meant = shortened(" ".join(values))
    quoted = shlex.quote(meant) if set(meant) & set('"$`\\!') else f'"{meant}"'
    said = [_command(words[:place]), quoted, shlex.join(map(shortened, words[end:]))]
    return f"put the filter in quotes: {' '.join(said).strip()}"


def _as_value(word: str) -> str:
    """Return a number as it is, and text in single quotes, which the shell has removed."""
    return word if re.fullmatch(r"[-+.\d]+|'.*'|true|false|null", word, re.IGNORECASE) else f"'{word}'"


def _query_in_quotes(words: Sequence[str]) -> str | None:
    end = _next_option(words, 0)
    if end < 4 or words[0] not in QUERIES:
        return None
    query = " ".join(words[2:end])
    return f"put the words in quotes: {_command([*words[:2], query, *words[end:]])}"


def _no_command(words: Sequence[str], context: Any) -> str | None:
    group = context.parent.command if context and context.parent else None
    if not isinstance(group, DefaultGroup) or words[1] in group.commands or _is_collection(words[1]):
        return None
    return no_command(context.parent.command_path, shortened(words[1]), group.commands)


def _command_behind(words: Sequence[str], context: Any) -> str | None:
    """Return what to say of a misspelt command of a group that follows its collection."""
    group = context.parent.command if context and context.parent else None
    if not isinstance(group, DefaultGroup) or len(words) < 3 or not _is_collection(words[1]):
        return None
    near = get_close_matches(words[2], group.commands, 1)
    turned = _command([words[0], *near, words[1], *words[3:]])
    return f"{no_command(context.parent.command_path, words[2], group.commands)} {turned}" if near else None


def _next_option(words: Sequence[str], place: int) -> int:
    return next((at for at in range(place, len(words)) if re.match("-[^0-9]", words[at])), len(words))


def _is_value(words: Sequence[str], place: int) -> bool:
    return not words[place].startswith("-") and not words[place - 1].startswith("--")


def _is_collection(word: str) -> bool:
    from ..api.functions import lasting_file

    try:
        return lasting_file(Path(word)) is not None
    except (OSError, ValueError):  # a long query is no path
        return False
