"""One job as its folder shows it: what was asked, how far it is, how it ended."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import psutil

from ....indexer.progress import Progress

State = Literal["running", "done", "failed", "cancelled", "killed"]
STOPPED = 130


@dataclass(frozen=True)
class Job:
    """A command of `sonde` that runs, or ran, in a process of its own. What it shows is read once, when first asked.

    Attributes:
        folder: Where it keeps what it says; its name is the job's id.
        title: What it does, for people.
        collection: The name of the collection that it works on.
        command: The arguments of `sonde`.
        started: Seconds since the epoch.
        pid: Of its process.
        born: When that process was made, which tells it from a later one with the same number.
    """

    folder: Path
    title: str
    collection: str
    command: tuple[str, ...]
    started: float
    pid: int = 0
    born: float = 0.0

    @classmethod
    def read(cls, folder: Path) -> "Job":
        """Read the job that a folder holds.

        Raises:
            OSError, ValueError, KeyError, TypeError: It holds none.
        """
        kept = json.loads((folder / "job.json").read_text("utf-8"))
        return cls(folder, **{**kept, "command": tuple(kept["command"])})

    @property
    def id(self) -> str:
        """The job's id, which sorts by time."""
        return self.folder.name

    @cached_property
    def state(self) -> State:
        """How it stands; "killed" is a process that ended without a word."""
        alive = self.alive()  # asked first: a process that ends in between has left its exit code
        try:
            code = int((self.folder / "exit").read_text("utf-8"))
        except (OSError, ValueError):
            return "running" if alive else "killed"
        if code == STOPPED:
            return "cancelled"
        return "failed" if code else "done"

    @cached_property
    def events(self) -> list[Progress | str]:
        """All that it told so far: progress, and sentences."""
        return [
            Progress(**event) if isinstance(event, dict) else event for event in _lines(self.folder / "events.jsonl")
        ]

    @property
    def progress(self) -> Progress | None:
        """The newest progress."""
        return next((event for event in reversed(self.events) if isinstance(event, Progress)), None)

    @property
    def said(self) -> list[str]:
        """The sentences among its events."""
        return [event for event in self.events if isinstance(event, str)]

    @cached_property
    def output(self) -> list[Any]:
        """What it printed with `--json`, a value a line."""
        return list(_lines(self.folder / "stdout.jsonl"))

    @cached_property
    def error(self) -> str:
        """Why it failed, in one line, without the program's name before it."""
        try:
            lines = (self.folder / "stderr.txt").read_text("utf-8", errors="replace").strip().splitlines()
        except OSError:
            lines = []
        return lines[-1].removeprefix("sonde: ") if lines else "its process ended without a message"

    def alive(self) -> bool:
        """Return whether its process runs; a number taken over by another process does not count."""
        try:
            process = psutil.Process(self.pid)
            return process.status() != psutil.STATUS_ZOMBIE and abs(process.create_time() - self.born) < 1
        except psutil.Error:
            return False


def _lines(path: Path) -> Iterator[Any]:
    """Yield the JSON lines of a file that may still be written: its last line may be half a line."""
    try:
        text = path.read_text("utf-8", errors="replace")
    except OSError:
        return
    for line in text.splitlines():
        try:
            yield json.loads(line)
        except ValueError:
            continue
