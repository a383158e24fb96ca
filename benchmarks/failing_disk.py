"""Lets the disk fail at single calls of a command: it is full (ENOSPC), or it cannot read or write (EIO).

    python benchmarks/failing_disk.py [--each 60] [--seed 1] [--only index compact]

For each kind of call, the first, second … call inside the collection fails, once or with every later one. The command
must end well or with one line that names the collection. Afterwards, once the disk is sound again, all that
benchmarks/power_cuts.py asks for must hold: nothing that was reported is lost, and the same command again ends well.
"""

import argparse
import errno
import os
import random
import re
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from _calls import Call, mark, watched
from damaged import sound_collection
from kills import COUNT
from power_cuts import NAME, RUNS, SLOW, Recorded, in_child, prepare, record, wrong

from sonde.indexer.errors import SondeError

KINDS = {
    errno.ENOSPC: ("create", "mkdir", "write", "truncate", "rename", "link"),
    errno.EIO: ("create", "mkdir", "write", "truncate", "rename", "link", "flush", "remove"),
}
"""Which calls fail with which error."""


def main() -> None:
    """Fail calls, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--each", type=int, default=60, help="most calls of a kind that are tried")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    default = [name for name in RUNS if name not in SLOW]
    parser.add_argument("--only", nargs="*", default=default, choices=list(RUNS))
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    failed, messages = 0, Counter[str]()
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        sound = sound_collection(place / "sound.sonde", COUNT)
        for command in arguments.only:
            run = record(command, sound, place / "disk")
            chance = random.Random(f"{command} {arguments.seed}")
            failed += tried(run, sound, place / "disk", arguments.each, chance, messages)
    print("what the commands said:")
    for message, count in messages.most_common():
        print(f"  {count} × {message}")
    sys.exit(failed > 0)


def tried(run: Recorded, sound: Path, root: Path, each: int, chance: random.Random, messages: Counter[str]) -> int:
    """Fail calls of one command; print and return how often something was wrong."""
    began, finds, count = time.monotonic(), Counter[str](), 0
    for error, kinds in KINDS.items():
        for kind in kinds:
            total = sum(call.kind == kind for call in run.calls)
            for number in sorted(chance.sample(range(total), min(total, each))):
                for onwards in (False, True):
                    count += 1
                    prepare(run.name, sound, root)
                    said, problem = one(run, root, error, kind, number, onwards)
                    messages[plain(said, root)] += 1
                    if problem:
                        what = f"{errno.errorcode[error]} at {kind} {number}{' and later' if onwards else ''}"
                        finds[plain(problem, root)] += 1
                        if finds[plain(problem, root)] <= 2:
                            print(f"  {run.name}, {what}: {problem} ({said})", flush=True)
    print(f"{run.name}: {count} failures of the disk in {time.monotonic() - began:.0f} s, {finds.total()} wrong")
    for problem, times in finds.most_common(8):
        print(f"  {times} × {problem}", flush=True)
    return finds.total()


def one(run: Recorded, root: Path, error: int, kind: str, number: int, onwards: bool) -> tuple[str, str | None]:
    """Run a command whose disk fails; return what it said, and what is wrong, if anything."""
    reported, met, failing = "", 0, False
    heard, told = os.pipe()

    def decide(call: Call) -> int:
        nonlocal reported, met, failing
        if call.kind == "mark":
            reported = call.data.decode()
        if not f"{call.path}/".startswith(f"{root}/") or call.kind not in KINDS[error]:
            return 0
        if call.kind == kind:
            met += 1
            if met == number + 1:
                failing = onwards
                return error
        return error if failing else 0

    status = watched(lambda: child(run.name, root / NAME, told), decide)
    os.close(told)
    with os.fdopen(heard, "rb") as stream:
        said = stream.read().decode().rstrip("\n")
    if status:
        return said, f"the process died with status {status}"
    if said and (problem := badly_said(said, root / NAME)):
        return said, problem
    return said or "nothing", in_child(lambda: wrong(run, root / NAME, reported))


def child(name: str, folder: Path, told: int) -> None:
    """Run a command, and tell the error with which it ended, and all that anything prints as an error."""
    signal.alarm(60)
    os.dup2(told, 2)
    try:
        RUNS[name](folder)
        mark("returned")
    except SondeError as error:
        os.write(told, f"{error}\n".encode())
    except BaseException as error:
        os.write(told, f"{type(error).__name__}!: {error}".encode())


def badly_said(said: str, folder: Path) -> str | None:
    """Return what is wrong with a message."""
    if "!: " in said:
        return f"no line but an exception: {said}"
    if "\n" in said:
        return f"several lines: {said}"
    return None if str(folder) in said else f"it does not name the collection: {said}"


def plain(said: str, root: Path) -> str:
    """Return a message without what differs from one failure to the next."""
    said = re.sub(r"\.new-\w+|\.tmp\w+|[0-9a-f]{16,}", "…", said.replace(str(root), ""))
    return re.sub(r"\d[\d.,]*", "N", said)[:260]


if __name__ == "__main__":
    main()
