"""Kills processes while shards are built on Ray, and compares with a build that nobody disturbed.

    python benchmarks/kills_on_ray.py [--kills 100] [--seed 1] [--only worker frozen]

A Ray cluster of two nodes runs on this machine. Each try builds or updates a collection of 4 shards, and sends SIGKILL
to a worker, a raylet, the head or the command: before or after a step of publishing, at one of all file operations, or
after some time. `frozen` stops a raylet as if its network were cut, for some seconds or for good. `two` starts two
commands at once. All the while, a reader opens the collection and searches it. Then the same command runs again and
must end as the undisturbed one did. Needs the extra `distributed`.
"""

import argparse
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from ray_cluster import Cluster

from sonde.app.api import Collection
from sonde.indexer.errors import SondeError
from sonde.indexer.sharded.generations import generation_number

WATCHED = Path(__file__).resolve().parents[1] / "tests" / "support" / "watched"
SHARDS, COUNT, BATCH, CORES = 4, 800, 25, 2
SHARES = {"worker": 0.3, "command": 0.3, "raylet": 0.2, "head": 0.2, "frozen": 0.1, "two": 0.1}
"""Tries of each kind, as a share of --kills; the last two are no kills and come on top."""
STEPS = [
    f"{kind}:{when}:{name}"
    for kind, name in (
        *(("rename", f"shards/0{n}") for n in range(SHARDS)),
        ("create", "generations"),
        ("rename", "work/01"),
        ("create", "collection.json"),
    )
    for when in ("before", "after")
]
QUERIES = ("red apple", "the battery of a phone", "late parcel")
MODES = ("hybrid", "dense", "lexical")
WORDS = [
    "red",
    "blue",
    "green",
    "apple",
    "car",
    "tree",
    "house",
    "late",
    "parcel",
    "great",
    "bad",
    "good",
    "battery",
    "phone",
    "the",
    "a",
    "of",
    "is",
    "slow",
]
PATIENCE = 120
"""Seconds within which every command must end."""
EXPECTED = r": text: text |^language: en|^shards: \d of \d|^waiting"
Answers = dict[tuple[str, str], list[tuple[str, float]]]


@dataclass
class Phase:
    """A source and what it gives: `before` the run, and after it."""

    name: str
    source: Path
    base: Path | None
    before: Answers
    after: Answers = field(default_factory=dict)
    operations: int = 0
    seconds: float = 0.0


