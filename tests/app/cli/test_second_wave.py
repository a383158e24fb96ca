"""A second wave of answers: label runs that lack it, labels that changed, and corrections of texts that changed."""

from pathlib import Path
from typing import Any

import pytest
from command_line import Command
from small_reviews import encoder, lines, sonde  # noqa: F401  (fixtures)
from themes import rows

LABELS = ("--labels", "parcel,battery,screen,refund", "--name", "codes")


@pytest.fixture
def shop(sonde: Command, tmp_path: Path) -> Path:  # noqa: F811
    first: list[dict[str, Any]] = [{"id": row["id"], "text": row["text"]} for row in rows(10)]
    assert sonde("index", lines(tmp_path / "one.jsonl", first), "--to", tmp_path / "shop.sonde").code == 0
    assert sonde("label", tmp_path / "shop.sonde", *LABELS).code == 0
    return tmp_path / "shop.sonde"


def second(tmp_path: Path) -> Path:
    changed = [{"id": f"parcel-{n}", "text": f"battery charge cable {n}"} for n in range(3)]
    return lines(tmp_path / "two.jsonl", [{"id": "new", "text": "screen display"}, *changed])


def test_index_says_which_label_runs_lack_the_new_documents(sonde: Command, shop: Path, tmp_path: Path) -> None:  # noqa: F811
    assert (
        "note: 4 new and changed documents have no label in codes: to label all documents again, use `sonde label` "
        "with the same labels, --name codes and --replace; earlier documents can get a different label"
    ) in sonde("index", second(tmp_path), "--to", shop).said
    assert "have no label" not in sonde("index", second(tmp_path), "--to", shop).err


def test_label_says_how_many_earlier_documents_have_another_label(
    sonde: Command,  # noqa: F811
    shop: Path,
    tmp_path: Path,
) -> None:
    assert "earlier document" not in sonde("label", shop, *LABELS, "--replace").err
    sonde("index", second(tmp_path), "--to", shop)
    sonde("runs", "correct", shop, "battery-1", "--label", "refund", "--run", "codes")
    ran = sonde("label", shop, *LABELS, "--replace")
    assert "note: the labels of 5 of 37 earlier documents differ from those in the replaced run" in ran.said
    renamed = sonde("label", shop, "--labels", "parcel,battery,screen,money", "--name", "codes", "--replace")
    assert "earlier documents differ from those in the replaced run" in renamed.err


def test_index_names_corrected_documents_whose_text_changed(sonde: Command, shop: Path, tmp_path: Path) -> None:  # noqa: F811
    sonde("runs", "correct", shop, "parcel-0", "parcel-1", "screen-1", "--label", "parcel", "--run", "codes")
    assert (
        "note: 2 corrected documents have a new text but keep their corrections: 'parcel-0', 'parcel-1'; "
        f"`sonde get {shop} parcel-0 parcel-1` shows them"
    ) in sonde("index", second(tmp_path), "--to", shop).said
    assert sonde("get", shop, "parcel-0", "parcel-1").code == 0
    assert "corrected document" not in sonde("index", second(tmp_path), "--to", shop).err


def test_repeated_texts_of_a_new_collection_are_not_reused(sonde: Command, tmp_path: Path) -> None:  # noqa: F811
    rows = [{"id": str(n), "text": "better punctuality" if n < 3 else f"text {n}"} for n in range(5)]
    first = sonde("index", lines(tmp_path / "a.jsonl", rows), "--to", tmp_path / "c.sonde")
    assert "), 2 repeated" in first.out
    more = [{"id": f"n{n}", "text": "better punctuality" if n < 2 else "new"} for n in range(3)]
    assert "), 2 reused" in sonde("index", lines(tmp_path / "b.jsonl", more), "--to", tmp_path / "c.sonde").out


def test_settings_that_a_replaced_run_had_are_named(sonde: Command, shop: Path) -> None:  # noqa: F811
    several = ("--multi-label", "--where", "id != 'parcel-1'")
    assert "the replaced run had" not in sonde("label", shop, *LABELS, "--replace", *several).err
    assert "the replaced run had" not in sonde("label", shop, *LABELS, "--replace", *several).err
    ran = sonde("label", shop, *LABELS, "--replace")
    assert "note: the replaced run had --multi-label; this one gives each document one label at most" in ran.said
    assert "note: the replaced run had only the documents that match \"id != 'parcel-1'\" (--where)" in ran.said


def test_a_file_of_another_folder_that_replaces_one_is_named(sonde: Command, tmp_path: Path) -> None:  # noqa: F811
    """Ids are paths inside a folder: letter.txt of a second folder replaced that of the first without a word."""
    for name, text in (("one", "a letter about apples"), ("two", "a letter about boats")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "letter.txt").write_text(text)
    assert sonde("index", tmp_path / "one", "--to", tmp_path / "c.sonde").code == 0
    ran = sonde("index", tmp_path / "two", "--to", tmp_path / "c.sonde")
    assert ran.said[-1] == (
        f"note: 1 file of {tmp_path / 'two'} has the path of a document from another folder, and replaced it; to keep "
        "both, index both folders in one run"
    )
    (tmp_path / "two" / "letter.txt").write_text("a letter about rivers")
    for again in (tmp_path / "two", tmp_path / "one"):
        assert "another folder" not in sonde("index", again, "--to", tmp_path / "c.sonde").err


def test_marks_of_documents_that_sync_deletes_are_named(sonde: Command, tmp_path: Path) -> None:  # noqa: F811
    """A file that was renamed lost its tag without a word."""
    rows = [{"id": str(n), "text": f"text {n}"} for n in range(8)]
    folder = tmp_path / "c.sonde"
    assert sonde("index", lines(tmp_path / "a.jsonl", rows), "--to", folder).code == 0
    assert sonde("tag", folder, "key", "1", "2", "5").code == 0
    assert sonde("runs", "correct", folder, "2", "--label", "good", "--run", "tone").code == 0
    kept = [row for row in rows if row["id"] not in ("1", "2", "3")]
    ran = sonde("index", lines(tmp_path / "a.jsonl", kept), "--to", folder, "--sync")
    assert (
        "note: --sync deletes 1 document with a correction of 'tone', 2 documents with the tag 'key'; what people "
        "marked does not come back with the file"
    ) in ran.said
    ran = sonde("index", lines(tmp_path / "a.jsonl", kept[1:]), "--to", folder, "--sync")
    assert ran.code == 0 and "deletes" not in ran.err
