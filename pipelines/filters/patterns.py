"""LIKE patterns, rewritten for what SQLite offers."""

from collections.abc import Iterator
from enum import Enum

from ...indexer.errors import UsageError
from .fragment import shown

LONGEST_PATTERN = 1_000
ESCAPE = "\\"


class Wildcard(Enum):
    """The two wildcards of LIKE."""

    ANY = "%"
    ONE = "_"


def glob(pattern: str, escape: str | None) -> str:
    """Return the GLOB pattern that matches as LIKE does in standard SQL: with regard to case."""
    signs = {Wildcard.ANY: "*", Wildcard.ONE: "?", "*": "[*]", "?": "[?]", "[": "[[]"}
    return "".join(signs.get(part, str(part)) for part in _parts(pattern, escape))


def like(pattern: str, escape: str | None) -> str:
    """Return the pattern for SQLite's LIKE, which ignores the case of ASCII letters, with `ESCAPE` as its escape."""
    parts = _parts(pattern, escape)
    return "".join(
        part.value if isinstance(part, Wildcard) else ESCAPE + part if part in "%_\\" else part for part in parts
    )


def _parts(pattern: str, escape: str | None) -> Iterator[str | Wildcard]:
    if len(pattern) > LONGEST_PATTERN:
        raise UsageError(f"a LIKE pattern has {len(pattern):,} characters; at most {LONGEST_PATTERN:,} are possible")
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            following = next(characters, None)
            if following is None:
                raise UsageError(f"the LIKE pattern {shown(pattern)} ends with its escape character {escape!r}")
            yield following
        else:
            yield Wildcard(character) if character in ("%", "_") else character
