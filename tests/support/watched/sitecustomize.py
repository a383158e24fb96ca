"""Watches what a process does in a collection, and kills at a chosen moment; see benchmarks/kills_on_ray.py.

Python imports this file at its start if the folder is in PYTHONPATH: so do a command and all workers of Ray. The folder
SONDE_WATCHED has `plan.json`, with a moment and the processes to kill. Every file operation appends a byte to
`operations`, and each embedded passage a line to `embedded`, over all processes.
"""

import hashlib
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

EVENTS = {"open", "os.rename", "os.link", "os.remove", "os.mkdir", "os.rmdir", "shutil.rmtree"}
BATCH = 25
"""Passages per commit, small so that a shard has several."""
WATCHED = Path(os.environ.get("SONDE_WATCHED", "/nowhere"))
patched = False


def append(name: str, content: bytes) -> int:
    """Append to a file of all processes; return its size."""
    file = os.open(WATCHED / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        os.write(file, content)
        return os.fstat(file).st_size
    finally:
        os.close(file)


def plan() -> dict[str, Any]:
    """Return the plan that has not been carried out yet."""
    try:
        return json.loads((WATCHED / "plan.json").read_bytes())
    except (OSError, ValueError):
        return {}


def carry_out(what: dict[str, Any]) -> None:
    """Kill the processes of a plan, or this one if it names none; only one process does so, and none that it spares."""
    if os.getpid() in what["spare"]:
        return
    try:
        (WATCHED / "plan.json").rename(WATCHED / "done.json")
    except OSError:
        return
    for process in what["kill"] or [os.getpid()]:
        os.kill(process, getattr(signal, what["signal"]))


def watch(event: str, arguments: tuple[Any, ...]) -> None:
    """Count a file operation in the collection."""
    if event not in EVENTS or not arguments or not isinstance(arguments[0], str | os.PathLike):
        return
    if ".sonde" in (path := str(arguments[0])) and path.startswith(str(WATCHED)):
        patch()
        done, what = append("operations", b"."), plan()
        if done >= what.get("operation", sys.maxsize):
            carry_out(what)


def around(name: str, kind: str) -> None:
    """Look at the plan before and after a file gets its name."""
    real: Callable[..., Any] = getattr(os, name)

    def named(source: Any, target: Any, **options: Any) -> Any:
        step = str(target).partition(".sonde/")[2]
        for when in ("before", "after"):
            if when == "after":
                real(source, target, **options)
            what = plan() if step else {}
            if (wanted := what.get("step")) and f"{kind}:{when}:{step}".startswith(wanted):
                carry_out(what)

    setattr(os, name, named)


def patch() -> None:
    """Note what is embedded, and make batches small, as soon as the modules are there."""
    global patched
    encoder, run = (sys.modules.get(f"sonde.indexer.{each}") for each in ("encoder.encoder", "ingest.run"))
    if patched or not encoder or not run:
        return
    patched = True
    run.FIRST_BATCH = run.LARGEST_BATCH = BATCH  # type: ignore[attr-defined]
    real = encoder.Encoder.encode

    def encode(self: Any, tokens: Any, **options: Any) -> Any:
        lines = [hashlib.md5(repr(each).encode()).hexdigest() + "\n" for each in tokens]
        append("embedded", "".join(lines).encode())
        return real(self, tokens, **options)

    encoder.Encoder.encode = encode


if WATCHED.is_dir():
    sys.addaudithook(watch)
    around("rename", "rename")
    around("link", "create")
