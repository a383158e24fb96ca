"""Cuts the power at every call of a command that changes files, and compares with a run that nobody disturbed.

    python benchmarks/power_cuts.py [--states 4000] [--seed 1] [--only index compact]

Every call that changes a file is recorded (benchmarks/_calls.py). Then, before each of them, the states are made in
which a disk may wake up after a power cut (benchmarks/_disk.py): what was flushed, and any part of the rest. In each,
`verify` must find nothing but an index that is being rebuilt, what was reported as done must be there, what a user sees
must be what it was before or what it is after the command (for `index` and `sync`: of each document; for `judge`: of
each judgement, whose line may be torn), and the same command again must end as the undisturbed one did, with the same
hits. Equal states are tried once.
"""

import argparse
import itertools
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from ast import literal_eval
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

# The threads of OpenMP and Numba do not survive a fork: a child would wait for them.
os.environ |= {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from _calls import Call, mark, watched
from _disk import WAYS, Disk, Tree, digest, laid_out
from damaged import documents, opened, sound_collection
from fake_encoder import FakeEncoder
from kills import AGAIN, COMMANDS, COUNT, PREPARED, STEPWISE, State, copied, state

from sonde.app.api.collection import Collection, index
from sonde.indexer.errors import SondeError
from sonde.indexer.progress import Progress
from sonde.indexer.upkeep.delete import remove_collection

NAME = "c.sonde"
SLOW = ("topics", "map")
"""Commands that are tried only if they are asked for: they write as `cluster` does, and take seconds."""
FAILS_ON = 300
"""Seconds after which a state counts as failed."""
NONE_YET = ("there is no collection at", "is not a Sonde collection", "is unfinished: its first `sonde index`")
IGNORED = ("-shm", "writer.json", "writer.lock")
"""Files that do not make two states differ."""
MISSES = 2_000
"""Number of known states in a row after which there are probably no others."""
QUERIES = ("apple river", "number 7")
Hits = list[tuple[str, float]]


def first_index(folder: Path) -> None:
    """Make the collection, and mark what is reported."""
    index(documents(COUNT), folder, encoder=FakeEncoder(), batch=20, progress=reported)  # type: ignore[arg-type]


def more(folder: Path) -> None:
    """Add documents, and mark what is reported."""
    index(documents(COUNT + 40), folder, encoder=FakeEncoder(), batch=20, progress=reported)  # type: ignore[arg-type]


def fewer(folder: Path) -> None:
    """Delete what is not in the source any more, and mark what is reported."""
    half = documents(COUNT // 2)
    index(half, folder, encoder=FakeEncoder(), batch=20, sync=True, progress=reported)  # type: ignore[arg-type]


def reported(event: object) -> None:
    """Mark how many documents are reported as committed."""
    if isinstance(event, Progress) and event.stage == "embedding":
        mark(str(event.done))


def through(command: Callable[[Collection], object]) -> Callable[[Path], None]:
    """Return a command that opens the collection first."""

    def run(folder: Path) -> None:
        with closing(opened(folder)) as collection:
            command(collection)

    return run


RUNS: dict[str, Callable[[Path], object]] = {
    "first": first_index,
    **{name: through(command) for name, command in COMMANDS.items()},
    "index": more,
    "sync": fewer,
    "first judgement": through(COMMANDS["judge"]),
    "repair": through(lambda collection: collection.repair()),
    "remove": remove_collection,
}
REPEATED = (*AGAIN, "first", "delete", "first judgement", "repair")
JUDGING = ("judge", "first judgement")
STEPS = ("first", *STEPWISE)


@dataclass
class Recorded:
    """A command that nobody disturbed: the disk before it, its calls, and what a user sees before and after."""

    name: str
    disk: Disk
    calls: list[Call]
    before: State | None
    after: State | None
    hits: Hits


def main() -> None:
    """Cut the power, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--states", type=int, default=4_000)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    default = [name for name in RUNS if name not in SLOW]
    parser.add_argument("--only", nargs="*", default=default, choices=list(RUNS))
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        sound = sound_collection(place / "sound.sonde", COUNT)
        for command in arguments.only:
            recorded = record(command, sound, place / "disk")
            failed += tried(recorded, place / "woken", arguments.states // len(arguments.only), arguments.seed)
    sys.exit(failed > 0)


def record(name: str, sound: Path, root: Path) -> Recorded:
    """Run a command in a watched child, and keep every call that changes a file."""
    prepare(name, sound, root)
    before = seen(root / NAME)
    prepare(name, sound, root)
    disk, calls = Disk(root), list[Call]()

    def keep(call: Call) -> int:
        if call.kind == "mark" or f"{call.path}/".startswith(f"{root}/"):
            calls.append(call)
        return 0

    if watched(lambda: (RUNS[name](root / NAME), mark("returned")), keep):
        sys.exit(f"{name} failed without a power cut")
    check_model(disk.copy(), calls, root)
    return Recorded(name, disk, calls, before, seen(root / NAME), hits(root / NAME))


def prepare(name: str, sound: Path, root: Path) -> None:
    """Make the folder in which a command is to run."""
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    if name != "first":
        copied(sound, root / NAME)
    if name in PREPARED:
        PREPARED[name](root / NAME)
    if name == "first judgement":
        (root / NAME / "judgements.jsonl").unlink()
    if name == "repair":
        shutil.rmtree(root / NAME / "lexical")
        path = sorted((root / NAME / "vectors").iterdir())[0]
        path.write_bytes(path.read_bytes()[:-1] + b"\x01")


def check_model(disk: Disk, calls: list[Call], root: Path) -> None:
    """Fail if the model of the disk does not end with the very files that the command left."""
    for call in calls:
        disk.take(call)
    there, model = Disk(root).now.tree(), disk.now.tree()
    wrong = [path for path in {*there, *model} if there.get(path, b"-") != model.get(path, b"-")]
    if wrong := [path for path in wrong if not path.endswith("-shm")]:
        sys.exit(f"the model of the disk differs from the disk: {sorted(wrong)[:5]}")


def tried(run: Recorded, folder: Path, states: int, seed: int) -> int:
    """Try the states of one command; print and return how many were wrong."""
    began, finds = time.monotonic(), Counter[str]()
    count = 0
    for cut, way, said, tree in distinct(run, states, seed):
        shutil.rmtree(folder, ignore_errors=True)
        laid_out(tree, folder)
        count += 1
        if problem := in_child(partial(wrong, run, folder / NAME, said)):
            finds[problem[:300]] += 1
            if finds[problem[:300]] == 1:
                print(f"  {run.name}, {way} after {cut}: {problem}", flush=True)
    print(f"{run.name}: {len(run.calls)} calls, {count} states in {time.monotonic() - began:.0f} s", end="")
    print(f", {finds.total()} failed", flush=True)
    for problem, times in finds.most_common(5):
        print(f"  {times} × {problem}", flush=True)
    return finds.total()


def distinct(run: Recorded, states: int, seed: int) -> Iterator[tuple[str, str, str, Tree]]:
    """Yield (last call, way, what was reported, files) of distinct states, from anywhere in the run."""
    moments, known, misses = played(run), set[tuple[bytes, str]](), 0
    for number in itertools.count():
        chance = random.Random(f"{run.name} {seed} {number}")
        way, (cut, disk, said) = WAYS[number % len(WAYS)], chance.choice(moments)
        tree = disk.woken(way, chance)
        key = digest(tree, IGNORED), said
        misses = misses + 1 if key in known else 0
        if len(known) >= states or misses > MISSES:
            return
        if key not in known:
            known.add(key)
            yield cut, way, said, with_noise(tree, chance)


def played(run: Recorded) -> list[tuple[str, Disk, str]]:
    """Return (call, disk after it, what was reported by then) for each call that matters."""
    disk, said, found = run.disk.copy(), "", list[tuple[str, Disk, str]]()
    for number, call in enumerate(run.calls):
        if call.kind == "mark":
            said = call.data.decode()
        else:
            disk.take(call)
        if not call.path.endswith(IGNORED):
            found.append((f"call {number}, {call.kind}", disk.copy(), said))
    return found


def with_noise(tree: Tree, chance: random.Random) -> Tree:
    """Fill SQLite's shared memory with noise: nothing flushes it, and it must not matter."""
    return {
        path: chance.randbytes(len(content)) if content and path.endswith("-shm") else content
        for path, content in tree.items()
    }


def in_child(check: Callable[[], str | None]) -> str | None:
    """Return what a check returns, or how it died; it runs in a process of its own."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        signal.alarm(FAILS_ON)
        try:
            found = check() or ""
        except BaseException as error:
            found = f"{type(error).__name__}: {error}"
        os.write(writing, found.encode()[:4_000])
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        found = stream.read().decode(errors="replace")
    _, status = os.waitpid(child, 0)
    return f"the process died with status {status}" if status else found or None


def wrong(run: Recorded, folder: Path, reported: str) -> str | None:
    """Return what is wrong with a collection after a power cut, None where nothing is.

    Args:
        run: The command that was cut off.
        folder: The collection as the disk woke up with it.
        reported: What the command had reported: "", a number of documents, or "returned".
    """
    now = seen(folder)
    if problem := lost(run, now, reported):
        return problem
    torn = ("judgements",) if run.name in JUDGING and reported != "returned" else ()
    if now is not None and run.name != "repair" and (problem := verified(folder, torn)):
        return problem
    if now is not None and run.name != "repair" and any(id not in now[0] for id, _ in hits(folder)):
        return "a hit names a document that is not there"
    if now != run.after or run.name in REPEATED:
        try:
            RUNS[run.name](folder)
        except SondeError as error:
            return f"the same command again: {error}"
    if seen(folder) != run.after:
        return "the same command again ends otherwise"
    return None if run.after is None else healed(run, folder)


def lost(run: Recorded, now: State | None, reported: str) -> str | None:
    """Return what is lost of what was reported, or neither old nor new."""
    if run.name not in STEPS or reported == "returned" or now is None or run.after is None:
        allowed = (run.after,) if reported == "returned" else (run.before, run.after)
        if run.name in JUDGING and reported != "returned" and now and run.before and run.after:
            (*others, judged), (*same, after) = now, run.after
            known = others == same and {*literal_eval(run.before[2])} <= {*literal_eval(judged)}
            return None if known and {*literal_eval(judged)} <= {*literal_eval(after)} else "judgements are lost"
        if reported.isdigit() and now is None:
            return f"{reported} documents were reported as committed, and there is no collection"
        return None if now in allowed else f"what a user sees is neither old nor new after {reported!r} was reported"
    old = run.before[0] if run.before else {}
    known = {key: (old.get(key), run.after[0].get(key)) for key in {*old, *run.after[0]}}
    if any(now[0].get(key) not in values for key, values in known.items()):
        return "a document is neither what it was nor what it is to be"
    source = [document.key for document in documents(int(reported or 0))]
    gone = [key for key in source if now[0].get(str(key)) != run.after[0].get(str(key))]
    return f"{len(gone)} of {reported} documents reported as committed are not there" if gone else None


def verified(folder: Path, allowed: Sequence[str]) -> str | None:
    """Return what `verify` finds but for indexes, which are rebuilt, and what else is allowed."""
    with closing(opened(folder)) as collection:
        findings = [finding for finding in collection.verify() if finding.part not in ("ann", "lexical", *allowed)]
    return f"verify: {findings[0].part}: {findings[0].problem}" if findings else None


def healed(run: Recorded, folder: Path) -> str | None:
    """Return what is wrong after a repair of the indexes, where they need one."""
    with closing(opened(folder)) as collection:
        if collection.verify():
            collection.repair()
        if findings := collection.verify():
            return f"verify after repair: {findings[0].part}: {findings[0].problem}"
    return None if hits(folder) == run.hits else "hits differ from those of the undisturbed run"


def seen(folder: Path) -> State | None:
    """Return what a user sees, judgements in any order, None if there is no collection, or none with documents yet."""
    try:
        documents, runs, judged = state(folder)
        return documents, runs, repr(sorted(literal_eval(judged)))
    except SondeError as error:
        if any(words in str(error) for words in NONE_YET):
            return None
        raise


def hits(folder: Path) -> Hits:
    """Return ids and scores of a few searches, none where there is no collection."""
    if not folder.exists():
        return []
    with closing(opened(folder)) as collection:
        return [
            (hit.id, round(hit.score, 5))
            for mode in ("dense", "lexical", "hybrid")
            for query in QUERIES
            for hit in collection.search(query, k=5, mode=mode)  # type: ignore[arg-type]
        ]


if __name__ == "__main__":
    main()
