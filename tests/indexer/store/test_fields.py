"""The types of metadata fields: how they widen, what a value becomes, their names; and periods of dates."""

import math
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from fake_encoder import FakeEncoder
from stored import index, opened

from sonde.indexer.document import Document, Value
from sonde.indexer.ingest import index_documents
from sonde.indexer.store.fields import PERIODS, Period, period_of, periods_between


def values(folder: Path, name: str = "x") -> list[Value]:
    return [row[name] for row in opened(folder).rows()]


WIDENED: list[tuple[list[Any], list[Any], str]] = [
    ([1, 2], [1, 2], "integer"),
    ([1, 2.5], [1.0, 2.5], "real"),
    ([2.5, 3], [2.5, 3.0], "real"),
    ([1, "a"], ["1", "a"], "text"),
    ([0.1 + 0.2, "a"], ["0.30000000000000004", "a"], "text"),
    ([1e16, 1e-7, "a"], ["1e+16", "1e-07", "a"], "text"),
    ([1.5, 2, "a"], ["1.5", "2", "a"], "text"),
    ([1, 2.5, "a"], ["1", "2.5", "a"], "text"),
    ([True, "a"], ["true", "a"], "text"),
    ([True, 2], ["true", "2"], "text"),
    ([2, False], ["2", "false"], "text"),
    ([2**63], [str(2**63)], "text"),
    ([5, 2**63], ["5", str(2**63)], "text"),
    ([date(2020, 1, 2), datetime(2020, 1, 2, 3)], [date(2020, 1, 2), datetime(2020, 1, 2, 3)], "date"),
    ([date(2020, 1, 2), "soon"], ["2020-01-02", "soon"], "text"),
    ([["a", 1], "b"], ['["a", 1]', "b"], "text"),
    ([None, 3], [None, 3], "integer"),
    ([math.nan, 3], [None, 3], "integer"),
    ([math.inf, -math.inf], [math.inf, -math.inf], "real"),
    ([[1.0, math.nan], [None]], [[1.0, None], [None]], "list"),
    (["", " "], ["", " "], "text"),
]


@pytest.mark.parametrize(("given_", "expected", "kind"), WIDENED)
@pytest.mark.parametrize("batch", [1, pytest.param(100, marks=pytest.mark.long)])
def test_types_widen(tmp_path: Path, given_: list[Any], expected: list[Any], kind: str, batch: int) -> None:
    folder = tmp_path / "c.sonde"
    source = [Document(f"text {n}", key=str(n), metadata={"x": value}) for n, value in enumerate(given_)]
    index(source, folder, batch=batch)
    assert values(folder) == expected
    assert [type(value) for value in values(folder)] == [type(value) for value in expected]
    assert opened(folder).info().fields == {"x": kind}
    report, _ = index(source, folder, batch=batch)
    assert report.unchanged == len(given_)
    assert opened(folder).search("text", k=9, mode="lexical")[0].to_dict()["metadata"].keys() <= {"x"}


def test_times_are_kept_in_utc(tmp_path: Path) -> None:
    moment = datetime(2024, 5, 6, 1, 30, tzinfo=timezone(timedelta(hours=2)))
    index(
        [
            Document("a", key="1", metadata={"x": moment}),
            Document("b", key="2", metadata={"x": moment.astimezone(UTC)}),
        ],
        tmp_path / "c.sonde",
    )
    assert values(tmp_path / "c.sonde") == [datetime(2024, 5, 5, 23, 30)] * 2


