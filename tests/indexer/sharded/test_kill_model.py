"""SIGKILL while the model of a sharded collection changes: readers see one model in all shards, and it goes on."""

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
from other_encoder import OtherEncoder, loaded
from thinned import thinned

from sonde.indexer.sharded.collection import ShardedCollection
from sonde.indexer.sharded.upkeep import verify_sharded
from sonde.indexer.store.models import PREVIOUS
from sonde.pipelines.search.search import search
from sonde.pipelines.search.settings import MODES, SearchSettings

RUNNER = Path(__file__).parents[2] / "support" / "killed_shards.py"
QUERIES = ("apple river cloud", "number 17 winter letter")
BEFORE, AFTER = FakeEncoder.spec.fingerprint, OtherEncoder().spec.fingerprint
MOMENTS = 32

Found = tuple[str, str | None, list[list[tuple[str, float]]]]
"""The model, the previous one, and the ids and scores that every mode gives for every query."""


@dataclass
class Phase:
    """A change of model, or the way back: what was there before it, and what an undisturbed run finds and does."""

    name: str
    before: Path
    earlier: Found
    expected: Found
    operations: int
    embedded: int


def found(folder: Path) -> Found:
    collection = ShardedCollection.open(folder, loader=loaded)  # type: ignore[arg-type]
    hits = [search(collection, query, SearchSettings(k=20, mode=mode)) for query in QUERIES for mode in MODES]
    assert verify_sharded(collection) == []
    name, previous = collection.spec.name, collection.get(PREVIOUS)
    collection.close()
    return name, previous, [[(hit.id, hit.score) for hit in each] for each in hits]


def process(phase: str, folder: Path, log: Path, event: str = "0") -> tuple[int | None, str, str]:
    """Run a phase in a process of its own; return its exit code and what it wrote."""
    forked = Forked(RUNNER, phase, folder, log, event)
    out, errors = forked.communicate()
    return forked.returncode, out, errors


@pytest.fixture(scope="module")
def phases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Phase]:
    """Undisturbed runs: a change, and after an update, the way back."""
    folder = tmp_path_factory.mktemp("undisturbed")
    encoder: Any = FakeEncoder()
    run("index", folder / "indexed.sonde", encoder)
    change = undisturbed("model", folder / "indexed.sonde")
    shutil.copytree(folder / "model.sonde", folder / "updated.sonde")
    other: Any = OtherEncoder()
    run("update", folder / "updated.sonde", other)
    return {"model": change, "undo": undisturbed("undo", folder / "updated.sonde")}


def undisturbed(name: str, before: Path) -> Phase:
    target, log = before.with_name(f"{name}.sonde"), before.with_name(f"{name}.log")
    shutil.copytree(before, target)
    code, out, errors = process(name, target, log)
    assert code == 0, errors
    operations, embedded = int(out.split()[-2]), log.stat().st_size if log.exists() else 0
    return Phase(name, before, found(before), found(target), operations, embedded)


def check(phase: Phase, tmp_path: Path, event: str) -> None:
    """Kill a run, look at what readers see, and repeat it if it has not switched."""
    folder, log = tmp_path / "c.sonde", tmp_path / "log"
    shutil.copytree(phase.before, folder)
    assert process(phase.name, folder, log, event)[0] == -signal.SIGKILL
    seen = found(folder)
    assert seen in (phase.earlier, phase.expected)
    if seen == phase.earlier:
        kind: Any = OtherEncoder if phase.name == "model" else FakeEncoder
        run(phase.name, folder, kind(log))
    assert found(folder) == phase.expected
    if phase.name == "model":
        assert log.stat().st_size <= phase.embedded + 6 * BATCH, "at most one batch is embedded again"
    encoder: Any = loaded(ShardedCollection.open(folder).spec)
    run("delete", folder, encoder)
    left = {path.name for path in (folder / "models").iterdir() if path.is_dir()}
    assert left <= {BEFORE, AFTER}


STEPS = [
    (phase, step)
    for phase, new, old in (("model", AFTER, BEFORE), ("undo", BEFORE, AFTER))
    for step in (
        f"create:before:models/{new}/generations",
        f"create:after:models/{old}/generations",
        "rename:after:shards/01",
        "rename:after:runs",
        "create:before:generations",
        "create:after:generations",
    )
    if (phase, step) != ("undo", f"create:after:models/{new}/generations")
]


@pytest.mark.parametrize(("name", "step"), thinned(STEPS, 3))
def test_killed_at_a_step(phases: dict[str, Phase], tmp_path: Path, name: str, step: str) -> None:
    check(phases[name], tmp_path, step)


@pytest.mark.long
@pytest.mark.parametrize("moment", thinned(range(MOMENTS), 16))
def test_killed_at_a_file_operation(phases: dict[str, Phase], tmp_path: Path, moment: int) -> None:
    phase = phases[("model", "undo")[moment // 16]]
    check(phase, tmp_path, str(random.Random(moment + 3).randint(1, phase.operations)))
