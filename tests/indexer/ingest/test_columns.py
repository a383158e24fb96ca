"""What a collection remembers and says of columns: encoding, text, numbers with points, columns of its runs."""

from pathlib import Path
from typing import Any

import openpyxl
import pytest
from command_line import Command
from fake_encoder import FakeEncoder

from sonde import ReadOptions
from sonde.app.api import Collection, index
from sonde.indexer.errors import UsageError

ROWS = [{"id": f"d{n}", "text": f"text {n} about {'tea' if n % 2 else 'coffee'}", "stars": n % 5} for n in range(20)]
LEFT_OUT = "columns of runs of {} are left out of the metadata: "


def run(folder: Path, source: Any, **given: Any) -> list[str]:
    """Index a source; return what was said of columns of runs."""
    encoder: Any = FakeEncoder()
    said: list[str] = []
    index(source, folder, encoder=encoder, progress=lambda each: said.append(str(each)), **given).close()
    return [each for each in said if "columns of runs" in each]


@pytest.fixture(params=[None, 2])
def folder(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A collection with clusters, labels and a tag, whole or in shards."""
    folder = tmp_path / "t.sonde"
    assert run(folder, ROWS, shards=request.param) == []
    with Collection.open(folder, encoder=FakeEncoder()) as collection:  # type: ignore[arg-type]
        collection.cluster(k=2, name="two", seed=1)
        collection.tag("kept", ids=["d1", "d2"])
    return folder


@pytest.mark.parametrize("form", ["csv", "jsonl", "xlsx"])
def test_an_export_is_read_back(folder: Path, form: str) -> None:
    path = folder.parent / f"back.{form}"
    with Collection.open(folder) as collection:
        collection.export(path)
        before = collection.count_by("cluster:two").values
        collection.rename_run("two", "late texts", kind="cluster", item=0)
    said = run(folder, path)
    names = "cluster:two, cluster:two name, tag:kept"
    advice = ". To keep such a column, rename it in the source"
    assert said == [f"note: {path}: {LEFT_OUT.format(folder)}{names}{advice}"]
    with Collection.open(folder) as collection:
        assert list(collection.info().fields) == ["stars"]
        assert collection.count_by("cluster:two").values == before
        assert collection.count_by("tag:kept").values == ((False, 18), (True, 2))
        assert collection.matching("\"cluster:two name\" = 'late texts'")[0] > 0
        assert len(collection) == 20


def test_a_data_frame_is_put_back(folder: Path) -> None:
    said: list[str] = []
    with Collection.open(folder, encoder=FakeEncoder()) as collection:  # type: ignore[arg-type]
        frame = collection.to_pandas()
        assert {"cluster:two", "tag:kept"} <= set(frame.columns)
        frame["stars"] += 1
        report = collection.put(frame, progress=lambda each: said.append(str(each)))
        assert (report.added, report.replaced, report.embedded) == (0, 20, 0)
        assert list(collection.info().fields) == ["stars"]
        assert collection.count_by("tag:kept").values == ((False, 18), (True, 2))
        assert collection.matching('"cluster:two" >= 0')[0] == 20
    names = "cluster:two, cluster:two name, tag:kept"
    assert [each for each in said if "runs" in each] == [f"note: columns of runs are left out of the metadata: {names}"]


def test_a_column_without_such_a_run_stays_metadata(folder: Path) -> None:
    rows = [row | {"topic:gone": 1, "cluster:two": 5} for row in ROWS]
    assert len(run(folder, rows)) == 1
    with Collection.open(folder) as collection:
        assert list(collection.info().fields) == ["stars", "topic:gone"]


def test_metadata_of_the_same_name_from_before_stays(tmp_path: Path) -> None:
    """A later run of the same source must not take the places of the user's own from the documents."""
    rows = [row | {"tag:kept": "a"} for row in ROWS]
    run(tmp_path / "t.sonde", rows)
    with Collection.open(tmp_path / "t.sonde") as collection:
        collection.tag("kept", ids=["d1"])
    assert run(tmp_path / "t.sonde", [row | {"stars": 9} for row in rows]) == []
    with Collection.open(tmp_path / "t.sonde") as collection:
        assert collection.get("d1").metadata == {"stars": 9, "tag:kept": "a"}


def test_no_role_is_found_for_such_a_column_but_it_can_be_chosen(folder: Path) -> None:
    with Collection.open(folder) as collection:
        collection.rename_run("two", "my text", kind="cluster")
    rows = [{"id": f"n{n}", "cluster:my text": f"a long text number {n}", "words": f"words {n}"} for n in range(5)]
    run(folder, rows)
    with Collection.open(folder) as collection:
        assert collection.get("n1").text == "words 1"
    assert run(folder, rows, read=ReadOptions(text="cluster:my text")) == []
    with Collection.open(folder) as collection:
        assert collection.get("n1").text == "a long text number 1"


POLISH = ["Kraków: był późno", "Łódź: jakość dobra", "Gdańsk: żółta paczka"]
"""Such bytes in cp1250 are taken for cp1250; a user may know better."""


def indexed(path: Path, encoding: str | None = None, **given: Any) -> str:
    """Index a file; return the line that says how it was read."""
    said: list[str] = []
    engine: Any = FakeEncoder()
    reading = ReadOptions(encoding=encoding)
    to = path.parent / "t.sonde"
    index(path, to, read=reading, encoder=engine, progress=lambda each: said.append(str(each)), **given).close()
    return next(line for line in said if line.startswith(str(path)))


def table(path: Path, encoding: str, texts: list[str] = POLISH) -> Path:
    path.write_bytes("".join(["id;text\n", *(f"{n};{text}\n" for n, text in enumerate(texts))]).encode(encoding))
    return path


def texts(folder: Path) -> list[str]:
    with Collection.open(folder / "t.sonde") as collection:
        return [collection.get(str(n)).text for n in range(3)]


@pytest.mark.parametrize("shards", [None, 2])
def test_an_encoding_that_was_given_is_used_again(tmp_path: Path, shards: int | None) -> None:
    path = table(tmp_path / "t.csv", "cp1250")
    wrong = [text.encode("cp1250").decode("cp1252") for text in POLISH]
    assert indexed(path, "cp1252", shards=shards).endswith("read as: delimiter ';', cp1252")
    assert texts(tmp_path) == wrong
    assert indexed(path).endswith("read as: delimiter ';', cp1252, as before")
    assert texts(tmp_path) == wrong


def test_a_file_in_utf8_is_read_as_utf8_and_another_encoding_can_be_given(tmp_path: Path) -> None:
    path = table(tmp_path / "t.csv", "cp1250")
    indexed(path, "cp1252")
    table(path, "utf-8")
    assert indexed(path).endswith("read as: delimiter ';', utf-8")
    assert indexed(path, "utf-8").endswith("read as: delimiter ';', utf-8")
    assert texts(tmp_path) == POLISH
    table(path, "cp1250", POLISH[::-1])
    assert indexed(path).endswith("read as: delimiter ';', cp1252, as before")
    assert indexed(path, "cp1250").endswith("read as: delimiter ';', cp1250")
    assert indexed(path).endswith("read as: delimiter ';', cp1250, as before")
    assert texts(tmp_path) == POLISH[::-1]


def test_a_file_that_is_not_valid_in_it_is_detected(tmp_path: Path) -> None:
    path = table(tmp_path / "t.csv", "cp1250")
    indexed(path, "cp1252")
    table(path, "cp1250", ["Ťažký", *POLISH[1:]])  # the byte of Ť is none of cp1252
    assert indexed(path).endswith("read as: delimiter ';', cp1250")


def test_lines_of_json_and_texts_are_read_as_before(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes("".join(f'{{"id": "{n}", "text": "{text}"}}\n' for n, text in enumerate(POLISH)).encode("cp1250"))
    indexed(path, "cp1250")
    assert indexed(path).endswith("read as: cp1250, as before")
    assert texts(tmp_path) == POLISH
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a.txt").write_bytes("Größe".encode("cp1250"))
    (folder / "b.html").write_bytes('<meta charset="cp1252"><p>Size ³'.encode("cp1252"))
    (folder / "c.txt").write_bytes("ł".encode("cp1250"))
    index(folder, tmp_path / "u.sonde", read=ReadOptions(encoding="cp1250"), encoder=FakeEncoder()).close()  # type: ignore[arg-type]
    index(folder, tmp_path / "u.sonde", encoder=FakeEncoder()).close()  # type: ignore[arg-type]
    with Collection.open(tmp_path / "u.sonde") as collection:
        assert [collection.get(name).text for name in ("a.txt", "b.html", "c.txt")] == ["Größe", "Size ³", "ł"]


REMARKS = [{"id": "1", "remark": "late", "body": "My parcel came late"}, {"id": "2", "remark": "ok", "body": "Fine"}]
SAID = "note: the column 'remark' becomes the text; so far, {} has it as metadata: if you did not mean that, choose"


@pytest.mark.parametrize(("text", "shards", "said"), [("remark", None, True), ("remark", 2, True), ("body", 2, False)])
def test_a_column_that_was_metadata_becomes_the_text(tmp_path: Path, text: str, shards: int | None, said: bool) -> None:
    encoder: Any = FakeEncoder()
    notes: list[str] = []
    index(REMARKS, tmp_path / "c.sonde", text="body", encoder=encoder, shards=shards)
    index(REMARKS, tmp_path / "c.sonde", text=text, encoder=encoder, progress=lambda each: notes.append(str(each)))
    assert sum(note.startswith(SAID.format(tmp_path / "c.sonde")) for note in notes) == said


@pytest.mark.parametrize("shards", [None, 2])
def test_a_source_without_the_texts_is_refused(tmp_path: Path, shards: int | None) -> None:
    encoder: Any = FakeEncoder()
    kept = index(REMARKS, tmp_path / "c.sonde", id="id", text="body", encoder=encoder, shards=shards)
    (tmp_path / "more.csv").write_text("id,remark\n1,It came at last and all is well now\n2,Still fine with me\n")
    said = (
        "more.csv: the text would be the column 'remark', which is metadata in .*c.sonde: nothing was changed; choose"
    )
    with pytest.raises(UsageError, match=said):
        index(tmp_path / "more.csv", tmp_path / "c.sonde", encoder=encoder)
    assert [(kept.get(id).text, kept.get(id).metadata["remark"]) for id in "12"] == [
        ("My parcel came late", "late"), ("Fine", "ok"),
    ]  # fmt: skip


NUMBERS = ("1.234", "5.678", "12.500", "2.000", "750")


def table_of(folder: Path, numbers: tuple[str, ...]) -> Path:
    rows = (f"{n};Der Text mit der Nummer {n};{number}\n" for n, number in enumerate(numbers))
    (folder / "t.csv").write_text("".join(["id;text;Wert\n", *rows]))
    return folder / "t.csv"


def stored(folder: Path) -> list[object]:
    with Collection.open(folder / "t.sonde") as collection:
        return [collection.get(str(n)).metadata["Wert"] for n in range(5)]


@pytest.mark.parametrize("shards", [[], ["--shards", "2"]])
def test_the_note_names_a_number_and_the_type_that_reads_it(tmp_path: Path, sonde: Command, shards: list[str]) -> None:
    path, to = table_of(tmp_path, NUMBERS), tmp_path / "t.sonde"
    said = (
        "note: 'Wert' is read with a decimal point, so 1.234 is less than 2: if the points separate thousands, "
        "index the file again with a type, such as --type Wert=real:,"
    )
    assert sonde("index", path, "--to", to, *shards).said.count(said) == 1
    assert stored(tmp_path) == [1.234, 5.678, 12.5, 2.0, 750.0]


def test_the_type_corrects_the_stored_numbers(tmp_path: Path, sonde: Command) -> None:
    path, to = table_of(tmp_path, NUMBERS), tmp_path / "t.sonde"
    sonde("index", path, "--to", to)
    for given in (["--type", "Wert=real:,"], []):
        ran = sonde("index", path, "--to", to, *given)
        assert "decimal point" not in ran.err
        assert stored(tmp_path) == [1234.0, 5678.0, 12500.0, 2000.0, 750.0]


@pytest.mark.parametrize(
    "numbers",
    [
        ("1.234", "5.67", "12.500", "2.000", "750"),
        ("1.234", "5.678", "12.500", "2.000", "7500"),
        ("1.234", "0.678", "12.500", "2.000", "750"),
        ("1", "2", "3", "4", "750"),
        ("1,234", "5,678", "12,500", "2,000", "750"),
    ],
)
def test_other_numbers_get_no_note(tmp_path: Path, sonde: Command, numbers: tuple[str, ...]) -> None:
    assert "decimal point" not in sonde("index", table_of(tmp_path, numbers), "--to", tmp_path / "t.sonde").err


def sheet(folder: Path, *numbers: object) -> Path:
    book = openpyxl.Workbook()
    for row in [("id", "text", "Wert"), *((n, f"Der Text {n}", number) for n, number in enumerate(numbers))]:
        book.worksheets[0].append(row)
    book.save(folder / "t.xlsx")
    return folder / "t.xlsx"


def test_texts_of_a_worksheet_get_the_note_when_they_become_numbers(tmp_path: Path, sonde: Command) -> None:
    path, to = sheet(tmp_path, *NUMBERS), tmp_path / "t.sonde"
    assert "decimal point" not in sonde("index", path, "--to", to).err
    assert stored(tmp_path) == list(NUMBERS)
    said = "note: 'Wert' is read with a decimal point, so 1.234 is less than 2: if the points separate thousands, "
    ran = sonde("index", path, "--to", to, "--type", "Wert=real")
    assert [line for line in ran.said if line.startswith(said)], ran.err
    assert "decimal point" not in sonde("index", path, "--to", to).err  # the user has been told
    assert "decimal point" not in sonde("index", path, "--to", to, "--type", "Wert=real:.").err
    assert stored(tmp_path) == [1.234, 5.678, 12.5, 2.0, 750.0]
    sonde("index", path, "--to", to, "--type", "Wert=real:,")
    assert stored(tmp_path) == [1234.0, 5678.0, 12500.0, 2000.0, 750.0]


def test_numbers_of_a_worksheet_get_no_note(tmp_path: Path, sonde: Command) -> None:
    path = sheet(tmp_path, 1.234, 5.678, 12.345, 2, 750)
    for given in ([], ["--type", "Wert=real"]):
        assert "decimal point" not in sonde("index", path, "--to", tmp_path / "t.sonde", *given).err


def test_amounts_with_a_sign_get_the_note_too(tmp_path: Path, sonde: Command) -> None:
    path, to = table_of(tmp_path, tuple(f"{number} €" for number in NUMBERS)), tmp_path / "t.sonde"
    assert "so 1.234 is less than 2:" in sonde("index", path, "--to", to, "--type", "Wert=real").err
    assert "decimal point" not in sonde("index", path, "--to", to, "--type", "Wert=real:,").err
    assert stored(tmp_path) == [1234.0, 5678.0, 12500.0, 2000.0, 750.0]
