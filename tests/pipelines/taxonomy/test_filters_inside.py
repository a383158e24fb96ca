"""A condition on a group finds the documents of all groups under it, as a walk of the tree does."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from fake_encoder import FakeEncoder

from sonde.app.api import Collection, index
from sonde.indexer.errors import UsageError
from sonde.pipelines.compare import Contrast
from sonde.pipelines.search.filters.compile import among
from sonde.pipelines.taxonomy import TaxonomyGroup

TABLE = """number,name,parent
0,cards,
1,lost,0
2,late,1
3,late,0
4,cash,
5,it's 100%,4
6,late,5
7,empty,0
"""
INSIDE = (1, 2, 2, 3, 3, 3, 4, 5, 5, 6, 6, 6, 6, None, "unknown", "unknown")
"""The group of each document; none, or not in the taxonomy."""


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Collection:
    rows = [{"id": f"d{n}", "text": f"text {n}", "n": n} for n in range(len(INSIDE))]
    made = index(rows, tmp_path_factory.mktemp("d") / "desk.sonde", id="id", text="text", encoder=FakeEncoder())  # type: ignore[arg-type]
    known = [(n, "" if group is None else group) for n, group in enumerate(INSIDE) if group != "unknown"]
    made.import_taxonomy(TABLE, "csv", documents="id,group\n" + "".join(f"d{n},{group}\n" for n, group in known))
    return made


def walked(desk: Collection, passes: Callable[[TaxonomyGroup], bool]) -> set[str]:
    """Return the documents of the groups that pass, and of those under them, found group by group."""
    groups = {one.number: one for one in desk.taxonomy().groups}

    def inside(number: int | None) -> bool:
        return number is not None and (passes(groups[number]) or inside(groups[number].parent))

    return {f"d{n}" for n, group in enumerate(INSIDE) if isinstance(group, int) and inside(group)}


def ids_where(desk: Collection, where: str) -> set[str]:
    count, found = desk.matching(where, k=100)
    assert count == len(found)
    return {one.id for one in found}


CONDITIONS: dict[str, Callable[[TaxonomyGroup], bool]] = {
    '"taxonomy:taxonomy" = 0': lambda one: one.number == 0,
    '"taxonomy:taxonomy" = 2': lambda one: one.number == 2,
    '"taxonomy:taxonomy" IN (1, 4)': lambda one: one.number in (1, 4),
    '"taxonomy:taxonomy" >= 5': lambda one: one.number >= 5,
    "\"taxonomy:taxonomy name\" = 'cards'": lambda one: one.name == "cards",
    "\"taxonomy:taxonomy name\" = 'late'": lambda one: one.name == "late",
    "\"taxonomy:taxonomy name\" = 'cards > late'": lambda one: one.number == 3,
    "\"taxonomy:taxonomy name\" = 'lost > late'": lambda one: False,
    "\"taxonomy:taxonomy name\" = 'it''s 100%'": lambda one: one.number == 5,
    "\"taxonomy:taxonomy name\" IN ('empty', 'cash')": lambda one: one.name in ("empty", "cash"),
    "\"taxonomy:taxonomy name\" LIKE 'l%'": lambda one: one.name.startswith("l"),
    "\"taxonomy:taxonomy name\" ILIKE 'CASH >%'": lambda one: one.path.startswith("cash >"),
    "LOWER(\"taxonomy:taxonomy name\") = 'cash'": lambda one: one.name == "cash",
    "\"taxonomy:taxonomy name\" = 'nothing'": lambda one: False,
}


@pytest.mark.parametrize("where", CONDITIONS)
def test_a_condition_finds_what_a_walk_of_the_tree_finds(desk: Collection, where: str) -> None:
    assert ids_where(desk, where) == walked(desk, CONDITIONS[where])


@pytest.mark.parametrize("where", CONDITIONS)
def test_not_is_all_other_documents_that_the_taxonomy_knows(desk: Collection, where: str) -> None:
    known = {f"d{n}" for n, group in enumerate(INSIDE) if group != "unknown"}
    assert ids_where(desk, f"NOT {where}") == known - walked(desk, CONDITIONS[where])


def test_random_trees_are_filtered_as_a_walk_filters_them(tmp_path: Path) -> None:
    chance = random.Random(1)
    rows = [{"id": f"d{n}", "text": f"text {n}"} for n in range(60)]
    made = index(rows, tmp_path / "r.sonde", id="id", text="text", encoder=FakeEncoder())  # type: ignore[arg-type]
    for number in range(20):
        above = [chance.choice(["", *range(n)]) if n else "" for n in range(15)]
        inside = [chance.randrange(15) for _ in rows]
        table = "number,name,parent\n" + "".join(f"{n},g{n},{parent}\n" for n, parent in enumerate(above))
        documents = "id,group\n" + "".join(f"d{n},{group}\n" for n, group in enumerate(inside))
        made.import_taxonomy(table, "csv", f"t{number}", documents=documents)
        for group in range(15):
            under, before = {group}, 0
            while len(under) > before:
                before, under = len(under), under | {n for n, parent in enumerate(above) if parent in under}
            expected = {f"d{n}" for n, one in enumerate(inside) if one in under}
            assert ids_where(made, f'"taxonomy:t{number}" = {group}') == expected
            assert {one.id for one in made.members(f"t{number}", group, k=100)} == expected


def test_groups_of_their_own_and_missing_values(desk: Collection) -> None:
    assert ids_where(desk, '"taxonomy:taxonomy" = 1 AND NOT "taxonomy:taxonomy" = 2') == {"d0"}
    assert ids_where(desk, '"taxonomy:taxonomy" = -1') == {"d13"}
    assert ids_where(desk, '"taxonomy:taxonomy" IS NULL') == {"d14", "d15"}
    assert ids_where(desk, '"taxonomy:taxonomy" != 99') == {f"d{n}" for n in range(14)}


def test_every_part_of_sonde_that_filters_takes_all_under_a_group(desk: Collection, tmp_path: Path) -> None:
    cards = "\"taxonomy:taxonomy name\" = 'cards'"
    inside = {f"d{n}" for n in range(6)}
    assert {hit.id for hit in desk.search("text", k=20, where=cards)} == inside
    assert desk.count_by("n", cards).documents == 6
    assert desk.export(tmp_path / "part.csv", where=cards) == 6
    assert desk.tag("cards", where=cards).documents == 6
    compared = desk.compare(where=(cards, '"taxonomy:taxonomy" = 4'))
    assert isinstance(compared, Contrast)
    assert [side.documents for side in compared.sides] == [6, 7]
    [facet] = [one for one in desk.facets() if one.name == "taxonomy:taxonomy name"]
    assert dict(facet.choices) == {
        "late": 9, "cash": 7, "it's 100%": 6, "cards": 6, "lost": 3, "no group": 1,
    }  # fmt: skip
    for name, count in facet.choices:
        assert len(ids_where(desk, among(facet.name, facet.type, [name]))) == count
    among_hits = desk.choices_among(["d1", "d9", "d14"], [facet])
    assert among_hits == {facet.name: [("late", 2), ("cards", 1), ("cash", 1), ("it's 100%", 1), ("lost", 1)]}


COUNTED = {0: 6, 1: 3, 2: 2, 3: 3, 4: 7, 5: 6, 6: 4}
"""Documents in and under each group that has any."""


def test_a_group_has_the_same_documents_in_charts_selections_filters_and_counts(desk: Collection) -> None:
    column = next(one for one in desk.table().columns if one.name == "taxonomy:taxonomy")
    names = {0: "cards", 1: "lost", 2: "2 late", 3: "3 late", 4: "cash", 5: "it's 100%", 6: "6 late", -1: "no group"}
    number = {name: each for each, name in names.items()}
    assert {number[name]: count for name, count in zip(column.names, column.counts, strict=True)} == COUNTED | {-1: 1}
    assert [number[name] for name in column.names[:2]] == [4, 0], "the largest groups come first"
    for group, count in COUNTED.items():
        where = f'"taxonomy:taxonomy" = {group}'
        part = {"kind": "values", "column": "taxonomy:taxonomy", "values": [names[group]]}
        chosen = {one.id for one in desk.numbered(desk.select({"parts": [part]}).tolist())}
        rest = desk.select({"parts": [part | {"not": True}]})
        assert len(chosen) == count
        assert chosen == ids_where(desk, where) == {one.id for one in desk.members("taxonomy", group, k=100)}
        assert len(rest) == len(INSIDE) - count
    run = desk.newest_run("taxonomy").run
    assert desk.item_sizes(run) == dict(desk.count_by("taxonomy:taxonomy").values) == COUNTED | {-1: 1}
    by_name = dict(desk.count_by("taxonomy:taxonomy name").values)
    assert by_name == {"late": 9, "cash": 7, "it's 100%": 6, "cards": 6, "lost": 3, "no group": 1}
    paths = desk.count_by("taxonomy:taxonomy name")
    assert dict(zip([name for name, _ in paths.values], paths.names, strict=True)) == {
        "late": "late", "cash": "cash", "it's 100%": "cash > it's 100%", "cards": "cards", "lost": "cards > lost",
        "no group": "no group",
    }  # fmt: skip
    known, missing = desk.count_by("taxonomy:taxonomy"), desk.count_by("taxonomy:taxonomy").missing
    assert (known.documents, missing) == (16, 2)


def test_groups_by_a_column_count_the_documents_under_them(desk: Collection) -> None:
    found = desk.breakdown("taxonomy:taxonomy", "n")
    sums = {item.number: int(row.sum()) for item, row in zip(found.items, found.counts, strict=True) if row.sum()}
    assert sums == COUNTED | {-1: 1}
    assert found.totals.sum() == 14, "a share is of all documents, each counted once"


def test_groups_beyond_the_names_of_a_column_count_for_the_group_above(tmp_path: Path) -> None:
    rows = [{"id": f"d{n}", "text": f"text {n}"} for n in range(602)]
    made = index(rows, tmp_path / "many.sonde", id="id", text="text", encoder=FakeEncoder())  # type: ignore[arg-type]
    table = "number,name,parent\n0,whole,\n" + "".join(f"{n},g{n},{0 if n < 200 else ''}\n" for n in range(1, 301))
    inside = [(n, 1 + n // 2) for n in range(600)] + [(600, 1), (601, 300)]
    made.import_taxonomy(table, "csv", documents="id,group\n" + "".join(f"d{n},{group}\n" for n, group in inside))
    [column] = [one for one in made.table().columns if one.name == "taxonomy:taxonomy"]
    assert (column.cut, len(column.names), column.names[0], column.names[-1]) == (True, 256, "whole", "other")
    assert column.counts[0] == made.count_by("taxonomy:taxonomy").values[0][1] == 399
    part = {"kind": "values", "column": "taxonomy:taxonomy", "values": ["whole"]}
    assert len(made.select({"parts": [part]})) == 399
    cut = {"kind": "values", "column": "taxonomy:taxonomy", "values": [{"other": True}]}
    assert len(made.select({"parts": [cut]})) == column.counts[-1]


def test_groups_of_a_taxonomy_are_compared_with_all_under_them(desk: Collection) -> None:
    found = desk.compare(clusters=(0, 4), run="taxonomy")
    assert isinstance(found, Contrast)
    assert [(side.name, side.documents) for side in found.sides] == [("0 (cards)", 6), ("4 (cash)", 7)]
    assert {*found.sides[0].examples} <= {f"d{n}" for n in range(6)}
    with pytest.raises(UsageError, match="every document of one side is also on the other"):
        desk.compare(clusters=(0, 1), run="taxonomy")
    with pytest.raises(UsageError, match=r"the taxonomy run 'taxonomy' has no group 9: there are 0, 1, 2, 3, 4, 5, 6"):
        desk.compare(clusters=(0, 9), run="taxonomy")
    with pytest.raises(UsageError, match=r"'7 \(empty\)' holds no documents"):
        desk.compare(clusters=(4, 7), run="taxonomy")
    desk.tag("some", where="n < 3")
    with pytest.raises(UsageError, match="the tag run 'some' has no groups to compare: give a cluster, topic or taxon"):
        desk.compare(clusters=(0, 1), run="some")


def test_a_tree_has_at_most_100_levels(tmp_path: Path) -> None:
    rows = [{"id": "d", "text": "text"}]
    made = index(rows, tmp_path / "deep.sonde", id="id", text="text", encoder=FakeEncoder())  # type: ignore[arg-type]
    made.import_taxonomy("number,name,parent\n0,g,\n" + "".join(f"{n},g,{n - 1}\n" for n in range(1, 100)), "csv")
    made.edit_taxonomy("move", ids=["d"], to=99)
    assert ids_where(made, '"taxonomy:taxonomy" = 0') == {"d"}
    with pytest.raises(UsageError, match="the group 100 'h' would lie on level 101; the maximum is 100"):
        made.edit_taxonomy("add", name="h", to=99)
    made.edit_taxonomy("add", name="h", to=98)


def test_choices_of_a_filter_are_in_the_order_of_the_tree_with_their_paths(desk: Collection) -> None:
    [facet] = [each for each in desk.facets() if each.name == "taxonomy:taxonomy name"]
    assert dict(zip(facet.paths, facet.choices, strict=True)) == {
        "late": ("late", 9),  # three groups have this name
        "cash": ("cash", 7),
        "cash > it's 100%": ("it's 100%", 6),
        "cards": ("cards", 6),
        "cards > lost": ("lost", 3),
        "no group": ("no group", 1),
    }
    assert facet.paths == ("late", "cash", "cash > it's 100%", "cards", "cards > lost", "no group")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("crads", "taxonomy:taxonomy name is never 'crads': did you mean 'cards'? values: late, cash, "),
        ("cards > lsot", "taxonomy:taxonomy name is never 'cards > lsot': did you mean 'cards > lost'? values: "),
    ],
)
def test_a_misspelt_group_above_others_is_found(desk: Collection, value: str, said: str) -> None:
    assert said in desk.explain_filter(f"\"taxonomy:taxonomy name\" = '{value}'")


@pytest.mark.parametrize("shards", [None, 2])
def test_names_may_look_like_parts_of_paths(tmp_path: Path, shards: int | None) -> None:
    rows = [{"id": f"d{n}", "text": f"text {n}"} for n in range(5)]
    made = index(rows, tmp_path / "c.sonde", shards=shards, encoder=FakeEncoder())  # type: ignore[arg-type]
    table = "number,name,parent\n0,whole,\n1,> x,0\n2,> >,0\n3,a >,0\n4,b,3\n"
    made.import_taxonomy(table, "csv", documents="id,group\n" + "".join(f"d{n},{n}\n" for n in range(5)))
    facet = next(each for each in made.facets() if each.paths)
    assert list(zip(facet.choices, facet.paths, strict=True)) == [
        (("whole", 5), "whole"), (("a >", 2), "whole > a >"), (("b", 1), "whole > a > > b"),
        (("> >", 1), "whole > > >"), (("> x", 1), "whole > > x"),
    ]  # fmt: skip
    [note] = made.search("text", where="\"taxonomy:taxonomy name\" = 'whole > a > > c'").notes
    assert "did you mean 'whole > a > > b'" in note


def test_a_note_shows_the_beginning_of_long_names(tmp_path: Path) -> None:
    made = index([{"id": "d", "text": "text"}], tmp_path / "c.sonde", encoder=FakeEncoder())  # type: ignore[arg-type]
    made.import_taxonomy(f"number,name,parent\n0,{'long ' * 30},\n", "csv", documents="id,group\nd,0\n")
    [note] = made.search("text", where="\"taxonomy:taxonomy name\" = 'other'").notes
    assert note.endswith(f"values: {('long ' * 30)[:80]}…")
