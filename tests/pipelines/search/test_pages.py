"""Hits in texts with pages, such as those of PDF files, have the number of their page."""

import json
from pathlib import Path

import pytest
from command_line import Command
from fake_encoder import FakeEncoder

import sonde
from sonde.app.mcp.answers import hit_of
from sonde.pipelines.search.tables import hit_columns

PAGES = [
    "Umbrellas sold well because of the rain. Footer 1",
    "",
    "Invoices of the Lisbon office were paid twice. " + "Nobody noticed anything until the summer ended. " * 12,
    "Outlook: parasols.",
]
TEXT = "\f\n\n".join(PAGES)


@pytest.fixture
def reports(tmp_path: Path) -> sonde.Collection:
    """A collection with a report of four pages, the second of which is a picture."""
    rows = [{"id": "report", "text": TEXT, "page": "own"}, {"id": "letter", "text": "A letter on umbrellas."}]
    return sonde.index(rows, tmp_path / "c.sonde", id="id", encoder=FakeEncoder())  # type: ignore[arg-type]


@pytest.mark.parametrize(("query", "page"), [("umbrellas rain", 1), ("invoices Lisbon twice", 3), ("parasols", 4)])
def test_the_page_has_the_words_of_the_query(reports: sonde.Collection, query: str, page: int) -> None:
    hit = next(hit for hit in reports.search(query) if hit.id == "report")
    assert hit.page == page
    assert hit.to_dict()["page"] == page and hit_of(hit)["page"] == page


def test_a_text_without_page_breaks_has_none(reports: sonde.Collection) -> None:
    hit = next(hit for hit in reports.search("letter") if hit.id == "letter")
    assert hit.page is None
    assert "page" not in hit.to_dict() and "page" not in hit_of(hit)


def test_tables_have_a_column_only_if_a_text_has_pages(reports: sonde.Collection) -> None:
    frame = reports.search("invoices letter").to_pandas().set_index("id")
    assert (frame.loc["report", "page"], frame.loc["report", "metadata.page"]) == (3, "own")
    assert frame["page"].isna().to_dict() == {"report": False, "letter": True}
    assert list(reports.search("letter", where="page IS NULL").to_pandas().columns)[-2:] == ["passage", "text"]
    assert hit_columns(["extension", "pages"])[-3:] == ["page", "extension", "pages"]
    assert "page" not in hit_columns(["pages"])


def test_the_command_line_names_the_page(reports: sonde.Collection, sonde: Command) -> None:
    assert "  report, page 3  (" in sonde("search", reports.path, "invoices Lisbon twice").out
    assert json.loads(sonde("search", reports.path, "parasols", "-k", "1", "--json").out)["page"] == 4
    ran = sonde("ask", reports.path, "invoices of Lisbon twice", "--threshold", "0.1")
    assert ran.out.startswith("Umbrellas sold well") and "\\u000c" not in ran.out and "\f" not in ran.out
    assert "  report, page 3" in ran.err


def test_an_answer_is_the_best_passage_of_a_long_text(tmp_path: Path) -> None:
    rows = [{"id": "a", "text": "A story about weather and wind. " * 200 + "Invoices were paid twice."}]
    made = sonde.index(rows, tmp_path / "c.sonde", id="id", encoder=FakeEncoder())  # type: ignore[arg-type]
    found = made.ask("were invoices paid twice", threshold=-1)
    assert found.hit is not None and found.answer is not None and found.answer == found.hit.passage.text
    assert found.answer.endswith("Invoices were paid twice.") and len(found.answer) < len(found.hit.text) / 2


def test_the_web_ui_shows_a_page_break_as_a_space() -> None:
    """A browser showed it as an unknown sign."""
    pytest.importorskip("streamlit")
    from sonde.app.ui.hits import lit
    from sonde.app.ui.page import marked

    assert marked("one\f\n\ntwo", [(0, 3)]).endswith(" \n\ntwo") and lit("one\f\n\ntwo", 0, (), ()) == "one \n\ntwo"
