"""Tasks of a command that died are still running, as on Ray, while the same command or another one runs."""

import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from fake_encoder import FakeEncoder
from two_ways import rows, told

from sonde.app.api import Collection
from sonde.indexer.errors import WriterBusyError
from sonde.indexer.ingest import BuildSettings
from sonde.indexer.sharded import generations, spool
from sonde.indexer.sharded.build import in_turn, index_sharded
from sonde.indexer.sharded.layout import work_folder
from sonde.indexer.sharded.shard import ShardTask, build_shard
from sonde.indexer.sharded.spool import read_spool, spool_file, spools

COUNT, SHARDS = 120, 2
MANY = 2_000
"""Documents whose file is longer than what is read from it at a time."""


class DiedError(Exception):
    """The command is dead."""


def begun(folder: Path, documents: Sequence[dict[str, Any]]) -> list[ShardTask]:
    """Begin a run whose command dies before any task has run; return its tasks."""
    left: list[ShardTask] = []

    def dying(tasks: Sequence[ShardTask], *_: object) -> Any:
        left.extend(tasks)
        raise DiedError("the command is dead")

    with pytest.raises(DiedError, match="the command is dead"):
        run(folder, documents, dying)
    return left


def run(folder: Path, documents: Sequence[dict[str, Any]], runner: Any = in_turn, encoder: Any = None) -> None:
    settings = BuildSettings(batch=10)
    index_sharded(list(documents), folder, SHARDS, settings=settings, runner=runner, encoder=encoder or FakeEncoder())  # type: ignore[arg-type]


def hits(folder: Path) -> list[Any]:
    encoder: Any = FakeEncoder()
    opened = Collection.open(folder, encoder=encoder)
    assert opened.verify() == []
    return [told(opened.search(query, k=50)) for query in ("red apple", "late parcel")]


@pytest.fixture
def undisturbed(tmp_path: Path) -> list[Any]:
    run(tmp_path / "undisturbed.sonde", rows(COUNT))
    return hits(tmp_path / "undisturbed.sonde")


def test_its_documents_stay_whole_while_the_same_command_reads_the_source_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The orphan reads on while the repeated command has written only some of them."""
    folder, read = tmp_path / "c.sonde", []
    [task, _] = begun(folder, rows(MANY))
    reading = read_spool(spool_file(spools(folder) / task.spool, 0))
    read.append(next(reading))
    real = spool.unfit
    monkeypatch.setattr(spool, "unfit", lambda document: read.extend(reading) or real(document))
    begun(folder, rows(MANY))
    assert len(read) == task.documents


def test_the_task_of_the_repeated_command_waits_and_takes_what_the_orphan_built(tmp_path: Path, undisturbed: list[Any]):
    folder, slow, fresh = tmp_path / "c.sonde", FakeEncoder(tmp_path / "log", seconds=0.01), FakeEncoder(tmp_path / "b")
    [task, _] = begun(folder, rows(COUNT))
    orphan = threading.Thread(target=build_shard, args=(task, slow))
    orphan.start()
    while not list((work_folder(folder) / "00").glob("collection.sonde/catalog.db")):
        time.sleep(0.01)
    run(folder, rows(COUNT), encoder=fresh)
    orphan.join()
    assert hits(folder) == undisturbed
    assert (tmp_path / "log").stat().st_size + (tmp_path / "b").stat().st_size <= COUNT


def test_what_a_run_left_is_not_continued_by_another_one(tmp_path: Path):
    folder = tmp_path / "c.sonde"
    [task, _] = begun(folder, rows(COUNT, seed=7))
    begun(folder, rows(COUNT))
    there = generations.begun(folder, 0, None, task.version)  # the orphan begins only now
    (there.parent / "copy").mkdir()
    (there / "left").mkdir(parents=True)
    run(folder, rows(COUNT))
    run(tmp_path / "other.sonde", rows(COUNT))
    assert hits(folder) == hits(tmp_path / "other.sonde")
    assert not (folder / "work").exists()


def test_an_orphan_that_does_not_end_is_named_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = tmp_path / "c.sonde"
    [task, _] = begun(folder, rows(COUNT))
    monkeypatch.setattr(generations, "ORPHANS", 0.1)
    with (
        generations.alone(folder, 0),
        pytest.raises(WriterBusyError, match=r"shard 00 of .* is still being built for an earlier"),
    ):
        build_shard(task, FakeEncoder())  # type: ignore[arg-type]
