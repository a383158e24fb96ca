"""Codes that look like decimal numbers keep their zeros."""

from pathlib import Path

import pytest
from fake_encoder import FakeEncoder

from sonde.app.api import index
from sonde.indexer.readers import read_source


def table(path: Path, header: str, values: list[str]) -> Path:
    rows = "".join(f"{value},a paper about number {n}\n" for n, value in enumerate(values))
    path.write_text(f"{header},abstract\n{rows}")
    return path


@pytest.mark.parametrize("header", ["arXiv ID", "paper_id", "Code", "part ref"])
def test_codes_stay_as_they_are_written_and_can_be_ids(tmp_path: Path, header: str) -> None:
    codes = ["2510.20470", "2510.2047", "2601.00001"]
    made = index(table(tmp_path / "p.csv", header, codes), tmp_path / "c.sonde", encoder=FakeEncoder())  # type: ignore[arg-type]
    assert sorted(row["id"] for row in made.rows()) == sorted(codes)


def test_repeating_codes_are_text_and_can_be_filtered(tmp_path: Path) -> None:
    source = table(tmp_path / "p.csv", "model code", ["1.10", "1.1", "1.10"])
    made = index(source, tmp_path / "c.sonde", encoder=FakeEncoder())  # type: ignore[arg-type]
    assert made.fields() == {"model code": "text"}
    assert made.matching("\"model code\" = '1.10'", k=0)[0] == 2


@pytest.mark.parametrize(
    ("header", "values", "kind"),
    [("price", ["19.90", "5.50", "7.00"], "real"), ("order amount", ["1.10", "2.5", "2.5"], "real")],
)
def test_numbers_stay_numbers(tmp_path: Path, header: str, values: list[str], kind: str) -> None:
    assert read_source(table(tmp_path / "p.csv", header, values)).columns.metadata == {header: kind}


def test_whole_ids_with_a_point_stay_ids(tmp_path: Path) -> None:
    assert read_source(table(tmp_path / "p.csv", "id", ["1.0", "2.0", "3.0"])).columns.id == "id"
