"""Selections: any of them beside a naive evaluation row by row, and what is refused."""

import json
import math
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from linked import linked

from sonde.app.api import Collection
from sonde.indexer.errors import SondeError, UsageError
from sonde.pipelines.facets import Column, Facets, Selection

QUERIES = ("battery dead", "refund number 7", "nothing like it")


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Collection:
    return linked(tmp_path_factory.mktemp("linked") / "shop.sonde")


numbers = st.one_of(st.integers(-30, 30).map(float), st.floats(-1e6, 1e6, allow_nan=False), st.integers(19700, 20100))
corners = st.tuples(st.floats(-15, 15), st.floats(-15, 15)).map(list)
areas = st.fixed_dictionaries(
    {
        "kind": st.just("area"),
        "map": st.sampled_from(["first", "second", None]),
        "outlines": st.lists(st.lists(corners, min_size=3, max_size=8), min_size=1, max_size=3),
    }
)
names = st.sampled_from(
    ["north", "south", "none", "true", "late", "broken", "parcels", "2 screens", "tagged", "p1", "nowhere", None]
)
choices = st.fixed_dictionaries(
    {
        "kind": st.just("values"),
        "column": st.sampled_from(["shop", "open", "parts", "label:kinds", "cluster:four", "tag:few"]),
        "values": st.lists(st.one_of(names, st.just({"other": True})), min_size=1, max_size=4),
    }
)
ranges = st.builds(
    lambda column, ends: {"kind": "range", "column": column, "low": min(ends), "high": max(ends)},
    st.sampled_from(["stars", "price", "day"]),
    st.tuples(numbers, numbers),
)
queries = st.fixed_dictionaries({"kind": st.just("query"), "query": st.sampled_from(QUERIES), "k": st.integers(1, 70)})
documents = st.fixed_dictionaries(
    {"kind": st.just("documents"), "ids": st.lists(st.sampled_from(["d0", "d7", "d59", "nobody"]), max_size=5)}
)
parts = st.builds(
    lambda part, negated: part | ({} if negated is None else {"not": negated}),
    st.one_of(areas, choices, ranges, queries, documents),
    st.sampled_from([None, False, True]),
)
selections = st.fixed_dictionaries({"mode": st.sampled_from(["all", "any"]), "parts": st.lists(parts, max_size=4)})


def column_of(table: Facets, name: str) -> Column:
    return next(column for column in table.columns if column.name == name)


def is_inside(x: float, y: float, outline: list[list[float]]) -> bool:
    """Return whether a ray to the right crosses the outline an odd number of times."""
    crossings = 0
    for (x1, y1), (x2, y2) in zip(outline, [*outline[1:], outline[0]], strict=True):
        if (y1 > y) != (y2 > y) and x < (x2 - x1) * (y - y1) / (y2 - y1) + x1:
            crossings += 1
    return crossings % 2 == 1


def accepts(tables: dict[str | None, Facets], part: dict[str, Any], row: int, hits: dict[str, list[int]]) -> bool:
    table = tables[None]
    match part["kind"]:
        case "area":
            x, y = tables[part["map"]].places[row].tolist()
            return not math.isnan(x) and any(is_inside(x, y, outline) for outline in part["outlines"])
        case "values":
            column = column_of(table, part["column"])
            code = int(column.values[row])
            return (column.names[code] if code >= 0 else None) in part["values"]
        case "range":
            value = float(column_of(table, part["column"]).values[row])
            return part["low"] <= value <= part["high"]
    return int(table.docs[row]) in hits[json.dumps(part)]


def naive(shop: Collection, selection: dict[str, Any]) -> list[int]:
    """Return the numbers of the documents, found row by row."""
    hits: dict[str, list[int]] = {}
    for part in selection["parts"]:
        if part["kind"] in ("query", "documents"):
            ids = (
                part["ids"]
                if "ids" in part
                else [hit.id for hit in shop.search(part["query"], k=part["k"], collapse=False)]
            )
            hits[json.dumps(part)] = list(shop.numbers(ids).values())
    tables = {name: shop.table(name) for name in ("first", "second", None)}
    found = []
    for row, doc in enumerate(tables[None].docs.tolist()):
        said = [accepts(tables, part, row, hits) != part.get("not", False) for part in selection["parts"]]
        if not said or (all(said) if selection["mode"] == "all" else any(said)):
            found.append(doc)
    return found


@given(selection=selections)
@example(selection={"mode": "all", "parts": []})
@example(selection={"mode": "any", "parts": []})
@example(selection={"mode": "all", "parts": [{"kind": "values", "column": "shop", "values": [None], "not": True}]})
@example(selection={"mode": "all", "parts": [{"kind": "documents", "ids": []}]})
def test_a_selection_is_what_each_document_says(shop: Collection, selection: dict[str, Any]) -> None:
    expected = naive(shop, selection)
    assert shop.select(selection).tolist() == expected
    assert shop.select(json.dumps(selection)).tolist() == expected


