"""SIGKILL while the model changes: the collection has one model or the other, whole, and the same command goes on."""

import itertools
import random
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from fake_encoder import FakeEncoder
from forked import Forked
from kill_corpus import BATCH, changed, documents
from other_encoder import OtherEncoder, changed_to, opened
from thinned import thinned

from sonde.indexer.ingest import BuildSettings, index_documents
from sonde.indexer.upkeep.verify import verify
from sonde.pipelines.search.search import search
from sonde.pipelines.search.settings import MODES, SearchSettings

RUNNER = Path(__file__).parents[2] / "support" / "killed_run.py"
QUERIES = ("apple river cloud", "a late arrival about music", "number 17 winter letter", "the same text again")
STEPS = ("keep_embeddings", "_linked", "_moved", "_commit", "sweep")
RANDOM_MOMENTS, EVENTS = 6, 30
AROUND = list(itertools.product(STEPS, (0, 1), ("before", "after")))

Found = tuple[str, list[list[tuple[str, float]]]]
"""The model's name, and the ids and scores that every mode gives for every query."""


@dataclass
class Phase:
    """A change of model, or the way back: the collection before and after, and what both find."""

    name: str
    before: Path
    found: tuple[Found, Found]
    seconds: float


def found(folder: Path) -> Found:
    collection = opened(folder)
    results = [search(collection, query, SearchSettings(k=20, mode=mode)) for query in QUERIES for mode in MODES]
    hits = [
        [(hit.id, round(hit.score, 4)) for hit in sorted(each, key=lambda h: (-round(h.score, 4), h.id))]
        for each in results
    ]
    name = collection.spec.name
    collection.close()
    return name, hits


def run(phase: str, folder: Path, log: Path, event: str = "0") -> Forked:
    return Forked(RUNNER, phase, folder, log, event)


@pytest.fixture(scope="module")
def phases(tmp_path_factory: pytest.TempPathFactory) -> list[Phase]:
    """Undisturbed runs of both, one on top of the other; documents change in between."""
    place = tmp_path_factory.mktemp("undisturbed")
    settings = BuildSettings(batch=BATCH)
    index_documents(documents(), place / "first.sonde", settings=settings, encoder=FakeEncoder())  # type: ignore[arg-type]
    shutil.copytree(place / "first.sonde", place / "model.sonde")
    timed = _timed("model", place / "model.sonde")
    found_first, found_model = found(place / "first.sonde"), found(place / "model.sonde")
    assert (found_first[0], found_model[0]) == ("fake", "other")
    shutil.copytree(place / "model.sonde", place / "later.sonde")
    later = BuildSettings(batch=BATCH, sync=True)
    index_documents(changed(), place / "later.sonde", settings=later, encoder=OtherEncoder())  # type: ignore[arg-type]
    shutil.copytree(place / "later.sonde", place / "undo.sonde")
    back = _timed("undo", place / "undo.sonde")
    return [
        Phase("model", place / "first.sonde", (found_first, found_model), timed),
        Phase("undo", place / "later.sonde", (found(place / "later.sonde"), found(place / "undo.sonde")), back),
    ]


def _timed(phase: str, folder: Path) -> float:
    began = time.monotonic()
    process = run(phase, folder, folder.with_suffix(".log"))
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    return time.monotonic() - began


def check(phase: Phase, folder: Path) -> None:
    """After a kill: one model or the other, whole; the same command ends as if nothing had happened."""
    collection = opened(folder)
    assert [finding for finding in verify(collection) if finding.part not in ("ann", "lexical")] == []
    now = collection.spec.name
    collection.close()
    old, new = phase.found
    assert found(folder) == (old if now == old[0] else new)
    if now == old[0]:
        changed_to(OtherEncoder() if phase.name == "model" else None, folder)
    assert found(folder) == new
    collection = opened(folder)
    assert verify(collection) == []
    collection.close()
    if phase.name == "model":  # what is kept of the old model is whole, too
        changed_to(None, folder)
        assert found(folder) == old


@pytest.mark.parametrize("moment", thinned(range(RANDOM_MOMENTS), 6))
def test_killed_at_a_random_moment(phases: list[Phase], tmp_path: Path, moment: int) -> None:
    phase = phases[moment % 2]
    folder = Path(shutil.copytree(phase.before, tmp_path / "c.sonde"))
    process = run(phase.name, folder, tmp_path / "log")
    time.sleep(random.Random(moment).uniform(0.3, 0.95) * phase.seconds)
    process.kill()
    process.communicate()
    check(phase, folder)


@pytest.mark.parametrize("number", thinned(range(EVENTS), 7))
def test_killed_at_a_file_operation(phases: list[Phase], tmp_path: Path, number: int) -> None:
    phase = phases[number % 2]
    folder = Path(shutil.copytree(phase.before, tmp_path / "c.sonde"))
    run(phase.name, folder, tmp_path / "log", str(1 + 11 * (number // 2))).communicate()
    check(phase, folder)


@pytest.mark.parametrize(("step", "phase", "when"), thinned(AROUND, 4))
def test_killed_around_a_step_of_the_exchange(
    phases: list[Phase], tmp_path: Path, phase: int, step: str, when: str
) -> None:
    folder = Path(shutil.copytree(phases[phase].before, tmp_path / "c.sonde"))
    process = run(phases[phase].name, folder, tmp_path / "log", f"{when}:{step}")
    process.communicate()
    assert process.returncode == -9
    # All steps but the last come before the commit, or are the commit itself.
    switched = (step, when) in (("_commit", "after"), ("sweep", "before"), ("sweep", "after"))
    collection = opened(folder)
    assert collection.spec.name == phases[phase].found[switched][0]
    collection.close()
    check(phases[phase], folder)


def test_what_was_embedded_before_a_kill_is_kept(phases: list[Phase], tmp_path: Path) -> None:
    once, log = tmp_path / "once", tmp_path / "log"
    changed_to(OtherEncoder(once), Path(shutil.copytree(phases[0].before, tmp_path / "a.sonde")))
    folder = Path(shutil.copytree(phases[0].before, tmp_path / "b.sonde"))
    process = run("model", folder, log)
    while not list(folder.glob("models/*/vectors/*.npy")) and process.poll() is None:
        time.sleep(0.002)
    process.kill()
    process.communicate()
    changed_to(OtherEncoder(log), folder)
    assert once.stat().st_size <= log.stat().st_size < 1.8 * once.stat().st_size
