"""The groups of a run as a table for a report."""

import csv
import json
from pathlib import Path

import openpyxl
import pytest
from command_line import Command, command  # noqa: F401  (fixture)
from themes import collection, rows

from sonde.app.api import Collection
from sonde.indexer.errors import SondeError, UsageError
from sonde.indexer.store.kinds import TAXONOMY


@pytest.fixture
def shop(tmp_path: Path) -> Collection:
    return collection(tmp_path / "shop.sonde", rows())


def read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def test_each_group_is_a_row_with_terms_a_share_and_three_texts(shop: Collection, tmp_path: Path) -> None:
    shop.cluster("k", k=4, refits=0)
    assert shop.export_groups(tmp_path / "k.csv", "k") == 4
    table = read(tmp_path / "k.csv")
    assert list(table[0]) == [
        "number", "name", "terms", "documents", "share in %", "quote 1", "quote 2", "quote 3",
    ]  # fmt: skip
    assert sum(int(row["documents"]) for row in table) == 120
    assert sum(float(row["share in %"]) for row in table) == pytest.approx(100, abs=0.3)
    items = {item.number: item for item in shop.run("k").items}
    for row in table:
        item = items[int(row["number"])]
        assert row["name"] == item.name and row["terms"].split(", ")[0] == item.data["terms"][0][0]
        texts = shop.texts(item.data["representatives"][:3])
        assert row["quote 1"].endswith(texts[item.data["representatives"][0]].text)


def test_a_workbook_holds_the_same_and_no_formula(shop: Collection, tmp_path: Path) -> None:
    shop.cluster("k", k=4, refits=0)
    shop.rename_run("k", '=HYPERLINK("http://x")', item=0)
    said: list[object] = []
    shop.export_groups(tmp_path / "k.xlsx", "k")
    shop.export_groups(tmp_path / "k.csv", "k", progress=said.append)
    sheet = openpyxl.load_workbook(tmp_path / "k.xlsx")["clusters"]
    [head, *cells] = [[cell.value for cell in row] for row in sheet.iter_rows()]
    table = read(tmp_path / "k.csv")
    assert head == list(table[0])
    assert [[row[0], row[3]] for row in cells] == [[int(row["number"]), int(row["documents"])] for row in table]
    [named] = [row for row in sheet.iter_rows() if row[0].value == 0]
    assert (named[1].value, named[1].data_type) == ('=HYPERLINK("http://x")', "s")
    assert "'=HYPERLINK" in (tmp_path / "k.csv").read_text()
    assert [str(each)[:46] for each in said] == ["note: an apostrophe was put before 1 cell that"]
    shop.export_groups(tmp_path / "raw.csv", "k", raw_formulas=True)
    assert "'=HYPERLINK" not in (tmp_path / "raw.csv").read_text()


def test_labels_have_descriptions_and_a_taxonomy_its_tree(shop: Collection, tmp_path: Path) -> None:
    shop.label(["parcel: a box that is sent", "battery", "screen", "refund"])
    shop.export_groups(tmp_path / "l.csv", "labels")
    table = read(tmp_path / "l.csv")
    assert {row["name"]: row["description"] for row in table}["parcel"] == "a box that is sent"
    assert "terms" not in table[0] and all(row["quote 3"] for row in table)
    shop.cluster("k", k=4, refits=0)
    shop.make_taxonomy("k")
    shop.edit_taxonomy("move", groups=[1], to=0)
    shop.export_groups(tmp_path / "t.csv", "taxonomy:taxonomy")
    groups = {group.path: group for group in shop.taxonomy().groups}
    table = read(tmp_path / "t.csv")
    assert {row["path"]: int(row["documents"]) for row in table} == {path: groups[path].total for path in groups}
    tops = [groups[row["path"]].total for row in table if groups[row["path"]].level == 0]
    assert tops == sorted(tops, reverse=True) and groups[table[1]["path"]].level == 1


