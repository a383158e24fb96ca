"""The levels of a taxonomy as columns: in exports, filters, counts, colours and over time."""

import csv
import json
from pathlib import Path

import openpyxl
import pyarrow.parquet as pq
import pytest
from command_line import Command
from fake_encoder import FakeEncoder
from reported import reported

from sonde.app.api import Collection, index
from sonde.indexer.errors import SondeError, UsageError
from sonde.indexer.store.fields import Period

RUN = "taxonomy:taxonomy"
COLUMNS = [RUN, f"{RUN} name", f"{RUN} path", f"{RUN} Fachbereich", f"{RUN} Anliegen"]


@pytest.fixture(scope="module", params=[None, 2])
def desk(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Collection:
    return reported(tmp_path_factory.mktemp("d") / "desk.sonde", request.param)


def ids_where(desk: Collection, where: str) -> str:
    return " ".join(sorted(one.id for one in desk.matching(where, k=100)[1]))


def test_an_export_has_the_path_and_a_column_for_each_level(desk: Collection, tmp_path: Path) -> None:
    rows = {row["id"]: [row[name] for name in COLUMNS] for row in desk.rows()}
    assert rows["d0"] == [1, "lost", "cards > lost", "cards", "lost"]
    assert rows["d4"] == [3, "cash", "cash", "cash", None], "nothing below the document's own group"
    assert rows["d8"] == [-1, "no group", "no group", "no group", None]
    assert rows["d9"] == [None] * 5
    for suffix in ("csv", "jsonl", "parquet", "xlsx"):
        desk.export(tmp_path / f"all.{suffix}")
    with (tmp_path / "all.csv").open(encoding="utf-8") as stream:
        found = list(csv.DictReader(stream))
    assert list(found[0])[-5:] == COLUMNS
    assert [found[3][name] for name in COLUMNS] == ["4", "late", "cash > late", "cash", "late"]
    lines = (tmp_path / "all.jsonl").read_text(encoding="utf-8").splitlines()
    assert [[json.loads(line)[name] for name in COLUMNS] for line in lines] == list(rows.values())
    table = pq.read_table(tmp_path / "all.parquet")
    assert [str(table.schema.field(name).type) for name in COLUMNS] == ["int64", *["string"] * 4]
    assert [[row[name] for name in COLUMNS] for row in table.to_pylist()] == list(rows.values())
    sheet = openpyxl.load_workbook(tmp_path / "all.xlsx").active
    assert sheet is not None
    assert [list(row[-5:]) for row in sheet.iter_rows(values_only=True)] == [COLUMNS, *rows.values()]
    frame = desk.to_pandas(where="id = 'd2'", columns=COLUMNS)
    assert frame.values.tolist() == [[2, "late", "cards > late", "cards", "late"]]


def test_an_export_that_is_read_back_has_no_level_as_metadata(tmp_path: Path) -> None:
    for shards in (None, 2):
        folder, path = tmp_path / f"{shards}.sonde", tmp_path / f"{shards}.csv"
        reported(folder, shards).export(path)
        index(path, folder, encoder=FakeEncoder())  # type: ignore[arg-type]
        assert list(Collection.open(folder).info().fields) == ["received"]


def test_levels_without_a_name_have_their_number_and_no_column_is_lost(tmp_path: Path) -> None:
    made = reported(tmp_path / "c.sonde")
    table = "number,name,parent\n0,a,\n1,b,0\n2,c,1\n"
    made.import_taxonomy(table, "csv", "taxonomy path", documents="id,group\nd0,2\n")
    first = next(iter(made.rows()))
    other = "taxonomy:taxonomy path"
    assert {name: value for name, value in first.items() if name.startswith(other)} == {
        other: 2, f"{other} name": "c", f"{other} path": "a > b > c", f"{other} level 0": "a", f"{other} level 1": "b",
        f"{other} level 2": "c", f"{other} (2)": "cards > lost",
    }  # fmt: skip
    assert ids_where(made, "\"taxonomy:taxonomy path (2)\" = 'cash > late'") == "d3 d6"
    made.edit_taxonomy("rename", level=0, name="name", taxonomy="taxonomy")
    made.edit_taxonomy("rename", level=1, name="name", taxonomy="taxonomy")
    first = next(iter(made.rows()))
    assert [first[f"{RUN} name{more}"] for more in ("", " (2)", " (3)")] == ["lost", "cards", "lost"]


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        (f"\"{RUN} Fachbereich\" = 'cards'", "d0 d1 d2 d5 d7"),
        (f"\"{RUN} Anliegen\" = 'late'", "d2 d3 d6"),
        (f"NOT \"{RUN} Anliegen\" = 'late'", "d0 d1 d7"),
        (f'"{RUN} Anliegen" IS NULL', "d4 d5 d8 d9"),
        (f"\"{RUN} Fachbereich\" IN ('cash', 'no group') AND \"{RUN} Anliegen\" IS NULL", "d4 d8"),
        (f"\"{RUN} path\" = 'cards > late'", "d2"),
        (f"\"{RUN} path\" = 'cash'", "d3 d4 d6"),
        (f"\"{RUN} path\" LIKE 'cash >%'", "d3 d6"),
        (f"\"{RUN} path\" = 'late'", ""),
        (f'"{RUN} path" IS NULL', "d9"),
    ],
)
def test_filters_take_the_columns_of_an_export(desk: Collection, where: str, ids: str) -> None:
    assert ids_where(desk, where) == ids


