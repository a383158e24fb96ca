"""Progress as JSON lines in a file, which the web UI reads while a command runs."""

import json
import time
from dataclasses import asdict
from pathlib import Path

from ...indexer.progress import Progress

SECONDS, MOST_SECONDS, LINES = 0.2, 2.0, 300
"""Between two lines of the same stage: a few at first, in a long run a second or two, so that the file stays small."""


class ProgressFile:
    """Appends what a command tells: a sentence as a JSON string, progress as an object with its time in `at`."""

    def __init__(self, path: Path) -> None:
        """Take the file's path."""
        self._path = path
        self._began = time.monotonic()
        self._last: tuple[str, float] = ("", 0.0)

    def __call__(self, event: Progress | str) -> None:
        """Append an event; progress of one stage every now and then, its end always."""
        if isinstance(event, str):
            self._write(json.dumps(event))
            return
        now = time.monotonic()
        stage, written = self._last
        apart = min(MOST_SECONDS, max(SECONDS, (now - self._began) / LINES))
        if stage == event.stage and now - written < apart and event.done != event.total:
            return
        self._last = (event.stage, now)
        self._write(json.dumps({**asdict(event), "at": round(time.time(), 2)}))

    def _write(self, line: str) -> None:
        with self._path.open("a", encoding="utf-8") as stream:
            stream.write(line + "\n")
