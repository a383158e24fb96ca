"""What the command line prints: results on stdout, everything else on stderr."""

import json
import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

SNIPPET = 240
GO_ON = ("index", "demo", "train")
JUDGES = ("nli", "reranker", "ensemble")
SERVERS = ("serve", "mcp", "ui")
LEFT = {"repair": "what was repaired stays, and the same command repairs the rest"}


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


def per_second(rate: float) -> str:
    """Return a rate as a number that is never a bare 0: "1,204", "0.3"."""
    return f"{rate:,.0f}" if rate >= 10 else f"{rate:.2g}"


def goes_on(words: Sequence[str]) -> bool:
    """Return whether a command that was stopped, given again, goes on from where it was; `words` follow `sonde`."""
    command = next((word for word in words if not word.startswith("-")), "")
    return command in GO_ON or (command == "label" and _engine(words) in JUDGES and "--text" not in words)


def after_stop(words: Sequence[str]) -> str:
    """Return what is left by a command that Ctrl-C stopped, and what to do; `words` follow `sonde`."""
    command = next((word for word in words if not word.startswith("-")), "")
    if command in SERVERS:
        return "stopped"
    if not goes_on(words):
        return f"stopped; {LEFT.get(command, 'nothing was stored or changed')}"
    kept = {"train": "the last checkpoint stays", "label": "the judgements so far stay"}
    return f"stopped; {kept.get(command, 'what was committed stays')}, and the same command goes on from there"


def _engine(words: Sequence[str]) -> str:
    given = [after for word, after in pairwise(words) if word == "--engine"]
    return [*given, *(word.partition("=")[2] for word in words if word.startswith("--engine=")), ""][0]
