"""Which columns become text, title, id and language, and what is said about it."""

from collections.abc import Iterable
from datetime import date
from pathlib import Path

import pandas as pd
import pytest

from sonde.indexer.document import Document, Skipped
from sonde.indexer.errors import UsageError
from sonde.indexer.readers import Columns, ReadOptions, read_source


def documents(reading: Iterable[Document | Skipped]) -> list[Document]:
    """All that was read, which is nothing but documents."""
    items = list(reading)
    found = [item for item in items if isinstance(item, Document)]
    assert len(found) == len(items)
    return found


LONG = "A text that goes on for a while, so that it is the longest."


def columns(row, **options):
    rows = [{**row, "number": number} for number in range(3)]
    for number, one in enumerate(rows):
        one.update({name: value(number) for name, value in row.items() if callable(value)})
    return read_source(rows, options=ReadOptions(**options)).columns


@pytest.mark.parametrize(
    "row, text",
    [
        ({"summary": "s", "text": "t", "essay": LONG}, "text"),
        ({"reviewText": "t", "essay": LONG}, "reviewText"),
        ({"Review Text": "t", "essay": LONG}, "Review Text"),
        ({"text_length": LONG, "body": "t"}, "body"),
        ({"review": "short", "comment": "a little longer"}, "comment"),
        ({"question": "Why?", "answer": LONG}, "answer"),
        ({"inhalt": "t", "essay": LONG}, "inhalt"),
        ({"label": "x", "essay": LONG, "url": "https://example.org/" + "a" * 200}, "essay"),
    ],
)
def test_text_column(row, text):
    found = columns(row)
    assert found.text == (text,)
    assert found.reasons["text"] == ("by content, the longest strings" if text == "essay" else "by name")


@pytest.mark.parametrize(
    "row, title",
    [
        ({"text": LONG, "title": "t", "name": "n"}, "title"),
        ({"text": LONG, "Subject": "s"}, "Subject"),
        ({"text": LONG, "review_headline": "h", "user_name": "n"}, "review_headline"),
        ({"text": LONG, "summary": "word " * 100}, None),
        ({"title": "only a title"}, None),
        ({"text": LONG, "title": 7}, None),
    ],
)
def test_title_column(row, title):
    assert columns(row).title == title


