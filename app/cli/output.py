"""What the command line prints: results on stdout, everything else on stderr."""

import json
import sys
from collections.abc import Mapping
from typing import Any

SNIPPET = 240


def print_json(value: Mapping[str, Any]) -> None:
    """Print one JSON line."""
    print(json.dumps(value, ensure_ascii=False, default=str))


def say(message: str) -> None:
    """Print a sentence on stderr."""
    print(message, file=sys.stderr)


def snippet(text: str, length: int = SNIPPET) -> str:
    """Return text as one line of printable characters, shortened at a word."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text[: length * 4]).split())
    return line if len(line) <= length else line[:length].rsplit(" ", 1)[0] + " …"


def size(count: float) -> str:
    """Return bytes in words: "3.2 MB"."""
    from ...indexer.build.estimate import size as in_words

    return in_words(count)
