"""The process of one job: runs a `sonde` command and leaves its exit code behind.

Started as `python -m sonde.app.cli.job FOLDER`. Its output goes to files in FOLDER, so it outlives the page,
the browser and even the web server that started it.
"""

import json
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

from ...indexer.errors import SondeError
from ...indexer.files import write_durably
from ..ui.jobs.job import STOPPED, Job
from ..ui.jobs.queue import Jobs, Uploads


def main(folder: Path) -> None:
    """Run the command that `folder/job.json` names; `folder/exit` then holds its exit code.

    Files that were uploaded for it go once it has succeeded.
    """
    for name in ("SIGINT", "SIGBREAK"):  # a shell's background process would ignore it; Windows has the second
        if stop := getattr(signal, name, None):
            signal.signal(stop, signal.default_int_handler)
    os.environ["SONDE_PROGRESS"] = str(folder / "events.jsonl")
    command = json.loads((folder / "job.json").read_text("utf-8"))["command"]
    sys.argv = ["sonde", *command]
    code: object = 1
    try:
        if (folder / "cancelled").exists():  # before the signal could reach Python
            raise KeyboardInterrupt
        from .main import main as sonde

        sonde()
    except SystemExit as end:
        code = end.code
    except KeyboardInterrupt:
        code = STOPPED
    finally:
        if not code:
            Uploads(folder.parent / "uploads").drop(command)
        write_durably(folder / "exit", lambda stream: stream.write(str(code or 0).encode()))
        _go_on(folder, code)


def _go_on(folder: Path, code: object) -> None:
    """Start what is to follow; after a job in the background also if that failed, but not if it was cancelled."""
    with suppress(OSError, ValueError, KeyError, SondeError):  # without its folder, or while another is being started
        job = Job.read(folder)
        if not code or (job.background and code != STOPPED):
            Jobs(folder.parent).go_on(job)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
