"""What a job told so far, read from a file that it may still be writing."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ....indexer.progress import Progress

TAIL = 65_536
"""Bytes from the end of a file that surely hold the newest progress."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast a stage advances: units a second, and seconds left where the end is known."""

    rate: float
    left: float | None


def json_lines(path: Path, tail: int | None = None) -> Iterator[Any]:
    """Yield the JSON lines of a file, or of its last `tail` bytes; what is none, such as half a line, is left out."""
    try:
        with path.open("rb") as stream:
            if tail is not None:
                stream.seek(max(0, path.stat().st_size - tail))
            text = stream.read().decode("utf-8", errors="replace")
    except OSError:
        return
    for line in text.split("\n"):
        try:
            yield json.loads(line)
        except (ValueError, RecursionError):
            continue


def progress_of(event: Any) -> Progress | None:
    """Return the progress that a line holds, None for anything else."""
    try:
        return Progress(str(event["stage"]), int(event["done"]), _total(event["total"]), str(event["unit"]))
    except (KeyError, TypeError, ValueError):
        return None


def pace_of(events: list[Any]) -> Pace | None:
    """Return the pace of the newest stage, from the first and the last of its events that are given.

    None where they are too few, or too near to each other, to tell, and where the stage is at its end.
    """
    known = [(event, progress_of(event)) for event in events if isinstance(event, dict) and "at" in event]
    stage = [(event["at"], progress) for event, progress in known if progress]
    if len(stage) < 2:
        return None
    (_, last), newest = stage[-1], stage[-1][1].stage
    same = [(at, progress.done) for at, progress in stage if progress.stage == newest]
    seconds, done = same[-1][0] - same[0][0], same[-1][1] - same[0][1]
    if seconds < 1 or done <= 0 or (last.total is not None and last.done >= last.total):
        return None
    return Pace(done / seconds, None if last.total is None else max(0, last.total - last.done) * seconds / done)


def _total(value: Any) -> int | None:
    return None if value is None else int(value)
