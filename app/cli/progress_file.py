"""Progress as JSON lines in a file, which the web UI reads while a command runs."""

import json
import time
from dataclasses import asdict
from pathlib import Path

from ...indexer.progress import Progress

SECONDS = 0.2
"""Between two lines of the same stage."""


class ProgressFile:
    """Appends what a command tells: a sentence as a JSON string, progress as an object."""

    def __init__(self, path: Path) -> None:
        """Take the file's path."""
        self._path = path
        self._last: tuple[str, float] = ("", 0.0)

    def __call__(self, event: Progress | str) -> None:
        """Append an event; progress of one stage at most every `SECONDS`, its end always."""
        if isinstance(event, str):
            self._write(json.dumps(event))
            return
        now = time.monotonic()
        stage, written = self._last
        if stage == event.stage and now - written < SECONDS and event.done != event.total:
            return
        self._last = (event.stage, now)
        self._write(json.dumps(asdict(event)))

    def _write(self, line: str) -> None:
        with self._path.open("a", encoding="utf-8") as stream:
            stream.write(line + "\n")
