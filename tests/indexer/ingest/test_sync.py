"""`sync` deletes what a source no longer has, and nothing else: no other source, no unreadable file."""

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from fake_encoder import FakeEncoder
from word_files import run as written
from word_files import word

from sonde.app.api import Collection, index
from sonde.indexer.errors import UsageError
from sonde.indexer.ingest.sync import SAMPLES
from sonde.indexer.store.catalog import Catalog


def table(folder: Path, name: str, numbers: range) -> Path:
    path = folder / name
    path.write_text("ticket_id,text\n" + "".join(f"{n},The card of letter {n} was lost\n" for n in numbers))
    return path


def run(sources: Path | list[Path], folder: Path, **given: Any) -> Collection:
    encoder: Any = FakeEncoder()
    return index(sources, folder / "t.sonde", encoder=encoder, **given)


def counts(made: Collection) -> tuple[int, int, int]:
    assert made.report is not None
    return made.report.added, made.report.unchanged, made.report.deleted


def test_a_second_source_is_not_deleted(tmp_path: Path) -> None:
    """It was, if it had less than half of the documents."""
    large, small = table(tmp_path, "large.csv", range(60)), table(tmp_path, "small.csv", range(100, 110))
    run(large, tmp_path)
    run(small, tmp_path)
    said = "sync would delete the documents of small.csv, which is not among the sources now, so nothing was changed"
    with pytest.raises(UsageError, match=said):
        run(large, tmp_path, sync=True)
    with Collection.open(tmp_path / "t.sonde", encoder=FakeEncoder()) as opened:  # type: ignore[arg-type]
        assert len(opened) == 70
    table(tmp_path, "large.csv", range(1, 60))
    assert counts(run([large, small], tmp_path, sync=True)) == (0, 69, 1)
    only = table(tmp_path, "large.csv", range(2, 60))
    assert counts(run(only, tmp_path, sync=True, delete_most=True)) == (0, 58, 11)


def test_a_newer_file_under_another_name_takes_the_place_of_the_older(tmp_path: Path) -> None:
    weeks = [table(tmp_path, f"week-{week}.csv", range(week * 4, 40 + week * 4)) for week in range(6)]
    found = [counts(run(week, tmp_path, sync=True)) for week in weeks]
    assert found == [(40, 0, 0), *[(4, 36, 4)] * 5]


def test_a_source_that_nothing_is_left_of_is_forgotten(tmp_path: Path) -> None:
    """What is no longer there cannot be deleted."""
    large, small = table(tmp_path, "large.csv", range(60)), table(tmp_path, "small.csv", range(100, 110))
    run(large, tmp_path)
    run(small, tmp_path).delete([str(number) for number in range(100, 109)])
    assert counts(run(large, tmp_path, sync=True)) == (0, 60, 1)


@pytest.mark.parametrize(
    "stored", [7, [7], [{}], [{"sources": "large.csv", "ids": ["1"]}], [{"sources": [], "ids": [1]}]]
)
def test_what_a_received_collection_says_of_sources_is_not_trusted(tmp_path: Path, stored: object) -> None:
    large = table(tmp_path, "large.csv", range(30))
    run(large, tmp_path)
    with closing(Catalog.open(tmp_path / "t.sonde" / "catalog.db", write=True)) as catalog:
        catalog.set(SAMPLES, stored)
    table(tmp_path, "large.csv", range(1, 31))
    assert counts(run(large, tmp_path, sync=True)) == (1, 29, 1)


@pytest.mark.parametrize("shards", [None, 3])
def test_a_document_whose_file_cannot_be_read_now_stays(tmp_path: Path, shards: int | None) -> None:
    """Word files that got a password were deleted from the collection, as if they were gone."""
    texts = tmp_path / "texts"
    texts.mkdir()
    for number in range(12):
        name = f"{number}.docx" if number < 6 else f"{number}.txt"
        (texts / name).write_bytes(word(f"<w:p>{written(name)}</w:p>") if number < 6 else name.encode())
    run(texts, tmp_path, shards=shards)
    for number in range(4):
        (texts / f"{number}.docx").write_bytes(b"\xd0\xcf\x11\xe0 a password")
    (texts / "5.docx").unlink()
    (texts / "6.txt").write_bytes(b"")
    made = run(texts, tmp_path, shards=shards, sync=True)
    assert counts(made) == (0, 6, 2)
    assert {row["id"] for row in made.rows()} == {f"{n}.docx" for n in range(5)} | {f"{n}.txt" for n in range(7, 12)}
    assert counts(run(texts, tmp_path, shards=shards, sync=True)) == (0, 6, 0)


def test_files_that_are_gone_are_told_without_sync(tmp_path: Path) -> None:
    texts, said = tmp_path / "texts", list[object]()
    texts.mkdir()
    for number in range(5):
        (texts / f"{number}.txt").write_text(f"The card of letter {number} was lost.")
    run(texts, tmp_path)
    (texts / "3.txt").unlink()
    assert counts(run(texts, tmp_path, progress=said.append)) == (0, 4, 0)
    assert f"note: 1 document of {tmp_path / 't.sonde'} has no file any more; sync deletes such documents" in said
    run(table(tmp_path, "more.csv", range(3)), tmp_path)
    said.clear()
    run(texts, tmp_path, progress=said.append)
    assert not [each for each in said if "no file any more" in str(each)]


def test_messages_of_two_mailboxes_with_one_id_are_told(tmp_path: Path) -> None:
    """A copy with a footer of a mailing list replaced the other one in silence."""
    said = list[object]()
    for name, more in (("mine.mbox", ""), ("list.mbox", "_____\nTo leave this list, write to the owner.\n")):
        mail = f"From a@b.c Thu Jan  1 00:00:00 1970\nMessage-ID: <1@b.c>\nSubject: Lost\n\nMy card was lost.\n{more}\n"
        (tmp_path / name).write_text(mail)
        run(tmp_path / name, tmp_path, progress=said.append)
    [note] = [str(each) for each in said if "Message-ID of another text" in str(each)]
    assert note.startswith(
        f"note: 1 message of {tmp_path / 'list.mbox'} has the Message-ID of another text that was there"
    )
    assert note.endswith('make a new collection from both with id="", whose ids are not Message-IDs')
