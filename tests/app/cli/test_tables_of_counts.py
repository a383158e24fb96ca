"""Tables for a report: groups by class as a file, means with their spread, and columns under their own names."""

import csv
from pathlib import Path

import openpyxl
import pytest
from command_line import Command
from small_reviews import encoder, sonde, written  # noqa: F401  (fixtures)

AGES = ("9-17", "18-29", "60+")


@pytest.fixture
def survey(sonde: Command, tmp_path: Path) -> Path:  # noqa: F811
    rows = [f"R{n},{AGES[n % 3]},{('South', 'east')[n % 5 > 1]},{n % 4},late tram {n}" for n in range(12)]
    rows += [f"R{n},60+,South,3,dirty seat {n}" for n in range(12, 16)] + ["R16,60+,South,1,-"]
    source = written(tmp_path / "s.csv", "\n".join(["Respondent ID,age,region,stars,answer", *rows]).encode())
    folder = tmp_path / "s.sonde"
    assert sonde("index", source, "--to", folder, "--id", "Respondent ID", "--text", "answer").code == 0
    assert sonde("label", folder, "--labels", "late tram,dirty seat", "--name", "codes").code == 0
    return folder


def test_groups_by_class_are_written_with_n_and_shares(sonde: Command, survey: Path, tmp_path: Path) -> None:  # noqa: F811
    shown = sonde("runs", "show", survey, "codes", "--by", "age").out.splitlines()
    classes = [line.split()[1] for line in shown[1:]]
    assert classes[:3] == list(AGES), "numbers in names are compared as numbers"
    ran = sonde("runs", "show", survey, "codes", "--by", "region", "--to", tmp_path / "t.csv")
    assert (ran.code, ran.out) == (0, "") and ran.said[-1].endswith(f"rows written to {tmp_path / 't.csv'}")
    with (tmp_path / "t.csv").open(encoding="utf-8") as stream:
        table = list(csv.DictReader(stream))
    assert list(table[0]) == ["number", "name", "class", "documents", "n", "share in %"]
    assert [row["class"] for row in table[:2]] == ["east", "South"]
    for name, n in (("east", 6), ("South", 11)):
        rows = [row for row in table if row["class"] == name]
        assert sum(int(row["documents"]) for row in rows) == n and {row["n"] for row in rows} == {str(n)}
        assert all(float(row["share in %"]) == round(100 * int(row["documents"]) / n, 1) for row in rows)
    sonde("runs", "show", survey, "codes", "0", "--by", "region", "--to", tmp_path / "t.xlsx")
    sheet = openpyxl.load_workbook(tmp_path / "t.xlsx")["counts"]
    assert [row[0] for row in sheet.iter_rows(min_row=2, values_only=True)] == [0, 0]
    source = sonde("runs", "show", survey, "codes", "--by", "region", "--to", tmp_path / "s.csv")
    source.failed("is the file that the collection was made from", code=2)
    sonde("runs", "show", survey, "codes", "--to", tmp_path / "t.csv").refused("--to needs --by: name a column", code=2)


def test_a_mean_has_its_spread_and_n(sonde: Command, survey: Path) -> None:  # noqa: F811
    lines = sonde("count", survey, "--by", "region", "--mean-of", "stars", "--where", "text LIKE 'dirty%'").out
    assert lines.splitlines()[0].split(maxsplit=2)[2] == "mean 3 (sd 0, n 4)"
    one = sonde("count", survey, "--by", "region", "--mean-of", "stars", "--where", "text = '-'").out
    assert one.splitlines()[0].endswith("mean 1 (n 1)")
    found = sonde(
        "count", survey, "--by", "age", "--mean-of", "stars", "--where", "id IN ('R0', 'R3', 'R6')", "--json"
    ).out
    assert '"documents": 3, "mean": 1.6666666666666667, "n": 3, "sd": 1.5275252316519468' in found


def test_the_ids_are_exported_by_the_name_that_their_column_had(sonde: Command, survey: Path, tmp_path: Path) -> None:  # noqa: F811
    assert sonde("export", survey, "--columns", "Respondent ID,text", "--to", tmp_path / "a.csv").code == 0
    lines = (tmp_path / "a.csv").read_text().splitlines()
    assert (lines[0], lines[1], lines[-1]) == ("id,text", "R0,late tram 0", "R16,-"), "a dash is not a formula"
    sonde("export", survey, "--columns", "Respondent", "--to", tmp_path / "b.csv").failed("Respondent", code=2)