@pytest.mark.parametrize("shards", [None, 2])
def test_a_map_is_coloured_by_a_level(tmp_path: Path, shards: int | None) -> None:
    mapped = reported(tmp_path / "c.sonde", shards).map()
    said: list[str] = []

    def legend(color: str) -> set[str]:
        mapped.draw(tmp_path / "map.html", color, notify=lambda each: said.append(str(each)))
        page = (tmp_path / "map.html").read_text(encoding="utf-8")
        return {name for name in ("cards", "lost", "late", "cash", "no group") if f'"name":"{name}"' in page}

    assert legend(f"{RUN} Fachbereich") == {"cards", "cash", "no group"}
    assert legend(f"{RUN} Anliegen") == {"lost", "late"}
    assert legend(RUN) == {"cards", "lost", "late", "cash", "no group"}, "there are colours for all groups"
    assert said == []
    with pytest.raises(UsageError, match=r"cannot colour by 'taxonomy:taxonomy level 0': .*taxonomy:taxonomy Anliegen"):
        mapped.draw(tmp_path / "map.html", f"{RUN} level 0")


def test_a_map_of_many_groups_is_coloured_by_the_top_level(tmp_path: Path) -> None:
    rows = [{"id": f"d{n}", "text": f"text {n}"} for n in range(42)]
    made = index(rows, tmp_path / "many.sonde", id="id", text="text", encoder=FakeEncoder())  # type: ignore[arg-type]
    table = "number,name,parent\n100,even,\n101,odd,\n" + "".join(f"{n},g{n},{100 + n % 2}\n" for n in range(21))
    made.import_taxonomy(table, "csv", documents="id,group\n" + "".join(f"d{n},{n % 21}\n" for n in range(42)))
    said: list[str] = []
    made.map().draw(tmp_path / "map.html", RUN, notify=lambda each: said.append(str(each)))
    assert said == [f"{RUN} has 21 groups, more than there are colours: coloured by its level '{RUN} level 0'"]
    page = (tmp_path / "map.html").read_text(encoding="utf-8")
    assert '"name":"even"' in page and '"name":"odd"' in page and '"name":"g1"' not in page


def test_counts_are_of_one_level_or_of_the_tree_in_its_order(desk: Collection) -> None:
    top = desk.count_by("taxonomy")
    assert (top.column, top.documents, top.missing) == (f"{RUN} Fachbereich", 10, 1)
    assert top.values == (("cards", 5), ("cash", 3), ("no group", 1)), "the sum is that of the documents with a group"
    assert desk.count_by(f"{RUN} Fachbereich") == top
    lower = desk.count_by(f"{RUN} Anliegen", "received < '2026-02'")
    assert (lower.documents, lower.missing, lower.values) == (6, 1, (("lost", 3), ("late", 2)))
    tree = desk.count_by(RUN)
    assert tree.values == ((0, 5), (1, 3), (2, 1), (3, 3), (4, 2), (-1, 1))
    assert tree.names == ("cards", "cards > lost", "cards > late", "cash", "cash > late", "no group")


def test_the_command_counts_the_top_level_and_names_it(desk: Collection, sonde: Command) -> None:
    found = sonde("count", desk.path, "--by", "taxonomy")
    assert found.err == f"counted by {RUN} Fachbereich\n"
    assert found.out.splitlines() == [
        "cards            5", "cash             3", "no group         1", "10 documents, 1 without a value",
    ]  # fmt: skip
    assert sonde("count", desk.path, "--by", RUN).out.splitlines()[:2] == [
        "0          5  cards", "1          3  cards > lost",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        (f"\"{RUN}\" = 'cards'", "d0 d1 d2 d5 d7"),
        (f"\"{RUN}\" = 'cash > late'", "d3 d6"),
        (f"\"{RUN}\" = 'late'", "d2 d3 d6"),
        (f"'lost' = \"{RUN}\"", "d0 d1 d7"),
        (f"\"{RUN}\" != 'cards'", "d3 d4 d6 d8"),
        (f"\"{RUN}\" IN ('cards > lost', 4, '3')", "d0 d1 d3 d4 d6 d7"),
        (f"\"{RUN}\" LIKE 'cash%'", "d3 d4 d6"),
        (f"\"{RUN}\" = '3'", "d3 d4 d6"),
        (f"\"{RUN}\" = 'no group'", "d8"),
    ],
)
def test_the_number_of_a_group_can_be_its_name_or_path(desk: Collection, where: str, ids: str) -> None:
    assert ids_where(desk, where) == ids