@pytest.mark.parametrize(
    "name", ["a b", 'quo"te', "select", "Ünïcode", "doc", "c0", "id", "text", "x" * 300, "", "a.b"]
)
def test_any_name_of_a_metadata_field(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "c.sonde"
    index([Document("apple", key="1", metadata={name: 7}), Document("apple", key="2", metadata={name: 8})], folder)
    hits = opened(folder).search("apple", mode="lexical", collapse=False)
    assert [hit.metadata for hit in hits] == [{name: 7}, {name: 8}]


def run(folder: Path, *values: Value) -> tuple[tuple[str, ...], list[str]]:
    """Index one document for each value of "stars"; return what became text, and what was said of types."""
    documents = [Document(f"text {n}", key=str(n), metadata={"stars": value}) for n, value in enumerate(values)]
    said: list[str] = []
    report = index_documents(documents, folder, encoder=FakeEncoder(), notify=lambda each: said.append(str(each)))  # type: ignore[arg-type]
    assert opened(folder).verify() == []
    return report.became_text, [sentence for sentence in said if "changes from type" in sentence]


@pytest.mark.parametrize(
    ("kind", "right", "odd", "as_text"),
    [
        ("integer", [0, 10, 9], "many", ["0", "10", "9"]),
        ("real", [0.1, 10.0, 1e20], "many", ["0.1", "10", "1e+20"]),
        ("boolean", [True, False, True], 7, ["true", "false", "true"]),
        ("date", [date(2024, 4, 1), datetime(2024, 4, 2, 3, 4), date(2024, 4, 3)], "soon",
         ["2024-04-01", "2024-04-02T03:04:00", "2024-04-03"]),
    ],
)  # fmt: skip
def test_a_value_that_turns_a_field_into_text_is_named_until_every_value_fits_again(
    tmp_path: Path, kind: str, right: list[Value], odd: Value, as_text: list[str]
) -> None:
    folder = tmp_path / "c.sonde"
    assert run(folder, *right, right[0]) == ((), [])
    assert run(folder, *right, odd) == (
        ("stars",),
        [
            f"note: stars changes from type {kind} to text, because {str(odd)!r} of document '3' does not fit: "
            "filters now compare it as text, until every value fits again"
        ],
    )
    assert [row["stars"] for row in opened(folder).rows()] == [*as_text, str(odd)]
    assert run(folder, *right, odd) == ((), [])
    assert run(folder, *right, right[0]) == (
        (), [f"note: stars changes from type text back to {kind}, because every value fits again"]
    )  # fmt: skip
    assert [row["stars"] for row in opened(folder).rows()] == [*right, right[0]]
    assert run(folder, *right, right[0]) == ((), [])


def test_the_value_is_named_that_does_not_fit_and_not_one_that_came_as_text(tmp_path: Path) -> None:
    folder = tmp_path / "c.sonde"
    run(folder, 1, 2, 3)
    became, [said] = run(folder, "1", "free", "3")
    assert became == ("stars",) and "because 'free' of document '1' does not fit" in said
    assert run(folder, "1", "2", "3")[1] == [
        "note: stars changes from type text back to integer, because every value fits again"
    ]
    assert run(folder, "1", "2", "4") == ((), [])  # all of it came as text, and fits
    assert [row["stars"] for row in opened(folder).rows()] == [1, 2, 4]


def test_every_value_must_fit_again(tmp_path: Path) -> None:
    folder = tmp_path / "c.sonde"
    run(folder, 1, 2, 3)
    run(folder, 1, "many", "more")
    assert run(folder, 1, 2, "more")[1] == run(folder, 1, "few", 3)[1] == run(folder, None, None, None)[1] == []
    assert run(folder, 1, None, 3)[1] == [
        "note: stars changes from type text back to integer, because every value fits again"
    ]


def test_a_field_that_was_always_text_stays_text(tmp_path: Path) -> None:
    folder = tmp_path / "c.sonde"
    run(folder, "01", "many")
    assert run(folder, "1", "2") == ((), [])
    run(tmp_path / "d.sonde", 1, 2)
    run(tmp_path / "d.sonde", "01", 2)
    assert run(tmp_path / "d.sonde", "01", 3) == ((), [])
    assert [row["stars"] for row in opened(tmp_path / "d.sonde").rows()] == ["01", "3"]


def test_names_of_the_periods_of_a_day() -> None:
    assert [period_of(date(2026, 4, 14), period) for period in PERIODS] == [
        "2026", "2026-Q2", "2026-04", "2026-W16", "2026-04-14"
    ]  # fmt: skip
    assert period_of(date(2027, 1, 1), "week") == "2026-W53"  # ISO 8601: this week began in 2026
    assert [period_of(date(2026, month, 1), "quarter")[-1] for month in range(1, 13)] == list("111222333444")


@pytest.mark.parametrize("period", PERIODS)
def test_periods_between_are_those_of_all_days(period: Period) -> None:
    first, last = date(2023, 11, 30), date(2025, 2, 9)
    days = [first + timedelta(days=number) for number in range((last - first).days + 1)]
    found = periods_between(first, last, period, 1000)
    assert found == list(dict.fromkeys(period_of(day, period) for day in days)) == sorted(found)
    assert periods_between(first, last, period, 1) == found[:2]
    end = periods_between(date(9999, 12, 30), date.max, period, 9)
    assert end == list(dict.fromkeys(period_of(day, period) for day in (date(9999, 12, 30), date.max)))