@pytest.mark.parametrize(
    "row, id, reason",
    [
        ({"text": LONG, "id": lambda n: n}, "id", "by name"),
        ({"text": LONG, "_id": lambda n: f"d{n}"}, "_id", "by name"),
        ({"text": LONG, "doc_id": lambda n: n}, "doc_id", "by name"),
        (
            {"text": LONG, "doc_id": lambda n: n // 2},
            None,
            "using a hash of the text because doc_id repeats or is missing",
        ),
        ({"text": LONG, "id": lambda n: n // 2}, "id", "by name"),
        ({"text": LONG, "id": lambda n: n or None}, "id", "by name"),
        ({"text": LONG, "id": "all alike"}, None, "using a hash of the text because id repeats or is missing"),
        ({"text": LONG}, None, "using a hash of the text"),
    ],
)
def test_id_column(row, id, reason):
    found = columns(row)
    assert (found.id, found.reasons["id"]) == (id, reason)


def test_id_keeps_its_spelling():
    assert [d.key for d in documents(read_source([{"id": 7, "text": "a"}, {"id": 8.0, "text": "b"}]))] == ["7", "8"], (
        "no 8.0"
    )


@pytest.mark.parametrize("value, found", [("en", "lang"), ("pt-BR", "lang"), ("zho", "lang"), ("English spoken", None)])
def test_language_column(value, found):
    result = columns({"text": LONG, "lang": value})
    assert result.language == found
    assert result.metadata["lang"] == "text"  # an export must have the column, and people count by it


def test_languages_reach_the_documents():
    rows = [{"text": "Hallo", "lang": "de"}, {"text": "Hello", "lang": None}]
    assert [d.language for d in documents(read_source(rows))] == ["de", None]


def test_set_columns_win_and_are_said():
    found = columns({"text": LONG, "a": "x", "b": "y"}, text=("a", "b"), title="text", id="number")
    assert found.describe() == "text: a + b (as set) · title: text (as set) · id: number (as set) · metadata: none"


def test_a_text_column_of_numbers_is_said():
    found = columns({"text": LONG, "stars": 4}, text=("stars",))
    assert found.describe().startswith("text: stars (as set; stars has type integer, not text) ·")


def test_several_texts_are_joined_by_a_blank_line():
    rows = [{"q": "Why?", "a": "Because."}, {"q": None, "a": "Alone."}]
    assert [d.text for d in documents(read_source(rows, options=ReadOptions(text=("q", "a"))))] == [
        "Why?\n\nBecause.",
        "Alone.",
    ]


def test_roles_can_be_switched_off():
    rows = [{"id": 1, "title": "t", "text": "x"}]
    (document,) = documents(read_source(rows, options=ReadOptions(title="", id="")))
    assert document == Document("x", metadata={"id": 1, "title": "t"}, origin="row 1")


@pytest.mark.parametrize(
    "options, message",
    [
        (
            {"text": "bdy"},
            r"the list: the text column 'bdy' does not exist \(did you mean 'body'\?\)",
        ),
        ({"title": "Titel"}, r"the title column 'Titel' does not exist; there are body \(text\), n \(integer\)"),
        ({"id": "N"}, r"the id column 'N' does not exist \(did you mean 'n'\?\)"),
        ({"language": "l"}, r"the language column 'l' does not exist"),
    ],
)
def test_set_column_that_does_not_exist(options, message):
    with pytest.raises(UsageError, match=message):
        read_source([{"body": "x", "n": 1}], options=ReadOptions(**options))


def test_no_text_column():
    with pytest.raises(UsageError, match=r"no text column among a \(integer\), b \(real\), c \(boolean\): choose one"):
        read_source([{"a": 1, "b": 1.5, "c": True}])


@pytest.mark.parametrize(
    "options, message",
    [
        (
            {"delimiter": "::"},
            r"delimiter '::' must be one character \(not a quote or a line end\) or one of: tab, comma",
        ),
        ({"encoding": "utf-9"}, r"unknown encoding 'utf-9' \(did you mean 'utf-8'\?\)"),
        ({"encoding": "hex"}, "unknown encoding 'hex'"),
        ({"format": "jsnl"}, r"unknown format 'jsnl' \(did you mean 'jsonl'\?\): csv, tsv"),
        ({"max_chars": 0}, "max_chars is 0; it must be at least 1"),
        ({"text": ()}, r"text is \(\); name at least one column"),
    ],
)
def test_options_that_cannot_be(options, message):
    with pytest.raises(UsageError, match=message):
        ReadOptions(**options)


def test_long_list_of_metadata_is_cut():
    found = Columns(("text",), metadata={f"c{n}": "text" for n in range(20)})
    assert found.describe().endswith("c11 (text) and 8 more")


def test_real_dates_are_kept_and_strings_of_dates_become_dates():
    rows = [{"text": "a", "native": date(2024, 1, 2), "string": "2024-03-04", "code": "007", "digits": "12"}]
    (document,) = documents(read_source(rows))
    assert document.metadata == {"native": date(2024, 1, 2), "string": date(2024, 3, 4), "code": "007", "digits": "12"}


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        (["2024-04-03", "03/04/2024", "April 5, 2024", "13.05.24 10:15", ""], True),
        (["03/04/2024", "05/06/2024"], True),  # April or March
        (["13/04/2024", "05/06/2024"], False),  # one reading: dates
        (["2024-04-03", "soon", "later"], False),
        (["1.2", "10.20.30.40", "version 2"], False),
    ],
)
def test_dates_without_a_common_form_are_named(tmp_path, cells, said):
    path = tmp_path / "t.csv"
    path.write_text("text;when\n" + "".join(f"Text {n} is here.;{cell}\n" for n, cell in enumerate(cells)))
    columns = read_source(path).columns
    assert (columns.metadata["when"] == "text") == (said or "soon" in cells or "1.2" in cells)
    note = "kept as text: when (the dates are not all in one clear form, such as 2024-04-03)"
    assert columns.dates == (("when",) if said else ())
    assert (note in columns.describe()) == said


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["3,5", "1.234,50", "-7", ""], [3.5, 1234.5, -7.0, None]),
        (["1,234.50", "12", "1,234,567"], [1234.5, 12.0, 1234567.0]),
        (["0,125", "10,25"], [0.125, 10.25]),
        (["1,234", "5,678"], ["1,234", "5,678"]),  # one or a thousand: not known
        (["1,234", "5,678", "90"], ["1,234", "5,678", "90"]),
        (["12.5", "3,5"], ["12.5", "3,5"]),
        (["1.234,5", "1,234.5"], ["1.234,5", "1,234.5"]),
        (["007,5", "1,5"], ["007,5", "1,5"]),
        (["12,34,567", "1,5"], ["12,34,567", "1,5"]),
    ],
)
def test_numbers_with_commas_are_numbers_where_only_one_reading_fits(tmp_path, cells, expected):
    path = tmp_path / "t.csv"
    path.write_text("text;price\n" + "".join(f"Text {n} is here.;{cell}\n" for n, cell in enumerate(cells)))
    found = [document.metadata.get("price") for document in documents(read_source(path))]
    assert found == expected


def test_the_unnamed_index_of_pandas_is_left_out_of_parquet_files(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(
        pa.table({"text": ["a b", "c d"], "stars": [1, 2], "__index_level_0__": [5, 9]}), tmp_path / "a.parquet"
    )
    found = read_source(tmp_path / "a.parquet")
    assert found.columns.note == "without pandas' index __index_level_0__"
    assert [document.metadata for document in documents(found)] == [{"stars": 1}, {"stars": 2}]
    chosen = read_source(tmp_path / "a.parquet", options=ReadOptions(id="__index_level_0__"))
    assert [document.key for document in documents(chosen)] == ["5", "9"]


def test_the_unnamed_index_of_pandas_is_left_out_of_tables_in_memory() -> None:
    import datasets
    import pyarrow as pa

    frame = pd.DataFrame({"text": ["a b", "c d"], "stars": [1, 2]}, index=[5, 9])
    table = pa.Table.from_pandas(frame)
    for given in (table, table.to_reader(), datasets.Dataset.from_pandas(frame)):
        found = read_source(given)
        assert found.columns.note == "without pandas' index __index_level_0__"
        assert [document.metadata for document in documents(found)] == [{"stars": 1}, {"stars": 2}]
    chosen = read_source(table, options=ReadOptions(id="__index_level_0__"))
    assert [document.key for document in documents(chosen)] == ["5", "9"]


def test_a_line_break_in_a_name_breaks_no_line() -> None:
    said = Columns(("text",), "a\ntitle", None, None, {"price\nin euro": "real"}).describe()
    assert said == "text: text · title: a title · id: none · metadata: price in euro (real)"
