"""Makes a run of a collection in a process of its own, and waits to be killed at one moment of it.

usage: clustered_run.py FOLDER NAME MOMENT

MOMENT is a sentence, or part of one, of what the work tells about itself; or "writing": all is written, nothing is
committed. The process then prints "here" and waits. With any other moment it runs to its end.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from fake_encoder import FakeEncoder

from sonde.app.api import Collection
from sonde.indexer.store import run_writing

MAKE: dict[str, Callable[..., Any]] = {
    "cluster": lambda made, notify: made.cluster("r", k=3, refits=0, replace=True, progress=notify),
    "topic": lambda made, notify: made.topics("r", min_size=10, replace=True, progress=notify),
    "map": lambda made, notify: made.map("r", replace=True, progress=notify),
}


def wait() -> None:
    """Tell the parent that the moment has come."""
    print("here", flush=True)
    time.sleep(600)


def make(folder: Path, kind: str, notify: Callable[[object], None]) -> None:
    """Make the run."""
    encoder: Any = FakeEncoder()
    MAKE[kind](Collection.open(folder, encoder=encoder), notify)


if __name__ == "__main__":
    moment = sys.argv[3]
    if moment == "writing":
        real = run_writing._insert_results
        run_writing._insert_results = lambda *given: (real(*given), wait())[0]
    make(Path(sys.argv[1]), sys.argv[2], lambda event: wait() if moment in str(event) else None)
