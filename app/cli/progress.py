"""Progress on stderr: a bar on a terminal, a plain line now and then elsewhere."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ...indexer.progress import Notify, Progress
from .output import say
from .progress_file import ProgressFile

PLAIN_SECONDS = 10.0


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
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[unit]} {task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        tasks: dict[str, int] = {}
        began = time.monotonic()

        def show(event: Progress | str) -> None:
            if isinstance(event, str):
                bar.console.print(event, markup=False, highlight=False)
                return
            rate = f"· {event.done / max(time.monotonic() - began, 1e-9):,.0f}/s"
            if event.stage not in tasks:
                tasks[event.stage] = bar.add_task(event.stage, unit=event.unit, rate=rate)
            known = tasks[event.stage]
            bar.update(known, completed=event.done, total=event.total, unit=event.unit, rate=rate)  # type: ignore[arg-type]

        yield show


class _Plain:
    """Plain lines, the first after some seconds and then at the same distance."""

    def __init__(self, quiet: bool) -> None:
        self.quiet = quiet
        self.began = self.last = time.monotonic()

    def __call__(self, event: Progress | str) -> None:
        now = time.monotonic()
        if isinstance(event, str):
            say(event)
        elif not self.quiet and now - self.last >= PLAIN_SECONDS:
            self.last = now
            of = f" of {event.total:,}" if event.total else ""
            rate = event.done / max(now - self.began, 1e-9)
            left = f", {(event.total - event.done) / rate:,.0f} s left" if event.total and rate else ""
            say(f"{event.stage}: {event.done:,}{of} {event.unit}, {rate:,.0f}/s{left}")
