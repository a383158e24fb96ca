"""Reads damaged and hostile files of every format, and reports each that is not read, skipped or refused in one line.

    python benchmarks/fuzz_readers.py [--mutations 10000] [--whole 20] [--seed 1] [--only csv pdf]

The mutations of a format are read in one process with the limits of a reader process, from the bytes to documents.
This is quick, and shows exceptions that a reader process would turn into one line. `--whole` more take the path of a
command: a reader process each, a preview and all documents. A find is an exception that is no `SondeError`, a message
of several lines, more than 60 s or 1 GB, or a change in the folder beside the file. A mutation that ends its process,
as too much memory does in Rust, takes the path of a command too, and is a find unless that gives one line.
"""

import argparse
import json
import random
import select
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from mutations import SEEDS, mutations, read_here

from sonde.indexer.document import Skipped
from sonde.indexer.errors import SondeError
from sonde.indexer.readers import ReadOptions, child_main, preview, read_source

SECONDS = 60.0


def main() -> None:
    """Read, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mutations", type=int, default=10_000)
    parser.add_argument("--whole", type=int, default=20)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--only", nargs="*", default=list(SEEDS))
    parser.add_argument("--from", type=int, dest="first", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.first is not None:
        return inside(arguments.only[0], arguments.seed, arguments.first, arguments.mutations)
    print(f"seed {arguments.seed}", flush=True)
    failed = 0
    for name in arguments.only:
        begun = time.monotonic()
        finds = [*many(name, arguments.mutations, arguments.seed), *whole(name, arguments.whole, arguments.seed + 1)]
        seconds = time.monotonic() - begun
        tried = arguments.mutations + arguments.whole
        print(f"{name}: {tried} tried, {len(finds)} failed, {seconds:.0f} s", flush=True)
        firsts = {said: number for number, said in reversed(finds)}
        for said, count in Counter(said for _, said in finds).most_common(12):
            print(f"  {count} ×, first number {firsts[said]}: {said}", flush=True)
        failed += len(finds)
    return sys.exit(failed > 0)


def inside(name: str, seed: int, first: int, count: int) -> None:
    """Read mutations and print a line of JSON for each: its number and what is wrong."""
    child_main.limit_memory()
    with tempfile.TemporaryDirectory() as place:
        path, canary = _beside(Path(place), name)
        for number, data in enumerate(islice(mutations(name, seed), first, count), start=first):
            path.write_bytes(data)
            said = read_here(path, name)
            print(json.dumps([number, said or _changed(canary)]), flush=True)


def many(name: str, count: int, seed: int) -> Iterator[tuple[int, str]]:
    """Yield the number of each mutation that is a find, and why. A process that ends is followed by another."""
    first = 0
    while first < count:
        words = [sys.executable, __file__, "--only", name, "--seed", str(seed), "--from", str(first)]
        words += ["--mutations", str(count)]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0) as process:
            assert process.stdout is not None
            while select.select([process.stdout], [], [], SECONDS)[0] and (line := process.stdout.readline()):
                number, said = json.loads(line)
                first = number + 1
                if said:
                    yield number, said
            process.kill()
        if first < count:
            yield from ((first, said) for _, said in whole(name, 1, seed, first))
            print(f"  number {first} ended its process ({process.wait()}): it is one line for a command, or a find")
            first += 1


def whole(name: str, count: int, seed: int, first: int = 0) -> Iterator[tuple[int, str]]:
    """Yield each mutation that is a find on the way that a command takes; the end of a reader process is none."""
    options = ReadOptions(format="lines" if name == "lines" else None)
    with tempfile.TemporaryDirectory() as place:
        path, canary = _beside(Path(place), name)
        for number, data in enumerate(islice(mutations(name, seed), first, first + count), start=first):
            path.write_bytes(data)
            said, begun = "", time.monotonic()
            try:
                preview([path], options)
                said = " ".join(item.reason for item in read_source(path, options=options) if isinstance(item, Skipped))
            except SondeError as error:
                said = str(error)
            except Exception as error:
                yield number, f"{type(error).__name__}: {error}"[:200]
            late = time.monotonic() - begun > SECONDS + 10
            if late or "\n" in said or _changed(canary):
                yield number, _changed(canary) or said[:200] or "too slow"


def _beside(place: Path, name: str) -> tuple[Path, Path]:
    (place / "canary").mkdir()
    (place / "canary" / "file").write_text("sings")
    (place / "read").mkdir()
    return place / "read" / f"file.{'txt' if name == 'lines' else name}", place / "canary"


def _changed(canary: Path) -> str:
    files = [path.name for path in (*canary.iterdir(), *canary.parent.iterdir())]
    kept = sorted(files) == ["canary", "file", "read"] and (canary / "file").read_text() == "sings"
    return "" if kept else "the folder beside it changed"


if __name__ == "__main__":
    main()
