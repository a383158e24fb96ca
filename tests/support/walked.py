"""Runs `sonde` commands, one after the other, and prints for each the files that it enters, in order, as JSON.

Started as `python walked.py COMMANDS`, where COMMANDS is a JSON list of lists of words. A file counts as entered when
one of its functions is called for the first time. Imports and constructors do not count, nor does the probe that
estimates the time of an index run, since it uses the parts of the run before the run does.
"""

import json
import sys
import threading
from pathlib import Path
from types import FrameType

import sonde
from sonde.app.cli.main import main

CHECKOUT = Path(sonde.__file__).resolve().parents[2]
ROOTS = ("app/", "indexer/", "pipelines/")


def own(path: str) -> str:
    """Return a file's path inside the checkout, or nothing where it is not one of the product's."""
    whole = Path(path).resolve()
    below = whole.relative_to(CHECKOUT).as_posix() if whole.is_relative_to(CHECKOUT) else ""
    return below if below.startswith(ROOTS) else ""


def walk(words: list[str]) -> list[str]:
    """Run a command and return the files that it enters, each once."""
    entered: dict[str, None] = {}
    known: dict[str, str] = {}

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event != "call" or code.co_name.startswith(("__", "<")) or not code.co_flags & 1:
            return
        if code.co_filename not in known:
            known[code.co_filename] = own(code.co_filename)
        if (file := known[code.co_filename]) and file not in entered and not aside(frame):
            entered[file] = None

    sys.argv = ["sonde", *words]
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        main()
    except SystemExit as ended:
        if ended.code:
            raise
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return list(entered)


def aside(frame: FrameType | None) -> bool:
    """Whether a call happens during an import or the estimate."""
    while frame:
        if frame.f_code.co_name == "estimate":
            return True
        if frame.f_code.co_name == "<module>" and frame.f_globals["__name__"] != "__main__":
            return True
        frame = frame.f_back
    return False


if __name__ == "__main__":
    walks = [walk(words) for words in json.loads(sys.argv[1])]
    print(json.dumps(walks), file=sys.stderr)
