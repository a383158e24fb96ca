"""What a stopped `sonde` command leaves, and whether the same command continues from there."""

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from types import FrameType

GO_ON = ("index", "demo", "train", "model", "late")
JUDGES = ("nli", "reranker", "ensemble")
SERVERS = ("serve", "mcp", "ui")
LEFT = {
    "repair": "what was repaired stays, and the same command repairs the rest",
    "compact": "what was compacted stays, and the same command compacts the rest",
}

INTERRUPTED, TERMINATED = 130, 143
"""Exit codes after Ctrl-C and after SIGTERM, as shells have them."""


@contextmanager
def terminable() -> Iterator[list[int]]:
    """Let SIGTERM stop a command as Ctrl-C does; yield the list of such signals that came.

    Only the main thread receives signals; in any other, nothing changes.
    """
    received: list[int] = []

    def interrupt(number: int, _: FrameType | None) -> None:
        received.append(number)
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield received
        return
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield received
    finally:
        signal.signal(signal.SIGTERM, before)


def goes_on(words: Sequence[str]) -> bool:
    """Return whether a command that was stopped, given again, goes on from where it was; `words` follow `sonde`."""
    command = next((word for word in words if not word.startswith("-")), "")
    return command in GO_ON or (command == "label" and _engine(words) in JUDGES and "--text" not in words)


def after_stop(words: Sequence[str]) -> str:
    """Return what is left by a command that Ctrl-C or SIGTERM stopped, and what to do; `words` follow `sonde`."""
    command = next((word for word in words if not word.startswith("-")), "")
    if command in SERVERS:
        return "stopped"
    if not goes_on(words):
        return f"stopped; {LEFT.get(command, 'nothing was stored or changed')}"
    kept = {"train": "the last checkpoint", "label": "the last judgement", "late": "the last batch"}
    return f"stopped; the same command continues after {kept.get(command, 'the last commit')}, if there was one"


def _engine(words: Sequence[str]) -> str:
    given = [after for word, after in pairwise(words) if word == "--engine"]
    return [*given, *(word.partition("=")[2] for word in words if word.startswith("--engine=")), ""][0]