def test_a_flat_taxonomy_is_sorted_by_size_and_has_no_paths(shop: Collection, tmp_path: Path) -> None:
    shop.cluster("k", k=4, refits=0)
    shop.make_taxonomy("k")
    some = [member.id for member in shop.members("taxonomy", 1, kind=TAXONOMY, k=20)]
    shop.edit_taxonomy("move", ids=some, to=3)
    shop.export_groups(tmp_path / "t.xlsx", "taxonomy:taxonomy")
    sheet = openpyxl.load_workbook(tmp_path / "t.xlsx").worksheets[0]
    [head, *cells] = [list(row) for row in sheet.iter_rows()]
    names = [cell.value for cell in head]
    assert "path" not in names
    assert [row[names.index("documents")].value for row in cells] == [50, 30, 30, 10]
    assert all(row[names.index("quote 1")].alignment.wrap_text for row in cells)


def test_what_cannot_be_written(shop: Collection, tmp_path: Path) -> None:
    shop.cluster("k", k=4, refits=0)
    with pytest.raises(UsageError, match=r"cannot write groups to .*\.xlsx, \.csv"):
        shop.export_groups(tmp_path / "k.pdf", "k")
    with pytest.raises(SondeError, match=r"there is no run 'gone'"):
        shop.export_groups(tmp_path / "k.csv", "gone")
    shop.make_taxonomy()
    with pytest.raises(SondeError, match=r"the taxonomy run 'taxonomy' has no groups"):
        shop.export_groups(tmp_path / "k.csv", "taxonomy")


def test_the_command_writes_groups_or_some_columns(shop: Collection, sonde: Command, tmp_path: Path) -> None:
    shop.cluster("k", k=4, refits=0)
    to = tmp_path / "groups.jsonl"
    assert sonde("export", shop.path, "--groups", "k", "--to", to).said == [f"4 groups written to {to}"]
    assert [json.loads(line)["documents"] for line in to.read_text().splitlines()] == [30, 30, 30, 30]
    sonde("export", shop.path, "--groups", "k").refused("--groups needs --to FILE", code=2)
    for suffix in ("csv", "jsonl", "xlsx", "parquet"):
        file = tmp_path / f"some.{suffix}"
        sonde("export", shop.path, "--columns", "cluster:k name, id", "--to", file)
        if suffix == "csv":
            assert list(read(file)[0]) == ["cluster:k name", "id"] and len(read(file)) == 120
        assert shop.export(file, columns=["id"]) == 120
    assert sonde("export", shop.path, "--columns", "id").out.splitlines()[0] == '{"id": "parcel-0"}'
    sonde("export", shop.path, "--columns", "id,nope").refused("--columns is 'nope': use id, title, text", code=2)
    with pytest.raises(UsageError, match=r"columns is empty"):
        shop.export(tmp_path / "x.csv", columns=[])


def test_the_groups_of_a_taxonomy_of_labels_have_quotes_and_hand_coded_texts_come_last(
    shop: Collection, tmp_path: Path
) -> None:
    shop.label(["parcel", "battery", "screen", "refund"])
    by_hand = {"parcel-1": "battery", "parcel-2": "battery", "parcel-3": "battery"}
    shop.correct(by_hand)
    shop.label(["parcel", "battery", "screen", "refund"], replace=True)
    shop.make_taxonomy("labels")
    texts = {row["text"] for row in shop.rows() if row["id"] in by_hand}
    for run in ("labels", "taxonomy:taxonomy"):
        shop.export_groups(tmp_path / "t.csv", run)
        table = {row["name"]: row for row in read(tmp_path / "t.csv")}
        quotes = [table["battery"][f"quote {n}"] for n in (1, 2, 3)]
        assert all(quotes) and not texts & set(quotes), run


def test_counts_and_quotes_are_of_the_documents_that_pass_a_filter(shop: Collection, tmp_path: Path) -> None:
    shop.cluster("k", k=4, refits=0)
    shop.make_taxonomy("k")
    stars = {row["text"]: row["stars"] for row in shop.rows()}
    for run in ("k", "taxonomy:taxonomy"):
        assert shop.export_groups(tmp_path / "k.csv", run, where="stars = 1") == 4
        table = read(tmp_path / "k.csv")
        assert [(row["documents"], row["share in %"]) for row in table] == [("6", "25.0")] * 4
        assert {stars[row[f"quote {n}"]] for row in table for n in (1, 2, 3)} == {1}
    with pytest.raises(UsageError, match="nope"):
        shop.export_groups(tmp_path / "k.csv", "k", where="nope = 1")
