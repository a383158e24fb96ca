"""Progress on stderr: a bar on a terminal, a plain line now and then elsewhere."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ...indexer.progress import Notify, Progress
from .output import per_second, say
from .progress_file import ProgressFile

PLAIN_SECONDS = 10.0
LEAST_SECONDS = 1.0
"""What a stage must have run before its pace is told."""


@contextmanager
def progress(quiet: bool = False) -> Iterator[Notify]:
    """Show progress and sentences while the block runs; sentences alone when `quiet`.

    Where the variable SONDE_PROGRESS names a file, all of it goes there instead: the web UI shows it.
    """
    if os.environ.get("SONDE_PROGRESS"):
        yield ProgressFile(Path(os.environ["SONDE_PROGRESS"]))
        return
    if quiet or not sys.stderr.isatty():
        yield _Plain(quiet)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[unit]}{task.fields[pace]}"),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        tasks: dict[str, int] = {}
        paces = Paces()

        def show(event: Progress | str) -> None:
            if isinstance(event, str):
                bar.console.print(event, markup=False, highlight=False)
                return
            pace = paces(event)
            if event.stage not in tasks:
                tasks[event.stage] = bar.add_task(event.stage, unit=event.unit, pace=pace)
            known = tasks[event.stage]
            bar.update(known, completed=event.done, total=event.total, unit=event.unit, pace=pace)  # type: ignore[arg-type]

        yield show


class Paces:
    """How fast each stage is, and how long it still takes, in words."""

    def __init__(self) -> None:
        self._first: dict[str, tuple[float, int]] = {}

    def __call__(self, event: Progress) -> str:
        """Return ", 120/s, 40 s left", or "" while that cannot be told and when the stage has ended."""
        now = time.monotonic()
        began, before = self._first.setdefault(event.stage, (now, event.done))
        if now - began < LEAST_SECONDS or event.done <= before or _ended(event):
            return ""
        rate = (event.done - before) / (now - began)
        left = f", {max(1, round((event.total - event.done) / rate)):,} s left" if event.total else ""
        return f", {per_second(rate)}/s{left}"


def _ended(event: Progress) -> bool:
    return event.total is not None and event.done >= event.total


class _Plain:
    """Plain lines, the first after some seconds and then at the same distance."""

    def __init__(self, quiet: bool) -> None:
        self.quiet = quiet
        self.last = time.monotonic()
        self.paces = Paces()

    def __call__(self, event: Progress | str) -> None:
        if isinstance(event, str):
            say(event)
            return
        now, pace = time.monotonic(), self.paces(event)
        if not self.quiet and now - self.last >= PLAIN_SECONDS:
            self.last = now
            of = f" of {event.total:,}" if event.total else ""
            say(f"{event.stage}: {event.done:,}{of} {event.unit}{pace}")
