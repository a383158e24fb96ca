"""Files that were sent: pages say the names that their owner knows, never where the server keeps them."""
# ruff: noqa: F811  (fixtures that are imported)

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest
from ui_pages import Pages, pages, shown  # noqa: F401  (fixture)

from sonde.app.api import index
from sonde.app.api.functions import preview
from sonde.app.ui.jobs import Job, Jobs
from sonde.app.ui.jobs.queue import Uploads
from sonde.indexer.readers import ReadOptions

BAD_FILES = {
    "empty.csv": (b"", "empty.csv is empty: give a file with content"),
    "no rows (1).csv": (b"id,text\n", "no rows (1).csv has a header (id, text) but no rows: give a file with content"),
    "of,my's.parquet": (b"PAR1", "of,my's.parquet is not a valid Parquet file, or is truncated: get a new copy"),
    "page.html": (
        b"<p></p>",
        "page.html: 1 of the first 1 rows cannot be read; the first is page.html: no text in it",
    ),
    "notes.doc": (b"zz", "notes.doc is a .doc file, which Sonde does not read: convert it to text"),
    "cut.csv.gz": (gzip.compress(b"id,text\n" * 99)[:-20], "cut.csv.gz cannot be decompressed: it is damaged or cut"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_an_error_names_an_uploaded_file_as_the_user_does(pages: Pages, name: str) -> None:
    content, said = BAD_FILES[name]
    page = pages.open("data")
    uploader: Any = page.get("file_uploader")[0]
    uploader.set_value([(name, content, "text/csv")]).run()
    [error] = [text.replace("\\", "") for text in (each.value for each in page.error)]
    assert error.startswith(said)
    assert "uploads" not in shown(page) and str(pages.shelf) not in shown(page)


def test_bytes_that_are_no_text_are_shown_as_escapes(pages: Pages) -> None:
    page = pages.open("data")
    uploader: Any = page.get("file_uploader")[0]
    uploader.set_value([("x.csv", b"\x00\xff\xfe", "text/csv")]).run()
    [error] = [each.value.replace("\\\\", "/").replace("\\", "") for each in page.error]
    assert error == "x.csv has a header (/u0000/udcff/udcfe) but no rows: give a file with content"


def test_an_upload_that_another_process_removes_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uploads = Uploads(tmp_path)
    for name in ("gone", "old", "used"):
        (tmp_path / name).mkdir()
        os.utime(tmp_path / name, (0, 0))
    real = Path.stat

    def stat(path: Path, **options: Any) -> os.stat_result:
        if path.name == "gone":
            raise FileNotFoundError(path)
        return real(path, **options)

    monkeypatch.setattr(Path, "stat", stat)
    uploads.drop_unused([["index", str(tmp_path / "used" / "a.csv")]])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["gone", "used"]


def test_a_job_is_found_without_reading_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for id in ("1-a", "2-b", "3-c"):
        (tmp_path / id).mkdir()
        kept = {"title": f"job {id}", "collection": "c", "command": ["info"], "started": 1, "pid": 0}
        (tmp_path / id / "job.json").write_text(json.dumps(kept))
    read, real = list[str](), Job.read
    monkeypatch.setattr(Job, "read", lambda folder: read.append(folder.name) or real(folder))
    found = Jobs(tmp_path).find("2-b")
    assert (found and found.title, read) == ("job 2-b", ["2-b"])


def test_added_texts_take_their_ids_from_the_column_of_the_collection(
    pages: Pages, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("sonde.indexer.store.collection.is_local", lambda *_: True)
    source = tmp_path / "reviews.csv"
    source.write_text("id,title,text\n" + "".join(f"{n},t{n},some words {n}\n" for n in range(20)))
    index(source, pages.shelf / "reviews.sonde", id="title", encoder=pages.encoder)  # type: ignore[arg-type]
    page = pages.open("data", collection="reviews", do="Add texts")
    uploader: Any = page.get("file_uploader")[0]
    uploader.set_value([("more.csv", source.read_bytes(), "text/csv")]).run()
    assert page.selectbox(key="add-id").value == "title"
    page = pages.open("data", collection="reviews", do="Add texts")
    uploader = page.get("file_uploader")[0]
    uploader.set_value([("renamed.csv", source.read_bytes().replace(b"id,title,", b"id,number,"), "text/csv")]).run()
    [warning] = [each.value.replace("\\", "") for each in page.warning]
    assert warning.startswith("The collection takes its ids from title. The file has no such column: choose")
    assert page.selectbox(key="add-id").value is None
    page.selectbox(key="add-id").set_value("number").run()
    assert not page.warning


def test_a_file_without_the_texts_replaces_them_only_if_that_is_meant(
    pages: Pages, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("sonde.indexer.store.collection.is_local", lambda *_: True)
    source = tmp_path / "reviews.csv"
    source.write_text("id,text,about\n" + "".join(f"{n},some words {n},a long remark {n}\n" for n in range(20)))
    index(source, pages.shelf / "reviews.sonde", text="text", encoder=pages.encoder)  # type: ignore[arg-type]
    page = pages.open("data", collection="reviews", do="Add texts")
    uploader: Any = page.get("file_uploader")[0]
    only = "id,about\n" + "".join(f"{n},a longer remark {n}\n" for n in range(20))
    uploader.set_value([("remarks.csv", only.encode(), "text/csv")]).run()
    assert page.multiselect(key="add-text").value == ["about"]
    hashed = "Without an Id column, a text that changes becomes a new document, and the old one stays."
    assert hashed not in [each.value for each in page.caption]
    page.selectbox(key="add-id").set_value("a hash of the text").run()
    assert hashed in [each.value for each in page.caption]
    page.selectbox(key="add-id").set_value("id").run()
    [warning] = [each.value for each in page.warning]
    assert warning.startswith("In this collection, about is metadata, not the text.")
    assert "Add" not in [button.label for button in page.button]
    page.checkbox(key="add-text-meant").check().run()
    assert "Add" in [button.label for button in page.button]


def bad(rows: int, wrong: int) -> bytes:
    """Return a table in which some rows, the first ones, have too many cells."""
    lines = [f"{n},some words {n}" + ",x" * (n < wrong) for n in range(rows)]
    return "\n".join(["id,text", *lines]).encode()


def test_rows_that_cannot_be_read_are_not_counted_where_all_were_seen(
    pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = pages.open("data")
    uploader: Any = page.get("file_uploader")[0]
    uploader.set_value([("bad.csv", bad(30, 3), "text/csv")]).run()
    said = shown(page).replace("\\", "")
    assert "**27 of 30 rows can be read** · First problem: row 1: 3 cells instead of 2 (line 2)" in said
    assert page.button(key="new-start").label == "Index 27 rows"
    assert "about 27 documents" in said
    page.button(key="new-again").click().run()
    uploader = page.get("file_uploader")[0]
    uploader.set_value([("bad.csv", bad(1_200, 3), "text/csv")]).run()
    monkeypatch.setattr("sonde.indexer.readers.read.COUNTED_BYTES", 1_000)
    assert "**1,197 of 1,200 rows can be read** · First problem: row 1: " in shown(page).replace("\\", "")
    page.button(key="new-again").click().run()
    uploader = page.get("file_uploader")[0]
    uploader.set_value([("bad.csv", bad(1_300, 3), "text/csv")]).run()
    assert "rows** · 3 rows at the start cannot be read: row 1: 3 cells" in shown(page).replace("\\", "")
    assert page.button(key="new-start").label.startswith("Index about 1")


def test_a_category_that_is_chosen_as_the_text_is_asked_about(pages: Pages) -> None:
    rows = "".join(f"{n},The parcel number {n} came late.,kind {n % 12}\n" for n in range(600))
    page = pages.open("data")
    uploader: Any = page.get("file_uploader")[0]
    uploader.set_value([("tickets.csv", f"id,message,category\n{rows}".encode(), "text/csv")]).run()
    assert page.multiselect(key="new-text").value == ["message"]
    assert "Is it the text column?" not in shown(page)
    page.multiselect(key="new-text").set_value(["category"]).run()
    said = [each.value.replace("\\", "") for each in page.warning]
    assert said == [
        "category has only 12 different values in 600 rows. Is it the text column? The longest texts are in message."
    ]
    page.multiselect(key="new-text").set_value(["message", "category"]).run()
    assert "Is it the text column?" not in shown(page), "beside the text, it does no harm"


TICKETS = "ticket_no,date,channel,message\n" + "".join(
    f'T-{n},2026-0{1 + n % 9}-11,{"mail" if n % 2 else "phone"},"The parcel {n} came late, and it was wet."\n'
    for n in range(100)
)


def test_what_is_no_text_is_asked_about_and_the_text_is_named(pages: Pages) -> None:
    page = pages.open("data")
    uploader: Any = page.get("file_uploader")[0]
    uploader.set_value([("tickets.csv", TICKETS.encode(), "text/csv")]).run()
    for column, why in (
        ("channel", "channel has only 2 different values in 100 rows"),
        ("ticket_no", "ticket_no looks like ids"),
        ("date", "date looks like dates"),
    ):
        page.multiselect(key="new-text").set_value([column]).run()
        said = [each.value.replace("\\", "") for each in page.warning]
        assert said == [f"{why}. Is it the text column? The longest texts are in message."]


def test_a_column_that_was_the_text_for_a_while_is_kept_again(pages: Pages) -> None:
    """Metadata lost each column that was tried as the text, until it was empty, and nothing said so."""
    page = pages.open("data")
    uploader: Any = page.get("file_uploader")[0]
    uploader.set_value([("tickets.csv", TICKETS.encode(), "text/csv")]).run()
    text, metadata = (lambda: page.multiselect(key="new-text")), (lambda: page.multiselect(key="new-metadata"))
    page.selectbox(key="new-id").set_value("a hash of the text").run()
    for column in ("date", "channel", "ticket_no"):
        text().set_value([column]).run()
    assert metadata().value == ["date", "channel", "message"]
    metadata().set_value(["date", "message"]).run()
    assert "The column channel is not kept." in shown(page).replace("\\", "")
    text().set_value(["message"]).run()
    assert metadata().value == ["ticket_no", "date"], "the one removed by hand stays away"
    metadata().set_value(["ticket_no", "date", "channel"]).run()
    text().set_value(["channel"]).run()
    text().set_value(["message"]).run()
    assert metadata().value == ["ticket_no", "date", "channel"]
    assert "not kept" not in shown(page)


def test_of_a_long_table_the_first_rows_are_counted(tmp_path: Path) -> None:
    (tmp_path / "long.csv").write_text("text,kind\n" + "".join(f"Text {n},{n % 3}\n" for n in range(1_500)))
    (tmp_path / "more.csv").write_text("text,kind\n" + "".join(f"Text {n},{n % 4}\n" for n in range(10)))
    found = preview([tmp_path / "long.csv", tmp_path / "more.csv"], ReadOptions())
    assert (found.sampled, found.count, dict(found.different)) == (1_010, 1_510, {"text": 1_000, "kind": 4})


SIZES = "id,text\n" + "".join(f"{n},Die Größe paßt nicht für mich und die Tür schließt übel {n}\n" for n in range(30))


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Jobs are noted in place of being started."""
    found: list[list[str]] = []
    monkeypatch.setattr(Jobs, "start", lambda _, title, name, command, then: found.append(command))
    return found


def sent(pages: Pages, encoding: str) -> Any:
    """Return the page after a file in an encoding was sent."""
    page = pages.open("data")
    uploader: Any = page.get("file_uploader")[0]
    uploader.set_value([("sizes.csv", SIZES.encode(encoding), "text/csv")]).run()
    assert not page.exception
    return page


def test_the_encoding_that_was_detected_is_named_and_not_given(pages: Pages, commands: list[list[str]]) -> None:
    page = sent(pages, "cp1252")
    box = page.selectbox(key="new-encoding")
    assert (box.options[0], "shift_jis (Japanese)" in box.options) == ("detected: cp1252", True)
    assert page.dataframe[0].value["text"][0].startswith("Die Größe paßt")
    page.checkbox(key="new-further").uncheck().run()
    page.button(key="new-start").click().run()
    assert "--encoding" not in commands[0]


def test_an_encoding_that_is_not_detected_is_chosen(pages: Pages, commands: list[list[str]]) -> None:
    """The page refused such a file; the command line had --encoding."""
    page = sent(pages, "cp850")
    assert [each.value for each in page.error] == [
        "The file has no readable text in an encoding that can be detected\\. Choose another file, or choose the "
        "encoding under Advanced\\."
    ]
    assert page.selectbox(key="new-encoding").options[0] == "not detected"
    page.selectbox(key="new-encoding").set_value("cp850").run()
    assert page.dataframe[0].value["text"][0].startswith("Die Größe paßt") and not page.error
    page.selectbox(key="new-encoding").set_value("utf-8").run()
    assert "leave out Encoding to detect it" in page.error[0].value.replace("\\", "")
    page.selectbox(key="new-encoding").set_value("cp850").run()
    page.checkbox(key="new-further").uncheck().run()
    page.button(key="new-start").click().run()
    place = commands[0].index("--encoding")
    assert commands[0][place + 1] == "cp850"
