"""What a stopped `sonde` command leaves, and whether the same command continues from there."""

from collections.abc import Sequence
from itertools import pairwise

GO_ON = ("index", "demo", "train")
JUDGES = ("nli", "reranker", "ensemble")
SERVERS = ("serve", "mcp", "ui")
LEFT = {"repair": "what was repaired stays, and the same command repairs the rest"}


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
