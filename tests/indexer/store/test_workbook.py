"""A workbook holds the values of an export, and nothing in it is a formula."""

import gc
import io
import tempfile
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pytest
from fake_encoder import FakeEncoder
from hypothesis import given
from hypothesis import strategies as st
from openpyxl.utils.escape import unescape

from sonde.app.api import Collection, index
from sonde.indexer.document import Document
from sonde.indexer.errors import SondeError, UsageError
from sonde.indexer.store import spreadsheets
from sonde.indexer.store.spreadsheets import MOST_CHARS, Workbook

METADATA = {
    "stars": 5, "price": -1.5, "card": 2**60, "fresh": True, "day": date(2026, 4, 1), "old": date(1815, 6, 18),
    "at": datetime(2026, 4, 1, 12, 30), "tags": ["a", "ü"], "code": "007", "sum": "=1+1", "site": "http://a.b/c",
}  # fmt: skip


@pytest.fixture
def mixed(tmp_path: Path) -> Collection:
    documents = [Document("naïve café", key="12", metadata=METADATA), Document("x" * 40_000, "long", key="b")]
    encoder: Any = FakeEncoder()
    return index(documents, tmp_path / "c.sonde", encoder=encoder)


def test_values_keep_their_types_and_no_text_becomes_a_formula_a_link_or_a_number(
    mixed: Collection, tmp_path: Path
) -> None:
    mixed.tag("kept", ids=["12"])
    notes: list[str] = []
    assert mixed.export(tmp_path / "c.xlsx", progress=lambda each: notes.append(str(each))) == 2
    sheet = openpyxl.load_workbook(tmp_path / "c.xlsx")["documents"]
    header, first, second = sheet.iter_rows()
    row = dict(zip((cell.value for cell in header), first, strict=True))
    expected = {"id": "12", "title": None, "text": "naïve café", **METADATA, "tag:kept": True}
    expected |= {"card": str(2**60), "day": datetime(2026, 4, 1), "old": "1815-06-18", "tags": '["a", "ü"]'}
    assert {name: cell.value for name, cell in row.items()} == expected
    assert {row[name].data_type for name in ("sum", "site", "code", "id")} == {"s"}
    assert not any(cell.hyperlink for cell in first)
    assert (row["day"].number_format, row["at"].number_format) == ("yyyy-mm-dd", "yyyy-mm-dd hh:mm:ss")
    assert (sheet.freeze_panes, sheet.auto_filter.ref) == ("A2", f"A1:{first[-1].coordinate[:-1]}3")
    assert [sheet.column_dimensions[column].width > 30 for column in "ABCD"] == [False, True, True, False]
    assert second[2].value == "x" * (MOST_CHARS - 1) + "…"
    assert notes[-1] == (
        "note: 1 cell had more than the 32,767 characters that Excel can hold, and ends in …; .csv, .jsonl and "
        ".parquet files hold the whole texts"
    )


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60))
def test_any_text_comes_back(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        out = io.BytesIO()
        book = Workbook(out, ["text"], folder)
        book.write([{"text": text}])
        book.close()
    (_, (cell,)) = openpyxl.load_workbook(out)["documents"].iter_rows()
    # XML reads \r as \n, and openpyxl leaves the escapes of control characters (ECMA-376, ST_Xstring) as they are.
    unescaped = unescape(cell.value) if isinstance(cell.value, str) else ""
    assert cell.data_type in "sn" and unescaped.replace("\r", "\n") == text.replace("\r", "\n")


def test_emoji_count_twice_as_in_excel() -> None:
    with tempfile.TemporaryDirectory() as folder:
        out = io.BytesIO()
        book = Workbook(out, ["text"], folder)
        book.write([{"text": "😀" * 16_383}, {"text": "😀" * 16_384}])
        book.close()
    assert book.cut == 1
    values = [cell.value for (cell,) in openpyxl.load_workbook(out)["documents"].iter_rows()]
    assert values == ["text", "😀" * 16_383, "😀" * 16_383 + "…"]


def test_what_does_not_fit_is_refused_and_leaves_nothing(
    mixed: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    with pytest.raises(UsageError, match=r"a workbook has no room for vectors: write a .parquet file"):
        mixed.export(tmp_path / "v.xlsx", vectors=True)
    monkeypatch.setattr(spreadsheets, "MOST_ROWS", 1)
    with pytest.raises(SondeError, match=r"a workbook holds at most 1 rows: write a .csv or .parquet file instead"):
        mixed.export(tmp_path / "v.xlsx")
    gc.collect()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c.sonde", "temporary"]
    assert list((tmp_path / "temporary").iterdir()) == []


def test_a_workbook_leaves_out_columns_without_a_value_only_if_it_is_asked_to(
    mixed: Collection, tmp_path: Path
) -> None:
    docs, path = np.array(sorted(mixed.numbers(["b"]).values())), tmp_path / "c.xlsx"
    assert mixed.export_numbered(docs, path, filled=True) == 1
    book = openpyxl.load_workbook(path)
    assert [cell.value for cell in book["documents"][1]] == ["id", "title", "text"]
    assert [[cell.value for cell in row] for row in book["left out"].iter_rows()] == [
        [f"11 columns left out, because no document here has a value: {', '.join(METADATA)}"]
    ]
    again: Any = index(path, tmp_path / "d.sonde", encoder=FakeEncoder())  # type: ignore[arg-type]
    assert len(again) == 1, "the second sheet is not read as the table"
    for options in ({"filled": True, "columns": ["id", "stars"]}, {}):
        mixed.export_numbered(docs, path, **options)  # type: ignore[arg-type]
        book = openpyxl.load_workbook(path)
        assert [cell.value for cell in book["documents"][1]] == options.get("columns", mixed.export_columns())
        assert book.sheetnames == ["documents"]
    mixed.export_numbered(docs[:0], tmp_path / "none.xlsx", filled=True)
    assert len(openpyxl.load_workbook(tmp_path / "none.xlsx")["documents"][1]) == len(mixed.export_columns())
