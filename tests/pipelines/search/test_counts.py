"""Counting by a column gives what a loop over the rows gives."""

import csv
from collections import Counter
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from fake_encoder import FakeEncoder

from sonde.app.api import Collection, index
from sonde.indexer.errors import UsageError

ROWS = [
    {
        "id": str(number),
        "text": f"text number {number}",
        "stars": number % 4 + 1,
        "price": number / 2 if number % 3 else None,
        "day": date(2020 + number // 400, 1 + number % 12, 1 + number % 28),
        "kinds": ["a", "b"][: 1 + number % 2] if number % 5 else None,
        "new": number % 7 == 0,
    }
    for number in range(1_200)
]


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Collection:
    folder = tmp_path_factory.mktemp("counts") / "c.sonde"
    collection = index(ROWS, folder, id="id", text="text", encoder=FakeEncoder())  # type: ignore[arg-type]
    collection.tag("early", where="stars <= 2")
    return collection


def test_values_are_those_of_a_loop(counted: Collection) -> None:
    found = counted.count_by("stars")
    assert found.values == ((1, 300), (2, 300), (3, 300), (4, 300))
    assert (found.documents, found.missing, found.distinct, found.low, found.high, found.mean) == (
        1200,
        0,
        4,
        1,
        4,
        2.5,
    )
    prices = [row["price"] for row in ROWS if row["price"] is not None]
    found = counted.count_by("price")
    assert (found.missing, found.distinct, found.low, found.high) == (400, 800, 0.5, 599.5)
    assert found.mean == pytest.approx(sum(prices) / len(prices)) and len(found.values) == 200
    lists = Counter(item for row in ROWS for item in row["kinds"] or ())
    assert dict(counted.count_by("kinds").values) == dict(lists)
    assert counted.count_by("new").values == ((False, 1028), (True, 172))
    assert counted.count_by("new").mean is None


def test_a_filter_and_periods(counted: Collection) -> None:
    some = [row for row in ROWS if row["stars"] == 2 and row["day"].year == 2021]
    found = counted.count_by("day", "stars = 2 AND day >= '2021-01-01' AND day < '2022-01-01'", period="month")
    assert found.documents == len(some)
    assert found.values == tuple(sorted(Counter(row["day"].isoformat()[:7] for row in some).items()))
    years = counted.count_by("day", period="year")
    assert years.values == (("2020", 400), ("2021", 400), ("2022", 400))
    assert counted.count_by("day").low == date(2020, 1, 1)
    days = [value for value, _ in counted.count_by("day").values]
    assert days == sorted(days, key=str) and len(days) == 200
    assert days == sorted({row["day"] for row in ROWS}, key=str)[:200], "none is missing between two that are listed"
    assert counted.count_by("stars", "stars > 9").values == () and counted.count_by("stars", "stars > 9").low is None


@pytest.mark.parametrize(
    ("column", "period", "where"), [("day", "day", None), ("day", None, "stars > 1"), ("price", None, None)]
)
def test_lists_in_parts_are_the_whole_list(counted: Collection, column: str, period: Any, where: str | None) -> None:
    whole = counted.count_by(column, where, period=period, k=2_000).values
    parts, offset = [], 0
    while part := counted.count_by(column, where, period=period, k=70, offset=offset).values:
        parts, offset = [*parts, *part], offset + 70
    some = [row for row in ROWS if where is None or row["stars"] > 1]
    assert tuple(parts) == whole and len(whole) == len({row[column] for row in some} - {None})
    if column == "day":
        assert [str(value) for value, _ in whole] == sorted(str(value) for value, _ in whole)


def test_means_are_those_of_a_loop(counted: Collection) -> None:
    found = counted.count_by("kinds", "stars < 4", mean_of="price")
    for (kind, many), mean in zip(found.values, found.means, strict=True):
        some = [row for row in ROWS if row["stars"] < 4 and kind in (row["kinds"] or ())]
        prices = [row["price"] for row in some if row["price"] is not None]
        assert len(some) == many and mean == pytest.approx(sum(prices) / len(prices))
    assert counted.count_by("stars", "price IS NULL", mean_of="price").means == (None,) * 4
    with pytest.raises(UsageError, match="mean_of is 'day', which is not a column of numbers: there are stars, price"):
        counted.count_by("stars", mean_of="day")


def test_a_table_of_two_columns_is_that_of_a_loop(counted: Collection) -> None:
    some = [row for row in ROWS if row["price"] is not None]
    found = counted.cross_by("day", "kinds", "price > 0 OR price = 0", period="year", mean_of="price", k=2)
    assert found.columns == ("day", "kinds") and found.values == (("2020", "2021"), ("a", "b"))
    assert found.documents == len(some) and found.missing == sum(row["kinds"] is None for row in some)
    assert found.distinct == (3, 2)
    for year, counts, means in zip((2020, 2021), found.counts, found.means, strict=True):
        for kind, many, mean in zip("ab", counts, means, strict=True):
            here = [row["price"] for row in some if row["day"].year == year and kind in (row["kinds"] or ())]
            assert many == len(here) and mean == pytest.approx(sum(here) / len(here))
    tagged = counted.cross_by("stars", "tag:early")
    assert tagged.values == ((1, 2, 3, 4), (False, True)) and tagged.missing == 0
    assert tagged.counts == ((0, 300), (0, 300), (300, 0), (300, 0))
    with pytest.raises(UsageError, match="both columns are 'stars': give two different ones"):
        counted.cross_by("stars", "stars")
    with pytest.raises(UsageError, match="period is 'year', but 'new' has no dates"):
        counted.cross_by("stars", "new", period="year")


def test_filters_by_the_newest_runs_come_first(counted: Collection) -> None:
    counted.tag("late", where="stars > 2")
    names = [facet.name for facet in counted.facets()]
    assert names.index("stars") < names.index("tag:late") < names.index("tag:early")


def test_runs_are_counted_too(counted: Collection) -> None:
    assert counted.count_by("tag:early", "stars <= 3").values == ((True, 600), (False, 300))
    counted.cluster("two", k=2)
    groups = counted.count_by("cluster:two")
    assert sum(many for _, many in groups.values) == 1_200
    assert sorted(str(number) for number, _ in groups.values) == ["0", "1"]
    assert (groups.low, groups.high, groups.mean) == (None, None, None), "the number of a group is a name"
    called = {item.number: item.name for item in counted.run("two").items}
    assert groups.names == tuple(called[number] for number, _ in groups.values)  # type: ignore[index]
    assert counted.count_by("cluster:two name").names == counted.count_by("tag:early").names == ()
    assert counted.count_by("two") == groups and counted.count_by("early") == counted.count_by("tag:early")
    counted.tag("two", where="stars = 1")
    with pytest.raises(UsageError, match=r"^several runs have the name 'two': use cluster:two or tag:two$"):
        counted.count_by("two")  # a tag has that name too


def test_months_and_years_count_as_dates_for_periods_that_are_as_long(tmp_path: Path) -> None:
    values = [("2026-03", 2025), ("2026-04", 2026), ("2026-04-11", 2026), (None, None)]
    rows = [{"id": str(place), "text": "a text", "month": month, "y": y} for place, (month, y) in enumerate(values)]
    collection = index(rows, tmp_path / "c.sonde", id="id", text="text", encoder=FakeEncoder())  # type: ignore[arg-type]
    assert collection.count_by("month", period="month").values == (("2026-03", 1), ("2026-04", 2))
    assert collection.count_by("month", period="quarter").values == (("2026-Q1", 1), ("2026-Q2", 2))
    assert collection.count_by("month", period="year").values == (("2026", 3),)
    assert collection.count_by("y", period="year").values == (("2025", 1), ("2026", 2))
    for column, period, said in (
        ("month", "day", "'2026-03' names no day"), ("month", "week", "'2026-03' names no week"),
        ("y", "month", "2025 names no month"), ("y", "quarter", "2025 names no quarter"),
    ):  # fmt: skip
        with pytest.raises(UsageError, match=f"{column!r} has no dates .{said}.; columns of dates here: none"):
            collection.count_by(column, period=period)  # type: ignore[arg-type]


def test_a_text_column_of_dates_names_the_value_that_keeps_it_text(tmp_path: Path) -> None:
    """The first value is a good date: the message is about the one that is not, also if the filter leaves it out."""
    days = [f"{day:02d}.03.2026" for day in range(1, 20)]
    rows = [
        {
            "id": str(place),
            "text": "a text",
            "slip": "soon" if place == 9 else day,
            "either": f"{place % 3 + 1:02d}/04/2026",
            "shop": day if place < 5 else "Bath",
        }
        for place, day in enumerate(days)
    ]
    with (tmp_path / "c.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    collection = index(tmp_path / "c.csv", tmp_path / "c.sonde", encoder=FakeEncoder())  # type: ignore[arg-type]
    for column, said in (
        (
            "slip",
            "is text: 'soon' is not a date; index the file again with a type, such as "
            r"read=sonde.ReadOptions\(type={'slip': 'date'}\); columns",
        ),
        (
            "either",
            r"is text: its dates are not all in one clear form \('01/04/2026'\); index the file again with a type, "
            r"such as read=sonde.ReadOptions\(type={'either': 'date:%d/%m/%Y'}\); columns of dates here: none",
        ),
        ("shop", r"has no dates \('Bath' names no month\)"),
    ):
        for where in (None, "id < '3'"):
            with pytest.raises(UsageError, match=f"period is 'month', but '{column}' {said}"):
                collection.count_by(column, where, period="month")


@pytest.mark.parametrize(
    ("column", "given", "said"),
    [
        ("color", {}, r"there is no column 'color': there are stars, price, day, kinds, new, tag:early"),
        ("length", {}, r"^documents cannot be counted by length, only filtered: there are stars, price, day"),
        ("stars", {"period": "year"}, "period is 'year', but 'stars' has no dates"),
        ("day", {"period": "hour"}, "period is 'hour': use year, quarter, month, week, day"),
        ("day", {"where": "color = 1"}, "color"),
    ],
)
def test_what_cannot_be_counted(counted: Collection, column: str, given: dict[str, str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        counted.count_by(column, **given)  # type: ignore[arg-type]