def main() -> None:
    """Kill, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--only", nargs="*", default=list(SHARES), choices=list(SHARES))
    given = parser.parse_args()
    print(f"seed {given.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="ray") as name:
        failed = Tries(Path(name).resolve(), given.seed).run(given.kills, given.only)
    sys.exit(failed > 0)


class Command:
    """A running command."""

    def __init__(self, words: list[str], environment: Mapping[str, str], said: Path) -> None:
        main = [sys.executable, "-c", "from sonde.app.cli.main import main; main()"]
        with said.open("wb") as error:  # a file, which never blocks it
            self.process = subprocess.Popen([*main, *words], env=environment, stdout=subprocess.DEVNULL, stderr=error)
        self._said = said

    def ended(self) -> int:
        """Wait for its end; return its exit code, that of `timeout` if it hangs."""
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return 124

    @property
    def said(self) -> str:
        """What it wrote to standard error, without progress and what it says of the source."""
        lines = self._said.read_text(errors="replace").splitlines()
        return "\n".join(each for each in lines if each and not re.search(EXPECTED, each))


class Tries:
    """All tries on one cluster, which is repaired after each."""

    def __init__(self, place: Path, seed: int) -> None:
        """Start a cluster, and build what an undisturbed command gives."""
        self.place, self.seed = place, seed
        self.folder = place / "c.sonde"
        added = {
            "SONDE_WATCHED": str(place),
            "PYTHONPATH": f"{WATCHED}:{os.environ.get('PYTHONPATH', '')}",
            "OMP_NUM_THREADS": "1",
        }
        (place / "h").mkdir()
        self.cluster = Cluster(place / "h", added)
        self.finds: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.tries: Counter[str] = Counter()
        self.reached: Counter[str] = Counter()
        self.again: defaultdict[str, int] = defaultdict(int)

    def run(self, kills: int, kinds: list[str]) -> int:
        """Try everything; return how often something was wrong."""
        try:
            phases = self.phases()
            counts = {kind: round(kills * SHARES[kind]) for kind in kinds}
            order = sorted((number / count, kind, number) for kind, count in counts.items() for number in range(count))
            with suppress(KeyboardInterrupt):  # what was tried until then is told
                for _, kind, number in order:
                    self.tried(kind, number, phases)
            return self.told()
        finally:
            self.cluster.stop()

    def tried(self, kind: str, number: int, phases: list[Phase]) -> None:
        """Try once, and print and note what was wrong."""
        chance = random.Random(f"{self.seed} {kind} {number}")
        began = time.monotonic()
        found = self.two(phases, chance) if kind == "two" else self.one(kind, number, phases, chance)
        self.tries[kind] += 1
        print(f"{kind} {number}, {time.monotonic() - began:.0f} s: {found or 'right'}", flush=True)
        if found:
            self.finds[kind][found[:300]] += 1

    def told(self) -> int:
        """Print a table; return the number of failures."""
        print("\n| what | tries | while it worked | embedded twice, at most | failed |\n|---|---|---|---|---|")
        for kind, count in self.tries.items():
            print(f"| {kind} | {count} | {self.reached[kind]} | {self.again[kind]} | {self.finds[kind].total()} |")
        for kind, found in self.finds.items():
            for problem, count in found.items():
                print(f"{kind}: {count} × {problem}")
        return sum(found.total() for found in self.finds.values())

    def phases(self) -> list[Phase]:
        """A first build and an update, each built by a command that nobody disturbs."""
        first = Phase("first", self.place / "first.jsonl", None, {})
        update = Phase("update", self.place / "update.jsonl", self.place / "first.sonde", {})
        written(first.source, range(COUNT), changed=0)
        written(update.source, range(COUNT // 10, COUNT + COUNT // 5), changed=3)
        for phase in (first, update):
            began = time.monotonic()
            self.begin(phase)
            command = self.command(phase)
            if command.ended():
                sys.exit(f"it failed without a kill: {command.said}")
            phase.seconds = time.monotonic() - began
            phase.operations = (self.place / "operations").stat().st_size
            phase.after = answers(self.folder)
            shutil.copytree(self.folder, self.place / f"{phase.name}.sonde")
            print(f"{phase.name}: {phase.operations} file operations in {phase.seconds:.1f} s", flush=True)
        update.before = first.after
        return [first, update]

    def begin(self, phase: Phase) -> None:
        """Put in place what a phase starts from."""
        shutil.rmtree(self.folder, ignore_errors=True)
        for name in ("plan.json", "done.json", "operations", "embedded"):
            (self.place / name).unlink(missing_ok=True)
        if phase.base:
            shutil.copytree(phase.base, self.folder)

    def command(self, phase: Phase, on: str = "", *options: str) -> Command:
        """Start the command of a phase."""
        words = ["index", str(phase.source), "--to", str(self.folder), "--sync", "--model", "static", *options]
        words += ["--shards", str(SHARDS), "--on", on or self.cluster.address]
        environment = self.cluster.environment | ({"RAY_AUTH_TOKEN": "0" * 64} if on else {})
        return Command(words, environment, self.place / f"said{time.monotonic_ns()}")

    def one(self, kind: str, number: int, phases: list[Phase], chance: random.Random) -> str:
        """Disturb one command, repeat it, and return what is wrong."""
        phase = phases[chance.random() < 0.6]
        own = kind == "command" and number % 4 == 0
        self.begin(phase)
        moment = self.moment(kind, phase, number, chance)
        with Reader(self.folder, phase) as reader:
            command = self.command(phase, "ray" if own else "")
            self.disturb(kind, command, moment, chance)
            code = command.ended()
            early = command.said
            self.reached[kind] += (self.place / "done.json").exists() or "seconds" in moment
            (self.place / "plan.json").unlink(missing_ok=True)
            if kind == "head":
                self.cluster.stop()
                self.cluster.start()
            elif (kind == "frozen" and moment.get("for good")) or kind == "raylet":
                self.cluster.whole()
            again = self.command(phase)
            last = again.ended()
        self.cluster.whole()
        what = f"{phase.name}, {moment}: "
        if kind != "command" and (problem := unclear(code, early)):
            return f"{what}disturbed: {problem}"
        if code and kind in ("worker", "raylet", "frozen"):
            return f"{what}Ray did not go on: {early[-200:]}"
        if last:
            return f"{what}the same command ended with {last}: {again.said[-300:]}"
        if problem := reader.problem or self.wrong(kind, phase):
            return what + problem
        return ""

    def moment(self, kind: str, phase: Phase, number: int, chance: random.Random) -> dict[str, Any]:
        """Choose a moment: in turn a step of publishing, a file operation, and a time."""
        never = "collection.json" if phase.base else "work/01"
        steps = [each for each in STEPS if never not in each and (kind != "worker" or each.startswith("rename"))]
        if number % 3 == 0:
            return {"step": steps[number // 3 % len(steps)]}
        if number % 3 == 1:
            return {"operation": chance.randint(1, phase.operations)}
        return {"seconds": chance.uniform(1, phase.seconds)}

    def disturb(self, kind: str, command: Command, moment: dict[str, Any], chance: random.Random) -> None:
        """Kill or stop a process at a moment."""
        frozen = kind == "frozen"
        victims = {"command": lambda: [command.process.pid], "head": lambda: [self.cluster.head().pid]}
        raylet = lambda: [each.pid for each in self.cluster.raylets()[1:]]  # noqa: E731
        find = victims.get(kind, raylet if kind in ("raylet", "frozen") else list)
        spare = [command.process.pid] if kind == "worker" else []
        plan = {"signal": "SIGSTOP" if frozen else "SIGKILL", "kill": find(), "spare": spare, **moment}
        moment["for good"] = frozen and chance.random() < 0.5
        if "seconds" in moment:
            time.sleep(moment["seconds"])
            chosen = [each.pid for each in self.cluster.workers()] if kind == "worker" else plan["kill"]
            for process in chance.sample(chosen, min(1, len(chosen))):
                os.kill(process, getattr(signal, plan["signal"]))
        else:
            (self.place / "plan.new").write_text(json.dumps(plan))
            (self.place / "plan.new").rename(self.place / "plan.json")
        if frozen and not moment["for good"]:
            while (
                command.process.poll() is None and "seconds" not in moment and not (self.place / "done.json").exists()
            ):
                time.sleep(0.05)
            time.sleep(chance.uniform(0.5, 8))
            for process in plan["kill"]:
                os.kill(process, signal.SIGCONT)

    def wrong(self, kind: str, phase: Phase) -> str:
        """Return what is wrong with the collection, and note how many passages were embedded twice."""
        if answers(self.folder) != phase.after:
            return "the same command ends otherwise"
        if findings := Collection.open(self.folder).verify():
            return f"verify: {findings[0].part}: {findings[0].problem}"
        if (self.folder / "work").exists():
            return "unfinished work is left"
        log = self.place / "embedded"
        again = sum(count - 1 for count in Counter(log.read_text().split()).values()) if log.exists() else 0
        self.again[kind] = max(self.again[kind], again)
        most = BATCH if kind == "worker" else BATCH * CORES
        return f"{again} passages were embedded twice" if again > most else ""

    def two(self, phases: list[Phase], chance: random.Random) -> str:
        """Start two commands at once: one must win, and the other end with one line."""
        phase = phases[chance.random() < 0.6]
        self.begin(phase)
        with Reader(self.folder, phase) as reader:
            commands = [self.command(phase, "", "--wait", "0")]
            time.sleep(chance.uniform(0, 1.5))
            commands.append(self.command(phase, "", "--wait", "0"))
            codes = [each.ended() for each in commands]
        self.reached["two"] += 1
        told = [each.said for each in commands]
        if sorted(codes) != [0, 1]:
            return f"two commands ended with {codes}: {told}"
        if problem := unclear(1, told[codes.index(1)]):
            return f"the loser: {problem}"
        return reader.problem or self.wrong("two", phase)


class Reader:
    """Opens the collection again and again, and checks that each answer is that of a whole generation."""

    def __init__(self, folder: Path, phase: Phase) -> None:
        self.folder, self.phase = folder, phase
        self.problem = ""
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._read)

    def __enter__(self) -> "Reader":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _read(self) -> None:
        newest = False
        while not self._ended.wait(0.4) and not self.problem:
            there = generation_number(self.folder)
            try:
                found = answers(self.folder)
            except SondeError as error:
                if there:
                    self.problem = f"a reader: {error}"
                continue
            old = {key for key, value in found.items() if value == self.phase.before.get(key)}
            new = {key for key, value in found.items() if value == self.phase.after[key]}
            if len(old | new) < len(found) or (newest and len(new) < len(found)):
                self.problem = "a reader saw an answer of no whole generation"
            newest = newest or len(new) == len(found)


def written(path: Path, numbers: range, changed: int) -> None:
    """Write a source; each `changed`-th document has another text."""
    with path.open("w") as stream:
        for number in numbers:
            chance = random.Random(number)
            text = f"item {number} " + " ".join(chance.choices(WORDS, k=8))
            text = f"new {text}" if changed and number % changed == 0 else text
            stream.write(json.dumps({"id": f"d{number}", "text": text, "stars": chance.randint(1, 5)}) + "\n")


_lock = threading.Lock()
_encoders: list[Any] = []


def answers(folder: Path) -> Answers:
    """Return ids and scores of all queries in all modes; the model is loaded once."""
    with _lock:
        collection = Collection.open(folder, encoder=_encoders[0] if _encoders else None)
        found = {
            (query, mode): [(hit.id, hit.score) for hit in collection.search(query, mode=mode, k=20)]
            for query in QUERIES
            for mode in MODES
        }
        if not _encoders:
            _encoders.append(collection.stored.encoder)
        collection.close()
        return found


def unclear(code: int, told: str) -> str:
    """Return what is wrong with the end of a command: it succeeds, or says in one line why it does not."""
    if code == 0:
        return ""
    lines = told.splitlines()
    return "" if code == 1 and len(lines) == 1 else f"it ended with {code}: {told[-500:]}"


if __name__ == "__main__":
    main()