@pytest.mark.parametrize(
    ("where", "said"),
    [
        (f"\"{RUN}\" = 'crads'", f"{RUN} is never 'crads': did you mean 'cards'? values: cards, "),
        (f"\"{RUN}\" = 'cards > lots'", "did you mean 'cards > lost'?"),
        (f"\"{RUN} path\" = 'cards > lots'", "did you mean 'cards > lost'?"),
        (f"\"{RUN} path\" = 'csh'", "did you mean 'cash'?"),
        (f"\"{RUN} Fachbereich\" = 'crads'", "did you mean 'cards'? values: cards, cash, no group"),
    ],
)
def test_a_misspelt_group_is_found(desk: Collection, where: str, said: str) -> None:
    assert said in desk.explain_filter(where)


def test_an_order_of_numbers_takes_no_names(desk: Collection) -> None:
    with pytest.raises(UsageError, match="taxonomy:taxonomy is an integer; 'cards' is not a number"):
        ids_where(desk, f"\"{RUN}\" > 'cards'")


def over(desk: Collection, run: str, period: Period | None = None, column: str = "received") -> dict[str, list[int]]:
    found = desk.breakdown(run, column, period=period)
    return {"": [*found.parts]} | {item.name: row.tolist() for item, row in zip(found.items, found.counts, strict=True)}  # type: ignore[dict-item]


def test_documents_of_a_level_by_period(desk: Collection) -> None:
    weeks = ["2026-W02", "2026-W03", "2026-W04", "2026-W05", "2026-W06"]
    assert over(desk, "taxonomy", "week") == {
        "": weeks, "no group": [0, 0, 0, 0, 1], "cards": [3, 2, 0, 0, 0], "cash": [1, 0, 0, 0, 2],
    }  # fmt: skip
    assert over(desk, f"{RUN} Fachbereich", "quarter") == {"": ["2026-Q1"], "no group": [1], "cards": [5], "cash": [3]}
    found = desk.breakdown(f"{RUN} Anliegen", "received", period="month")
    assert found.parts == ("2026-01", "2026-02") and found.totals.tolist() == [6, 3]
    assert {item.number: row.tolist() for item, row in zip(found.items, found.counts, strict=True)} == {
        1: [3, 0], 2: [1, 0], 4: [1, 1],
    }  # fmt: skip
    every = desk.breakdown(RUN, "received", period="year")
    assert {item.number: row.tolist() for item, row in zip(every.items, every.counts, strict=True)} == {
        -1: [1], 0: [5], 1: [3], 2: [1], 3: [3], 4: [2],
    }  # fmt: skip
    assert desk.breakdown("taxonomy", "received").period == "day"
    with pytest.raises(UsageError, match="period is 'decade': use year, quarter, month, week, day"):
        desk.breakdown("taxonomy", "received", period="decade")  # type: ignore[arg-type]
    with pytest.raises(SondeError, match="there is no group 1: "):
        desk.breakdown("taxonomy", "received").only(1)


def test_the_commands_count_and_draw_a_level_over_time(desk: Collection, sonde: Command, tmp_path: Path) -> None:
    shown = sonde("runs", "show", desk.path, "taxonomy", "--by", "received", "--period", "month")
    assert [line.split() for line in shown.out.splitlines()[1:]] == [
        ["1", "2026-02", "-1", "no", "group"], ["5", "2026-01", "0", "cards"],
        ["1", "2026-01", "3", "cash"], ["2", "2026-02", "3", "cash"],
    ]  # fmt: skip
    level = sonde("runs", "show", desk.path, f"{RUN} Anliegen", "--by", "received", "--period", "year", "--json")
    assert [(row["name"], row["year"], row["documents"]) for row in map(json.loads, level.out.splitlines())] == [
        ("lost", "2026", 3), ("late", "2026", 1), ("late", "2026", 2),
    ]  # fmt: skip
    one = sonde("runs", "show", desk.path, "taxonomy", "4", "--by", "received", "--period", "quarter")
    assert one.out.splitlines()[1].split() == ["2", "2026-Q1", "4", "late"]
    drawn = sonde(
        "runs", "draw", desk.path, "taxonomy", "--by", "received", "--period", "week", "--to", tmp_path / "a.html"
    )
    assert drawn.said[-1] == f"{tmp_path / 'a.html'}: 2 groups in 5 weeks"
    bars = sonde("runs", "draw", desk.path, f"{RUN} Anliegen", "--by", "received", "--to", tmp_path / "b.png")
    assert bars.said[-1] == f"{tmp_path / 'b.png'}: 3 groups in 5 days"
    listed = sonde("runs", "show", desk.path, f"{RUN} Anliegen").out
    assert "lost" in listed and "cards" not in listed
    assert sonde("runs", "delete", desk.path, f"{RUN} Anliegen").code == 1
