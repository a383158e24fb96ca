"""Lost shards are built again from the sources, and then give the same answers as before."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from fake_encoder import FakeEncoder
from two_ways import TwoWays, differences, rows

from sonde.app.api import Collection, index
from sonde.indexer.errors import SondeError, UsageError
from sonde.indexer.ingest import BuildSettings
from sonde.indexer.sharded.build import in_turn, index_sharded

ENCODER: Any = FakeEncoder()


@pytest.fixture
def both(tmp_path: Path) -> TwoWays:
    """One collection and a sharded one, of two sources; documents have tags."""
    both = TwoWays(tmp_path)
    both.index(rows(120))
    both.index(rows(40, seed=1, start=500))
    for each in (both.one, both.sharded):
        each.tag("mine", ids=[f"d{number}" for number in (*range(0, 60, 3), *range(500, 520))])
    return both


def lose(both: TwoWays, *shards: int) -> Path:
    for shard in shards:
        shutil.rmtree(both.folder / "sharded.sonde" / "shards" / f"{shard:02d}")
    return both.folder / "sharded.sonde"


def rebuilt(folder: Path, given: list, **options: Any) -> Collection:
    return index(given, folder, encoder=ENCODER, rebuild=True, **options)


def tagged(collection: Collection) -> list[str]:
    return sorted(row["id"] for row in collection.rows(where='"tag:mine" = true'))


def test_a_lost_shard_has_the_same_answers_again(both: TwoWays) -> None:
    before = tagged(both.sharded)
    folder = lose(both, 1)
    with pytest.raises(SondeError, match=r"rebuild the shard with `sonde index SOURCES --to .* --rebuild`$"):
        index(rows(120), folder, encoder=ENCODER)
    report = rebuilt(folder, rows(120) + rows(40, seed=1, start=500)).report
    assert report is not None
    assert differences(both) == []
    assert both.sharded.verify() == []
    assert tagged(both.sharded) == tagged(both.one) == before
    held = sum(both.sharded.stored.sharding.shard_of(row["id"]) == 1 for row in both.sharded.rows())  # type: ignore[attr-defined]
    assert (report.added, report.unchanged) == (held, 160 - held)
    assert report.notes[-1] == f"rebuilt lost shard 01 with {held} documents"


@pytest.mark.long
def test_two_lost_shards_and_one_source_after_the_other(both: TwoWays) -> None:
    """The source that has most of their documents brings them back; a later run brings the rest, and tags say less."""
    before = tagged(both.sharded)
    folder = lose(both, 0, 2)
    found = rebuilt(folder, rows(120))
    assert [note.split(" documents; ")[1] for note in found.report.notes[-2:]]  # type: ignore[union-attr]
    assert found.verify() == []
    index(rows(40, seed=1, start=500), folder, encoder=ENCODER)
    assert len(both.sharded) == 160
    assert both.sharded.verify() == []
    again = tagged(both.sharded)
    assert {id for id in before if int(id[1:]) < 500} == {id for id in again if int(id[1:]) < 500}
    assert set(again) < set(before)


def test_a_source_whose_rows_moved_gives_no_tag_to_another_document(both: TwoWays) -> None:
    before = tagged(both.sharded)
    folder = lose(both, 3)
    moved = rows(120)[::-1] + rows(40, seed=1, start=500)
    assert set(tagged(rebuilt(folder, moved))) <= set(before)
    assert both.sharded.verify() == []
    assert len(both.sharded) == 160


def test_another_source_is_refused(both: TwoWays) -> None:
    folder = lose(both, 1)
    with pytest.raises(UsageError, match=r"^lost shard 01 had \d+ documents, but the given sources have only \d+"):
        rebuilt(folder, rows(9, start=900))
    found = rebuilt(folder, rows(9, start=900), delete_most=True)
    assert found.verify() == []


def test_repair_says_how_to_replace_a_shard_whose_texts_are_damaged(both: TwoWays) -> None:
    folder = both.sharded.path
    place = folder / "shards" / "01"
    for catalog in place.glob("*/catalog.db"):
        with closing(sqlite3.connect(catalog)) as connection, connection:
            connection.execute("DELETE FROM metadata WHERE doc = (SELECT min(doc) FROM metadata)")
    with pytest.raises(SondeError, match=r"^shard 01: .*: `sonde repair` cannot fix this. Restore") as found:
        both.sharded.repair()
    index_again = f"rebuild the shard with `sonde index SOURCES --to {folder} --rebuild`"
    assert str(found.value).endswith(f" from a backup, or delete {place} and {index_again}")


@pytest.mark.long
def test_a_rebuild_that_was_stopped_continues(both: TwoWays) -> None:
    folder, given = lose(both, 1), rows(120) + rows(40, seed=1, start=500)

    def stopped(tasks: Any, encoder: Any, notify: Any) -> Any:
        yield next(iter(in_turn(tasks, encoder, notify)))
        raise KeyboardInterrupt("stopped here")

    settings = BuildSettings(rebuild=True)
    with pytest.raises(KeyboardInterrupt, match="stopped here"):
        index_sharded(given, folder, settings=settings, encoder=ENCODER, runner=stopped)
    rebuilt(folder, given)
    assert differences(both) == []
    assert both.sharded.verify() == []


def test_nothing_is_lost(both: TwoWays, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^no shard of .*sharded\.sonde is lost, so there is nothing to rebuild"):
        rebuilt(both.folder / "sharded.sonde", rows(120))
    with pytest.raises(UsageError, match="has no shards: leave out "):
        rebuilt(both.folder / "one.sonde", rows(120))
    with pytest.raises(UsageError, match="is lost, so there is nothing to rebuild"):
        rebuilt(tmp_path / "new.sonde", rows(9), shards=2)


def test_lost_runs_are_no_lost_shard(both: TwoWays) -> None:
    folder = lose(both, 1)
    shutil.rmtree(folder / "runs")
    with pytest.raises(SondeError, match=r"/runs/.* is missing: restore .* or index its sources into a new folder"):
        rebuilt(folder, rows(120))
