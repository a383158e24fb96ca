"""Filters that compare a text column with a date: refused if its dates cannot be compared as texts."""

from pathlib import Path
from typing import Any

import pytest
from fake_encoder import FakeEncoder

from sonde import Collection, UsageError, index

ROWS = [
    {
        "id": str(number),
        "text": f"Text number {number} is here",
        "opened": f"{1 + number:02}/0{1 + number % 2}/2024" if number != 3 else "unknown",
        "closed": f"2024-0{1 + number % 2}-{1 + number:02}" if number != 3 else "unknown",
        "mixed": f"2024-01-{1 + number:02}" if number < 11 else "12/02/2024",
        "version": f"1.{number}.{10 + number}",
    }
    for number in range(12)
]


@pytest.fixture(params=[None, 2])
def collection(tmp_path: Path, request: pytest.FixtureRequest) -> Any:
    encoder: Any = FakeEncoder()
    with index(ROWS, tmp_path / "t.sonde", encoder=encoder, shards=request.param) as made:
        assert {made.info().fields[name] for name in ("opened", "closed", "mixed", "version")} == {"text"}
        yield made


@pytest.mark.parametrize(
    ("where", "first"),
    [
        ("opened < '2024-02'", r"with the date '2024-02': it holds '0\d/0\d/2024', "),
        ("NOT (id = '1' OR '2024' <= opened)", r"with the date '2024': it holds"),
        ("opened BETWEEN '2024-01-01' AND '2024-02-01T12:00'", r"with the date '2024-01-01': it holds"),
        ("opened > DATE '2024-01-01'", r"with the date '2024-01-01': it holds"),
        ("opened >= '05/01/2024'", r"with the date '05/01/2024': it holds"),
        ("mixed > '2024-01-05'", r"it holds '12/02/2024', "),
    ],
)
def test_an_order_of_dates_that_are_not_iso_is_refused(collection: Collection, where: str, first: str) -> None:
    """`delete` with such a filter deleted three times as many documents as were meant, in alphabetical order."""
    for ask in (
        collection.matching,
        lambda given: collection.delete(where=given),
        lambda given: collection.count_by("mixed", given),
    ):
        with pytest.raises(UsageError, match=first) as caught:
            ask(where)
        assert caught.value.field == "where"
    assert "such as read=sonde.ReadOptions(type={'opened': 'date:%d/%m/%Y'})" in str(caught.value) or where.startswith(
        "mixed"
    )
    assert len(collection) == len(ROWS)


@pytest.mark.parametrize(
    ("where", "count"),
    [
        ("closed < '2024-02'", 6),
        ("closed >= '2024-02-01' AND closed < '2025'", 5),
        ("opened = '01/01/2024'", 1),
        ("opened != '2024-02'", 12),
        ("opened > 'm'", 1),
        ("version >= '1.1.11'", 11),
        ("id < '2024-01-01'", 5),
    ],
)
def test_other_comparisons_of_text_are_as_before(collection: Collection, where: str, count: int) -> None:
    assert collection.matching(where)[0] == count
