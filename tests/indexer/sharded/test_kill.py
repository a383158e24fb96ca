"""SIGKILL of a run over shards: readers see a whole generation, and repeating the command ends as without the kill."""

import random
import shutil
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fake_encoder import FakeEncoder
from forked import Forked
from kill_corpus import BATCH
from killed_shards import run
from stored_runs import Stored, stored_runs
from thinned import thinned

from sonde.app.api import Collection
from sonde.indexer.sharded.collection import ShardedCollection
from sonde.indexer.sharded.generations import generation_number
from sonde.indexer.sharded.upkeep import verify_sharded
from sonde.pipelines.search.search import search
from sonde.pipelines.search.settings import MODES, SearchSettings

RUNNER = Path(__file__).parents[2] / "support" / "killed_shards.py"
QUERIES = ("apple river cloud", "a late arrival about music", "number 17 winter letter", "the same text again")
RANDOM_MOMENTS = 4
"""File operations per phase at which a run is killed, chosen at random."""

Found = tuple[list[list[tuple[str, float]]], Stored]
"""The hits of every query in every mode, and everything that is stored of runs."""
PHASES = ("index", "cluster", "tag", "update", "delete", "compact", "late")


@dataclass
class Phase:
    """One phase of the collection's life: what was there before it, what an undisturbed run finds and how it works."""

    name: str
    before: Path | None
    earlier: Found
    expected: Found
    operations: int
    statements: int
    embedded: int


def found(folder: Path) -> Found:
    """What a reader finds; nothing before the first generation."""
    if not generation_number(folder):
        return [], {}
    encoder: Any = FakeEncoder()
    collection = ShardedCollection.open(folder, encoder=encoder)
    results = [search(collection, query, SearchSettings(k=20, mode=mode)) for query in QUERIES for mode in MODES]
    results.append(search(collection, QUERIES[0], SearchSettings(k=20, rerank=True)))
    assert verify_sharded(collection) == []
    runs = stored_runs(Collection(collection))
    collection.close()
    return [[(hit.id, hit.score) for hit in hits] for hits in results], runs


def process(phase: str, folder: Path, log: Path, event: str = "0") -> tuple[int | None, str, str]:
    """Run a phase in a process of its own; return its exit code and what it wrote."""
    forked = Forked(RUNNER, phase, folder, log, event)
    out, errors = forked.communicate()
    return forked.returncode, out, errors


@pytest.fixture(scope="module")
def phases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Phase]:
    """Undisturbed runs of all phases, one on top of the other."""
    folder, before, made = tmp_path_factory.mktemp("undisturbed"), None, {}
    for name in PHASES:
        target, log = folder / f"{name}.sonde", folder / f"{name}.log"
        if before:
            shutil.copytree(before, target)
        earlier = found(target)
        code, out, errors = process(name, target, log)
        assert code == 0, errors
        embedded = log.stat().st_size if log.exists() else 0
        operations, statements = map(int, out.split()[-2:])
        made[name] = Phase(name, before, earlier, found(target), operations, statements, embedded)
        before = target
    return made


def check(phase: Phase, tmp_path: Path, event: str) -> int:
    """Kill a run, look at what readers see, repeat it; return how many passages both runs embedded."""
    folder, log = tmp_path / "c.sonde", tmp_path / "log"
    if phase.before:
        shutil.copytree(phase.before, folder)
    assert process(phase.name, folder, log, event)[0] == -signal.SIGKILL
    seen = found(folder)
    assert seen in (phase.earlier, phase.expected)
    encoder: Any = FakeEncoder(log)
    run(phase.name, folder, encoder)
    assert found(folder) == phase.expected
    return log.stat().st_size if log.exists() else 0


STEPS = [
    ("index", "create:before:collection.json"),
    ("index", "create:after:collection.json"),
    *(
        (phase, step)
        for phase in ("index", "update", "delete", "compact", "late")
        for step in (
            "rename:before:work/01",
            "rename:before:shards/00",
            "rename:after:shards/01",
            "rename:after:shards/02",
            "rename:before:runs",
            "rename:after:runs",
            "create:before:generations",
            "create:after:generations",
        )
        if (phase, step) != ("index", "rename:before:work/01")  # nothing is copied for the first generation
        and (phase in ("update", "delete") or ":runs" not in step)  # documents of runs have changed or gone
    ),
    *(
        (phase, step)
        for phase in ("cluster", "tag")
        for step in ("rename:before:runs", "rename:after:runs", "create:before:generations", "create:after:generations")
    ),
]


@pytest.mark.parametrize(("name", "step"), thinned(STEPS, 8))
def test_killed_at_a_step_of_publishing(phases: dict[str, Phase], tmp_path: Path, name: str, step: str) -> None:
    phase = phases[name]
    passages = 6 * BATCH  # of a batch: the longest documents have six
    assert check(phase, tmp_path, step) <= phase.embedded + passages


@pytest.mark.parametrize("moment", thinned(range(len(PHASES) * RANDOM_MOMENTS), 5))
def test_killed_at_a_file_operation(phases: dict[str, Phase], tmp_path: Path, moment: int) -> None:
    phase = list(phases.values())[moment % len(PHASES)]
    check(phase, tmp_path, str(random.Random(moment).randint(1, phase.operations)))


@pytest.mark.parametrize("name", ["cluster", "tag", "update", "delete"])
@pytest.mark.parametrize("part", thinned(range(20), 20))
def test_killed_at_a_statement_of_the_catalog_of_runs(phases: dict[str, Phase], tmp_path: Path, name: str, part: int):
    phase = phases[name]
    assert phase.statements > 20
    check(phase, tmp_path, f"sql:{1 + part * phase.statements // 20}")
