"""SIGKILL at any moment: nothing committed is lost, the same command goes on, and ends as an undisturbed run does."""

import random
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from fake_encoder import FakeEncoder
from forked import Forked
from kill_corpus import BATCH, changed, documents
from thinned import thinned

from sonde.indexer.errors import SondeError
from sonde.indexer.ingest import BuildSettings, index_documents
from sonde.indexer.store.collection import StoredCollection
from sonde.indexer.store.lock import being_written
from sonde.indexer.upkeep.delete import compact
from sonde.indexer.upkeep.verify import verify
from sonde.pipelines.search.search import search
from sonde.pipelines.search.settings import MODES, SearchSettings

RUNNER = Path(__file__).parents[2] / "support" / "killed_run.py"
QUERIES = ("apple river cloud", "a late arrival about music", "number 17 winter letter", "the same text again")
RANDOM_MOMENTS = 30
EVENTS_PER_PHASE = 12

Found = list[list[tuple[str, float]]]


@dataclass
class Phase:
    """One phase of the collection's life: what was there before it, and what an undisturbed run makes of it."""

    name: str
    before: Path | None
    expected: Found
    seconds: float


def found(folder: Path) -> Found:
    """The ids and scores that every mode gives for every query."""
    collection = StoredCollection.open(folder, encoder=FakeEncoder())  # type: ignore[arg-type]
    results = [search(collection, query, SearchSettings(k=20, mode=mode)) for query in QUERIES for mode in MODES]
    collection.close()
    return [
        [(hit.id, round(hit.score, 4)) for hit in sorted(hits, key=lambda h: (-round(h.score, 4), h.id))]
        for hits in results
    ]


def run(phase: str, folder: Path, log: Path, event: int = 0) -> Forked:
    return Forked(RUNNER, phase, folder, log, event)


def resume(phase: str, folder: Path, log: Path) -> None:
    """The same command again, in this process."""
    encoder = FakeEncoder(log)
    if phase == "compact":
        compact(folder)
    else:
        given = documents() if phase == "index" else changed()
        settings = BuildSettings(batch=BATCH, sync=phase == "update")
        index_documents(given, folder, settings=settings, encoder=encoder)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def phases(tmp_path_factory: pytest.TempPathFactory) -> list[Phase]:
    """Undisturbed runs of all three phases, one on top of the other."""
    folder = tmp_path_factory.mktemp("undisturbed")
    made, before = [], None
    for name in ("index", "update", "compact"):
        target = folder / f"{name}.sonde"
        if before:
            shutil.copytree(before, target)
        began = time.monotonic()
        process = run(name, target, folder / "log", event=10**6)
        _, errors = process.communicate()
        assert process.returncode == 0, errors
        made.append(Phase(name, before, found(target), time.monotonic() - began))
        before = target
    return made


def check(phase: Phase, folder: Path, log: Path) -> None:
    """After a kill: what is there is whole, and the same command ends as if nothing had happened."""
    if (folder / "catalog.db").exists():
        collection = StoredCollection.open(folder, encoder=FakeEncoder())  # type: ignore[arg-type]
        if collection.get("model"):
            assert [finding for finding in verify(collection) if finding.part not in ("ann", "lexical")] == []
        collection.close()
    resume(phase.name, folder, log)
    collection = StoredCollection.open(folder, encoder=FakeEncoder())  # type: ignore[arg-type]
    assert verify(collection) == []
    collection.close()
    assert found(folder) == phase.expected


@pytest.mark.parametrize("moment", thinned(range(RANDOM_MOMENTS)))
def test_killed_at_a_random_moment(phases: list[Phase], tmp_path: Path, moment: int) -> None:
    phase = phases[moment % 3]
    folder, log = tmp_path / "c.sonde", tmp_path / "log"
    if phase.before:
        shutil.copytree(phase.before, folder)
    process = run(phase.name, folder, log)
    time.sleep(random.Random(moment).uniform(0.3, 0.95) * phase.seconds)
    process.kill()
    process.communicate()
    check(phase, folder, log)


@pytest.mark.parametrize("event", thinned(range(1, EVENTS_PER_PHASE * 3 + 1)))
def test_killed_at_a_file_operation(phases: list[Phase], tmp_path: Path, event: int) -> None:
    """The n-th time that the writer opens, renames or removes one of the collection's files is its last."""
    phase = phases[event % 3]
    folder, log = tmp_path / "c.sonde", tmp_path / "log"
    if phase.before:
        shutil.copytree(phase.before, folder)
    run(phase.name, folder, log, event=1 + (event // 3) * 4 + event % 4).communicate()
    check(phase, folder, log)


def test_at_most_one_batch_is_embedded_twice(phases: list[Phase], tmp_path: Path) -> None:
    once, log = tmp_path / "once", tmp_path / "log"
    index_documents(
        documents(),
        tmp_path / "a.sonde",
        settings=BuildSettings(batch=BATCH),
        encoder=FakeEncoder(once),  # type: ignore[arg-type]
    )
    largest = 6 * BATCH  # passages of a batch: the longest documents have six
    for moment in range(4):
        folder = tmp_path / f"{moment}.sonde"
        log.unlink(missing_ok=True)
        process = run("index", folder, log)
        time.sleep(phases[0].seconds * (0.5 + 0.1 * moment))
        process.kill()
        process.communicate()
        resume("index", folder, log)
        assert once.stat().st_size <= log.stat().st_size <= once.stat().st_size + largest


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "c.sonde"
    process = run("index", folder, tmp_path / "log")
    try:
        while not being_written(folder) and process.poll() is None:
            time.sleep(0.005)
        with pytest.raises(SondeError, match=rf"is being written to by process {process.pid} since"):
            compact(folder)
    finally:
        process.communicate()
    assert process.returncode == 0
