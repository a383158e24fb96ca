"""The metadata beside hits: fields that tell them apart, in a form that people read."""

from datetime import UTC, date, datetime
from typing import Any

import pytest

from sonde.pipelines.search.results import Hit, Passage, Scores
from sonde.pipelines.search.tables import shown_metadata, telling_fields


def hit(id: str, **metadata: Any) -> Hit:
    passage = Passage(0, 4, "text")
    return Hit(1, id, 1.0, "", "text", metadata, Scores(), passage, passage)


def test_fields_in_which_hits_differ_are_shown() -> None:
    early, late = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)
    hits = [
        hit("a.txt", path="a.txt", lang="en", stars=1, bytes=17, modified=early),
        hit("b.txt", path="b.txt", lang="en", stars=None, bytes=18, modified=late),
    ]
    assert telling_fields(hits) == ["stars"]
    assert telling_fields(hits[:1]) == ["lang", "stars"]
    assert telling_fields([]) == []


def test_lists_of_objects_are_left_out() -> None:
    hits = [hit("1", asked=['{"id": 1}'], tags=["a"]), hit("2", asked=['{"id": 2}'], tags=["b"])]
    assert telling_fields(hits) == telling_fields(hits[:1]) == ["tags"]


def test_types_tell_values_apart() -> None:
    assert telling_fields([hit("1", code=1), hit("2", code="1")]) == ["code"]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (datetime(2026, 11, 23, 7, 58, 30, 123456), "2026-11-23 07:58"),
        (datetime(2026, 11, 23), "2026-11-23"),
        (date(2026, 11, 23), "2026-11-23"),
        (True, "true"),
        (1234567, "1,234,567"),
        (2024, "2024"),
        (0.1 + 0.2, "0.3"),
        (["a", "b"], "a, b"),
        ("x" * 100, "x" * 80 + " …"),
    ],
)
def test_values_are_short(value: Any, said: str) -> None:
    assert shown_metadata({"field": value}, ["field"]) == [("field", said)]


def test_empty_values_are_left_out() -> None:
    assert shown_metadata({"a": None, "b": "", "c": [], "d": 0}, ["a", "b", "c", "d", "e"]) == [("d", "0")]
