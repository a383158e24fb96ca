"""Kills every command that writes at a random moment, and compares with a run that nobody disturbed.

    python benchmarks/kills.py [--kills 1000] [--seed 1] [--only topics map]

Each kill is SIGKILL to a child that works on a copy of a collection of 120 documents. After it, `verify` must find
nothing but an index that is being rebuilt, what a user sees must be what it was before or what it is after the command
(for `index` and `sync`: of each document), and the same command again must end as the undisturbed one did.
"""

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

# The threads of OpenMP and Numba do not survive a fork: a child would wait for them.
os.environ |= {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from damaged import documents, opened, sound_collection
from other_encoder import OtherEncoder, changed_to

from sonde.app.api.collection import Collection, index

COUNT = 120
STEPWISE = ("index", "sync")
"""Commands that commit more than once."""
COMMANDS: dict[str, Callable[[Collection], object]] = {
    "index": lambda c: index(documents(COUNT + 40), c.path, encoder=c.stored.encoder, batch=20),
    "sync": lambda c: index(documents(COUNT // 2), c.path, encoder=c.stored.encoder, batch=20, sync=True),
    "put": lambda c: c.put([{"id": f"put{number}", "text": f"put there {number}"} for number in range(30)]),
    "delete": lambda c: c.delete(where="price > 10"),
    "tag": lambda c: c.tag("t2", where="stars != 'many'"),
    "judge": lambda c: c.judge("river", [f"letter{number}" for number in range(4, COUNT, 6)]),
    "correct": lambda c: c.correct({"letter4": "item 0", "music5": "item 1"}, run="l"),
    "label": lambda c: c.label(["apple", "river", "cloud"], name="new", engine="similarity", replace=True),
    "cluster": lambda c: c.cluster("new", k=4, replace=True),
    "update": lambda c: c.update_clusters("k"),
    "merge": lambda c: c.merge_clusters([0, 1], "k"),
    "topics": lambda c: c.topics("new", min_size=5, replace=True),
    "map": lambda c: c.map("new", replace=True),
    "rename": lambda c: c.rename_run("k", "renamed", kind="cluster"),
    "forget": lambda c: c.delete_run("k", kind="cluster"),
    "compact": lambda c: c.compact(),
    "model": lambda c: changed_to(OtherEncoder(), c.path),
    "undo": lambda c: changed_to(None, c.path),
    "late": lambda c: c.late(),
}
PREPARED: dict[str, Callable[[Path], object]] = {"undo": lambda folder: changed_to(OtherEncoder(), folder)}
"""What is done before a command, so that there is something for it to do."""
AGAIN = ("put", "judge", "correct", "label", "cluster", "topics", "map", "compact", "late", *STEPWISE)
"""Commands that may be given twice; the others find their work done."""
State = tuple[dict[str, str], list[str], str]
"""What a user sees but for times: documents by id, runs with their items, and judgements."""


def main() -> None:
    """Kill, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--only", nargs="*", default=list(COMMANDS), choices=list(COMMANDS))
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        first = sound_collection(place / "sound.sonde", COUNT)
        for command in arguments.only:
            sound = prepared(command, first, place / "prepared.sonde")
            failed += tried(command, sound, place, arguments.kills // len(arguments.only), arguments.seed)
    sys.exit(failed > 0)


def prepared(command: str, sound: Path, folder: Path) -> Path:
    """Return the collection on which a command works: the sound one, or a copy of it that has been prepared."""
    if command not in PREPARED:
        return sound
    PREPARED[command](copied(sound, folder))
    return folder


def tried(command: str, sound: Path, place: Path, kills: int, seed: int) -> int:
    """Kill one command many times; print and return how often something was wrong."""
    twin, seconds = undisturbed(command, sound, place / "twin.sonde")
    before, after = state(sound), state(twin)
    finds: Counter[str] = Counter()
    began, done = time.monotonic(), 0
    for number in range(kills):
        folder = copied(sound, place / "killed.sonde")
        chance = random.Random(f"{command} {seed} {number}")
        killed(command, folder, chance.uniform(0, 1.05) * seconds)
        now = state(folder)
        done += now == after
        if problem := wrong(command, folder, before, now, after):
            finds[problem[:300]] += 1
    print(f"{command}: {kills} kills in {time.monotonic() - began:.0f} s, {done} after the commit", end="")
    print(f", {finds.total()} failed", flush=True)
    for problem, count in finds.most_common(5):
        print(f"  {count} × {problem}", flush=True)
    return finds.total()


def undisturbed(command: str, sound: Path, folder: Path) -> tuple[Path, float]:
    """Run the command in a child that nobody kills; return the collection and the seconds that it took."""
    copied(sound, folder)
    began = time.monotonic()
    child = run_in_child(command, folder)
    _, status = os.waitpid(child, 0)
    if status:
        sys.exit(f"{command} failed without a kill")
    return folder, time.monotonic() - began


def killed(command: str, folder: Path, seconds: float) -> None:
    """Run the command in a child, and kill it after some seconds."""
    child = run_in_child(command, folder)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def run_in_child(command: str, folder: Path) -> int:
    """Start a command in a child; return its process id."""
    child = os.fork()
    if child:
        return child
    code = 1
    with suppress(BaseException), closing(opened(folder)) as collection:
        COMMANDS[command](collection)
        code = 0
    os._exit(code)


def wrong(command: str, folder: Path, before: State, now: State, after: State) -> str | None:
    """Return what is wrong with a collection after a kill, None where nothing is."""
    with closing(opened(folder)) as collection:
        findings = [finding for finding in collection.verify() if finding.part not in ("ann", "lexical")]
        if findings:
            return f"verify: {findings[0].part}: {findings[0].problem}"
    if command in STEPWISE:
        known = {key: (before[0].get(key), after[0].get(key)) for key in {*before[0], *after[0]}}
        if any(now[0].get(key) not in values for key, values in known.items()):
            return "a document is neither what it was nor what it is to be"
    elif now not in (before, after):
        return "what a user sees is neither what it was nor what it is to be"
    if now != after or command in AGAIN:
        _, status = os.waitpid(run_in_child(command, folder), 0)
        if status:
            return "the same command again failed"
    return None if state(folder) == after else "the same command again ends otherwise"


def state(folder: Path) -> State:
    """Return what a user sees but for times: documents by id, runs with their items, the model, and judgements."""
    with closing(opened(folder)) as collection:
        documents = {row["id"]: repr(row) for row in collection.rows()}
        runs = [
            repr((run.kind, run.name, run.complete, run.parameters, run.documents, collection.items(run)))
            for run in collection.runs()
        ]
        runs.append(repr(("model", collection.model)))
        judged = repr([(each.query, each.id, each.grade) for each in collection.judgements().kept])
    return documents, sorted(runs), judged


def copied(sound: Path, folder: Path) -> Path:
    """Return a fresh copy of a collection."""
    shutil.rmtree(folder, ignore_errors=True)
    return Path(shutil.copytree(sound, folder))


if __name__ == "__main__":
    main()
