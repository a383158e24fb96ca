"""Uses damaged and hostile collections, and reports each that is not read, repaired or refused in one line.

    python benchmarks/fuzz_collections.py [--mutations 1000] [--seed 1] [--only sql catalog]

Each mutation is used in a process of its own: opened, searched, exported, clustered, written to, verified, repaired. A
find is an exception that is no `SondeError`, a message of several lines, the end of the process, more than 60 s or
1 GB, a change beside the collection, or a change that a user can see and `verify` does not.
"""

import argparse
import json
import os
import random
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"  # OpenMP's threads do not survive a fork, and FAISS would wait for them
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from damaged import MUTATIONS, mutated, opened, problem_of, seen, sound_collection
from damaged_shards import SHARD_MUTATIONS, sound_shards

SECONDS, MEMORY = 60, 1 << 30
WAYS = MUTATIONS | SHARD_MUTATIONS
HOSTILE_KINDS = ("sql", "json", "faiss-resealed", "shards-stranger")
"""Mutations that a stranger makes on purpose: these must be harmless, but `verify` need not tell."""


def main() -> None:
    """Mutate, use, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mutations", type=int, default=1_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--only", nargs="*", default=list(WAYS), choices=list(WAYS))
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        one, shards = sound_collection(place / "sound.sonde", 60), sound_shards(place / "shards.sonde")
        for kind in arguments.only:
            sound = shards if kind in SHARD_MUTATIONS else one
            with closing(opened(sound)) as collection:
                expected = seen(collection)
            began, finds = time.monotonic(), Counter[str]()
            firsts: dict[str, str] = {}
            for number in range(arguments.first, arguments.first + arguments.mutations):
                found = used(sound, place / "use", kind, arguments.seed, number, expected)
                if found:
                    finds[found[0]] += 1
                    firsts.setdefault(found[0], f"{number}, {found[1]}")
            seconds = time.monotonic() - began
            print(f"{kind}: {arguments.mutations} tried, {finds.total()} failed, {seconds:.0f} s", flush=True)
            for said, count in finds.most_common(12):
                print(f"  {count} × {said}\n    first: {firsts[said]}", flush=True)
            failed += finds.total()
    sys.exit(failed > 0)


def used(sound: Path, place: Path, kind: str, seed: int, number: int, expected: str) -> tuple[str, str] | None:
    """Use one mutation in a child; return what is wrong and what the mutation was, None where nothing is wrong."""
    canary = _beside(place)
    folder, what = mutated(sound, place, kind, seed, number, WAYS)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _in_child(folder, None if kind in HOSTILE_KINDS else expected, writing)
    os.close(writing)
    with os.fdopen(reading, "rb") as answer:
        told = answer.read()
    _, status, spent = os.wait4(child, 0)
    said = json.loads(told) if told else f"the process ended: {_ending(status)}"
    if spent.ru_maxrss * 1024 > MEMORY + resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024:
        said = said or f"{spent.ru_maxrss / 1e6:.1f} GB"
    kept = [path.read_text() for path in sorted(canary.glob("*"))]
    if kept != ["sings"]:
        said = "the folder beside it changed"
    return (said[:200], what) if said else None


def _in_child(folder: Path, expected: str | None, writing: int) -> None:
    signal.alarm(SECONDS)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    try:
        said = problem_of(folder, expected)
    except BaseException as error:  # nothing may leave the child: it would go on as the parent
        said = f"{type(error).__name__}: {error}"
    os.write(writing, json.dumps(said).encode())
    os._exit(0)


def _ending(status: int) -> str:
    return signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else f"code {status >> 8}"


def _beside(place: Path) -> Path:
    canary = place / "canary"
    canary.mkdir(parents=True, exist_ok=True)
    (canary / "file").write_text("sings")
    return canary


if __name__ == "__main__":
    main()
