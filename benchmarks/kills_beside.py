"""Kills an index run and two other writers while all three write to one collection, and looks for what was lost.

    python benchmarks/kills_beside.py [--rounds 20] [--seed 1]

An index run lets the others in between two commits (docs/decisions/0058). In each round, eight times, one of the three
is killed at a random moment and started again. In the end, each document must be what the index run or the last write
to it made of it (a write that was killed may have happened or not), no write may have been refused, `verify` must find
nothing, and both halves of the search must find every document.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from fake_encoder import FakeEncoder

from sonde.app.api import Collection
from sonde.indexer.document import Document
from sonde.indexer.ingest import BuildSettings, index_documents
from sonde.indexer.store.catalog import Catalog
from sonde.indexer.store.lock import PATIENCE, Patience

SOURCE, OWN, KILLS = 400, 20, 8
WORDS = ["battery", "parcel", "screen", "died", "late", "cracked", "refund", "delivery", "angry", "happy"]
State = tuple[str, int]
"""Text and version of a document; the index run writes version -1."""


def main() -> None:
    """Run the rounds and print what was found; or be one of the writers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 20))
    parser.add_argument("--writer", nargs="+", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.writer:
        role, folder, *rest = arguments.writer
        index_all(Path(folder)) if role == "index" else write_on(Path(folder), int(role), Path(rest[0]), int(rest[1]))
        return
    failed = kills = accepted = 0
    for seed in range(arguments.seed, arguments.seed + arguments.rounds):
        with tempfile.TemporaryDirectory() as place:
            found, killed, writes = one_round(Path(place), seed)
        failed, kills, accepted = failed + bool(found), kills + killed, accepted + writes
        print(f"seed {seed}: {killed} kills, {writes} writes accepted, {found or 'nothing lost'}", flush=True)
    print(f"{arguments.rounds} rounds, {kills} kills, {accepted} writes accepted, {failed} failed")
    sys.exit(failed > 0)


def text_of(seed: str) -> str:
    """Return a text of eight words, always the same for a seed."""
    return " ".join(random.Random(seed).choices(WORDS, k=8))


def source() -> Iterator[Document]:
    """Yield what the index run reads."""
    return (Document(text_of(f"s{n}"), key=f"s{n}", metadata={"version": -1}) for n in range(SOURCE))


def index_all(folder: Path) -> None:
    """Be the index run: 25 commits, one every tenth of a second."""
    encoder = FakeEncoder(seconds=0.006)
    index_documents(source(), folder, settings=BuildSettings(batch=16), encoder=encoder)  # type: ignore[arg-type]


def write_on(folder: Path, who: int, log: Path, start: int) -> None:
    """Be another writer, for ever: each write is logged before and after, with the version that it makes."""
    PATIENCE.set(Patience(30, lambda _: None))
    chosen = random.Random(start * 2 + who)
    mine = [f"s{n}" for n in range(SOURCE) if n % 2 == who] + [f"own{who}-{n}" for n in range(OWN)]
    with log.open("a") as lines, Collection.open(folder, encoder=FakeEncoder()) as collection:  # type: ignore[arg-type]
        for version in range(start * 1_000, (start + 1) * 1_000):
            what = chosen.choices(["put", "delete", "tag", "compact"], [12, 5, 5, 1])[0]
            id = chosen.choice(mine)
            note(lines.fileno(), "begin", what, id, version)
            try:
                write(collection, what, id, version)
            except Exception as error:
                note(lines.fileno(), "refused", what, id, version, f"{type(error).__name__}: {error}")
            else:
                note(lines.fileno(), "done", what, id, version)
            time.sleep(chosen.random() * 0.15)


def write(collection: Collection, what: str, id: str, version: int) -> None:
    """Do one thing that a user does."""
    if what == "put":
        collection.put([Document(text_of(f"{id}:{version}"), key=id, metadata={"version": version})])
    elif what == "compact":
        collection.compact()
    elif not collection.documents(id):
        return
    elif what == "delete":
        collection.delete(id)
    else:
        collection.tag("seen", ids=id, change="add")


def note(log: int, *what: object) -> None:
    """Append a line that a kill does not lose."""
    os.write(log, (json.dumps(what) + "\n").encode())


def started(*what: object) -> subprocess.Popen[str]:
    """Start one of the three."""
    command = [sys.executable, __file__, "--writer", *map(str, what)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def one_round(place: Path, seed: int) -> tuple[list[str], int, int]:
    """Return what is wrong after a round, how many processes were killed at work, and how many writes were accepted."""
    chosen, folder, logs = random.Random(seed), place / "c.sonde", [place / "0.jsonl", place / "1.jsonl"]
    starts = iter(range(seed * 100, seed * 100 + 100))
    given: dict[str, tuple[object, ...]] = {"index": ("index", folder)}
    running = {"index": started(*given["index"])}
    while not (folder / "catalog.db").exists():
        time.sleep(0.02)
    for who, log in enumerate(logs):
        given[str(who)] = (who, folder, log)
        running[str(who)] = started(*given[str(who)], next(starts))
    wrong, killed = [], 0
    for _ in range(KILLS):
        time.sleep(chosen.uniform(0.2, 1.8))
        victim = chosen.choice(["index", "index", "0", "1"])
        wrong += ended(running[victim], signal.SIGKILL)
        killed += running[victim].returncode == -signal.SIGKILL
        running[victim] = started(*given[victim], *([] if victim == "index" else [next(starts)]))
    time.sleep(1)
    for victim in ("0", "1"):
        wrong += ended(running[victim], signal.SIGKILL)
    wrong += ended(running["index"]) + differences(folder, logs, undisturbed=False)
    wrong += ended(started(*given["index"])) + differences(folder, logs, undisturbed=True)
    lines = [json.loads(line) for log in logs for line in log.read_text().splitlines()]
    wrong += [str(line) for line in lines if line[0] == "refused"]
    return wrong, killed, sum(line[0] == "done" for line in lines)


def ended(process: subprocess.Popen[str], by: signal.Signals | None = None) -> list[str]:
    """Wait until a process has ended, perhaps by a signal; return its last words if it failed."""
    if by and process.poll() is None:
        process.send_signal(by)
    said = process.communicate()[1]
    return [] if process.returncode in (0, -signal.SIGKILL) else [said[-500:]]


def differences(folder: Path, logs: list[Path], undisturbed: bool) -> list[str]:
    """Return which documents are not as anybody left them, and what `verify` and searches miss.

    Args:
        folder: The collection.
        logs: Of the two other writers.
        undisturbed: An index run followed after the last write, so that its documents must be as it writes them.
    """
    indexed = {each.key or "": (each.text, -1) for each in source()}
    allowed = written(logs)
    now = documents(folder)
    wrong = [
        f"{id} is {now.get(id)}"
        for id in {*now, *indexed, *allowed}
        if now.get(id) != indexed.get(id) or id not in indexed
        if (undisturbed and id in indexed) or now.get(id) not in allowed.get(id, {None})
    ]
    with Collection.open(folder, encoder=FakeEncoder()) as collection:  # type: ignore[arg-type]
        wrong += map(str, collection.verify())
        for mode in ("dense", "lexical"):
            hits = collection.search(" ".join(WORDS), k=1_000, mode=mode, collapse=False)
            wrong += [f"{mode} search misses or invents {id}" for id in {hit.id for hit in hits} ^ set(now)]
    return wrong


def written(logs: list[Path]) -> dict[str, set[State | None]]:
    """Return what each document may be by the last write to it; None stands for a document that is not there."""
    may_be: dict[str, set[State | None]] = {}
    for line in (line for log in logs for line in log.read_text().splitlines()):
        stage, what, id, version, *_ = json.loads(line)
        if what in ("put", "delete"):
            state: State | None = (text_of(f"{id}:{version}"), version) if what == "put" else None
            may_be[id] = {state} if stage == "done" else may_be.get(id, {None}) | {state}
    return may_be


def documents(folder: Path) -> dict[str, State]:
    """Return the documents of a collection by id."""
    with closing(Catalog.open(folder / "catalog.db")) as catalog:
        column = catalog.fields()["version"].column
        rows = catalog.connection.execute(f"SELECT key, text, {column} FROM documents JOIN metadata USING (doc)")
        return {key: (text, version) for key, text, version in rows}


if __name__ == "__main__":
    main()