def test_other_stands_for_what_has_no_name(tmp_path: Any) -> None:
    from fake_encoder import FakeEncoder

    from sonde.app.api import index

    encoder: Any = FakeEncoder()
    rows = [{"id": str(n), "text": f"text {n}", "city": f"c{n % 300:03}"} for n in range(600)]
    rows += [{"id": f"o{n}", "text": f"more {n}", "city": "other"} for n in range(3)]
    made = index(rows, tmp_path / "many.sonde", id="id", text="text", encoder=encoder)

    def ids(*values: object) -> list[str]:
        part = {"kind": "values", "column": "city", "values": list(values)}
        return [document.id for document in made.numbered(made.select({"mode": "all", "parts": [part]}).tolist())]

    assert ids("other") == ["o0", "o1", "o2"], "a value that is called so"
    rest = ids({"other": True})
    assert sorted(rest) == sorted(str(n) for n in range(600) if n % 300 >= 254), "c000 to c253 have names"
    assert ids("c299") == [], "a value without a name of its own"


AREA = {"kind": "area", "map": "first", "outlines": [[[0, 0], [1, 0], [0, 1]]]}
VALUES = {"kind": "values", "column": "shop", "values": ["north"]}
RANGE = {"kind": "range", "column": "stars", "low": 1, "high": 2}


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (5, "part 1 of the selection is not an object"),
        ({}, "has the kind None: use area, values, range, query, documents"),
        ({"kind": ["area"]}, r"has the kind \['area'\]: use area"),
        ({**VALUES, "colum": 1}, "has the entry 'colum': use kind, not, column, values"),
        ({**VALUES, "not": 1}, "has a 'not' that is not a boolean: use true or false"),
        ({**VALUES, "values": []}, "has no values: give at least one"),
        ({**VALUES, "values": "north"}, "has no values: give at least one"),
        ({**VALUES, "values": [1]}, "has an invalid value: use a text, null or {'other': true}"),
        ({**VALUES, "values": [{"other": False}]}, "has an invalid value: use a text, null or"),
        ({**VALUES, "column": None}, "part 1 of the selection names no column"),
        ({**VALUES, "column": "shops"}, "there is no column 'shops': there are tag:few, label:kinds"),
        ({**VALUES, "column": "stars"}, "stars is a number column: select in it with the kind 'range'"),
        ({**RANGE, "column": "shop"}, "shop is a class column: select in it with the kind 'values'"),
        ({**RANGE, "low": 3}, "has a low end 3 above its high end 2"),
        ({**RANGE, "low": True}, "has True instead of a number: give a number"),
        ({**RANGE, "high": "2"}, "has '2' instead of a number: give a number, or a date such as '2024-03-01'"),
        ({**RANGE, "high": 10**400}, "has a number that is not finite"),
        ({**RANGE, "high": math.nan}, "has a number that is not finite"),
        ({**AREA, "outlines": []}, "has no outlines: give at least one"),
        ({**AREA, "outlines": [[[0, 0], [1, 1]]]}, "has an outline with fewer than three corners: draw at least three"),
        ({**AREA, "outlines": [[[0, 0], [1, 1], [2]]]}, "has an invalid corner: give a pair of numbers"),
        ({**AREA, "outlines": [[[0, 0], [1, 1]] * 20_000]}, "has more than 20,000 corners"),
        ({**AREA, "map": 3}, "has no map: give the name of a map run"),
        ({**AREA, "map": "third"}, "there is no map run 'third' in this collection: there are first, second"),
        ({"kind": "query", "query": " ", "k": 3}, "has no query: give the words to look for"),
        ({"kind": "query", "query": "\ud800", "k": 3}, "has no query: give the words to look for"),
        ({"kind": "query", "query": "a", "k": 0}, "has a k of 0: give a whole number from 1 to 100,000"),
        ({"kind": "query", "query": "a", "k": 2.5}, "has a k of 2.5"),
        ({"kind": "documents", "ids": [1]}, "needs a list of ids, each a text"),
    ],
)
def test_what_is_wrong_with_a_part_is_said(shop: Collection, part: Any, message: str) -> None:
    with pytest.raises(SondeError, match=message) as caught:
        shop.select({"mode": "all", "parts": [part]})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the selection is not valid JSON: make the selection again on the Explore page"),
        ("[1", "is not valid JSON"),
        ("[" * 100_000, "is not valid JSON"),
        ('{"parts": [NaN]}', "is not valid JSON"),
        ("[]", "the selection is not an object"),
        ('{"mode": "both"}', "the selection has the mode 'both': use 'all' or 'any'"),
        ('{"mode": []}', r"the selection has the mode \[\]: use 'all' or 'any'"),
        ('{"part": []}', "the selection has the entry 'part': use mode, parts"),
        ('{"parts": "all"}', "the selection needs a list of at most 100 parts"),
        (json.dumps({"parts": [VALUES] * 101}), "the selection needs a list of at most 100 parts"),
        (" " * 4_000_001, "the selection has more than 4,000,000 characters"),
    ],
)
def test_what_is_no_selection_is_refused(shop: Collection, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        shop.select(text)
    assert "\n" not in str(caught.value)


@given(text=st.text() | st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists).map(json.dumps))
def test_any_text_is_read_or_refused_in_one_line(text: str) -> None:
    try:
        Selection.parse(text)
    except UsageError as error:
        assert "\n" not in str(error)
