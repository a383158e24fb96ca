"""One job as its folder shows it: what was asked, how far it is, how it ended."""

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import psutil

from ....indexer.errors import Message
from ....indexer.progress import NOTE, Progress
from ..words import in_pages, without_folders, without_paths

TAIL = 65_536
"""Bytes from the end of a file that surely hold the newest progress."""


@dataclass(frozen=True, slots=True)
class JobPace:
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


def pace_of(events: list[Any]) -> JobPace | None:
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
    return JobPace(done / seconds, None if last.total is None else max(0, last.total - last.done) * seconds / done)


def _written(path: Path) -> float:
    """Return when a file was last written, 0 for none."""
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _total(value: Any) -> int | None:
    return None if value is None else int(value)


Chain = tuple[tuple[str, tuple[str, ...]], ...]
"""Jobs that follow one another: titles and commands."""
State = Literal["running", "done", "failed", "cancelled", "killed"]
STOPPED = 130
ERROR = "error.json"
"""The file in a job's folder that holds the error with which its command ended: code, field, value and message."""
WRITTEN = ("events.jsonl", "stdout.jsonl", "stderr.txt", "cancelled")
STARTING = 10.0
"""Seconds within which a job that has no process yet counts as being started."""


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
        then: Jobs that begin, one after another, once it has succeeded: their titles and commands.
        background: Whether it began like that: nobody waits for it, so another job may start beside it.
    """

    folder: Path
    title: str
    collection: str
    command: tuple[str, ...]
    started: float
    pid: int = 0
    then: Chain = ()
    background: bool = False

    @classmethod
    def read(cls, folder: Path) -> "Job":
        """Read the job that a folder holds.

        Raises:
            OSError, ValueError, KeyError, TypeError: It holds none.
        """
        kept: Mapping[str, Any] = json.loads((folder / "job.json").read_text("utf-8"))
        command = tuple(str(word) for word in kept["command"])
        pid, started = int(kept["pid"]), float(kept["started"])
        then = tuple((str(title), tuple(map(str, words))) for title, words in kept.get("then", ()))
        background = bool(kept.get("background"))
        return cls(folder, str(kept["title"]), str(kept["collection"]), command, started, pid, then, background)

    @property
    def id(self) -> str:
        """The job's id, which sorts by time."""
        return self.folder.name

    @property
    def named(self) -> str:
        """Its title with the name of the collection that it works on."""
        named = self.title.endswith(f" {self.collection}")
        return self.title if named else f"{self.collection} · {self.title}"

    @cached_property
    def state(self) -> State:
        """Its state; "killed" is a process that ended without a word."""
        alive = self.alive()  # asked first: a process that ends in between has left its exit code
        try:
            code = int((self.folder / "exit").read_text("utf-8"))
        except (OSError, ValueError):
            if alive or (not self.pid and time.time() - self.started < STARTING):
                return "running"
            return "cancelled" if self.asked_to_stop else "killed"
        if code == STOPPED:
            return "cancelled"
        return "failed" if code else "done"

    @property
    def asked_to_stop(self) -> bool:
        """Whether somebody cancelled it, wherever it was then."""
        return (self.folder / "cancelled").exists()

    @property
    def is_result(self) -> bool:
        """Whether its output is what somebody wants to look at later: the figures of an evaluation."""
        return self.command[:1] == ("evaluate",)

    @cached_property
    def seconds(self) -> float:
        """How long it has run, or ran; for a killed one, until the last that it wrote."""
        end = time.time() if self.state == "running" else max(map(_written, self._signs), default=self.started)
        return max(0.0, end - self.started)

    @property
    def _signs(self) -> list[Path]:
        """Return the files whose time says when it ended; a killed job has left no exit code."""
        left = self.folder / "exit"
        return [left] if left.exists() else [self.folder / name for name in WRITTEN]

    @cached_property
    def events(self) -> list[Progress | str]:
        """All progress and messages so far."""
        told = (
            self._in_pages(event) if isinstance(event, str) else progress_of(event)
            for event in json_lines(self.folder / "events.jsonl")
        )
        return [event for event in told if event is not None]

    @property
    def progress(self) -> Progress | None:
        """The newest progress."""
        return next((found for event in reversed(self._newest) if (found := progress_of(event))), None)

    @property
    def pace(self) -> JobPace | None:
        """How fast it is, and how long it still takes; None while that cannot be told."""
        return pace_of(self._newest)

    @property
    def said(self) -> list[str]:
        """The sentences among its events."""
        return [event for event in self.events if isinstance(event, str)]

    @cached_property
    def notes(self) -> list[str]:
        """What it noted, each once: a column that became text, documents that are not in a run yet."""
        said = (*self.said, *map(self._in_pages, self._stderr))
        return list(dict.fromkeys(each.removeprefix(NOTE) for each in said if each.startswith(NOTE)))

    @cached_property
    def output(self) -> list[Any]:
        """What it printed with `--json`, a value a line."""
        return list(json_lines(self.folder / "stdout.jsonl"))

    @cached_property
    def error(self) -> str:
        """Why it failed, in one line and in the words of the pages, without the program's name before it."""
        for kept in json_lines(self.folder / ERROR):
            if isinstance(kept, dict) and isinstance(kept.get("message"), str):
                return self._in_pages(kept["message"])
        return self._in_pages(self._last_line)

    def _in_pages(self, sentence: str) -> str:
        """Return a sentence of the command in the words of the pages, without paths: anybody may read it.

        The server's own folders go first, because a file's name tells where its path begins and ends only by luck.
        """
        return without_paths(without_folders(in_pages(Message(sentence)), self.folder.parent))

    @property
    def _stderr(self) -> list[str]:
        try:
            return (self.folder / "stderr.txt").read_text("utf-8", errors="replace").strip().splitlines()
        except OSError:
            return []

    @property
    def _last_line(self) -> str:
        lines = self._stderr
        return lines[-1].removeprefix("sonde: ") if lines else "its process ended without a message"

    def alive(self) -> bool:
        """Return whether its process runs; a number taken over by another process does not count."""
        if self.pid <= 0:
            return False
        try:
            process = psutil.Process(self.pid)
            words = "\0".join(process.cmdline())
            # Linux has no command line for a moment while a program starts.
            own = self.id in words if words else time.time() - self.started < STARTING
            return own and process.status() != psutil.STATUS_ZOMBIE
        except psutil.Error:
            return False

    @cached_property
    def _newest(self) -> list[Any]:
        return list(json_lines(self.folder / "events.jsonl", TAIL))
