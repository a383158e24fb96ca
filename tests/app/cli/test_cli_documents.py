"""`sonde get` and `sonde count`."""

import json
from pathlib import Path

import pytest
from command_line import Command, command, inject
from fake_encoder import FakeEncoder

import sonde as package

ROWS = [
    {
        "id": "1",
        "title": "Phone",
        "text": "The battery died.\nAfter a week.",
        "stars": 1,
        "day": "2024-05-06",
        "sold": True,
    },
    {"id": "2", "title": "", "text": "Great light", "stars": 5, "day": "2025-01-02", "sold": True},
    {"id": "3", "title": "", "text": "The screen broke", "stars": 1, "day": None, "sold": False},
]


@pytest.fixture
def sonde(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    inject(monkeypatch, FakeEncoder())
    return command(capsys, monkeypatch)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    package.index(ROWS, tmp_path / "shop.sonde", encoder=FakeEncoder())  # type: ignore[arg-type]
    return tmp_path / "shop.sonde"


def test_documents_are_printed_whole(sonde: Command, shop: Path) -> None:
    ran = sonde("get", shop, "1", "2")
    assert ran.out == (
        "1 · Phone\nstars: 1\nday: 2024-05-06\nsold: true\n\nThe battery died.\nAfter a week.\n"
        "\n2\nstars: 5\nday: 2025-01-02\nsold: true\n\nGreat light\n"
    )
    [found] = [json.loads(line) for line in sonde("get", shop, "1", "--json").out.splitlines()]
    assert found == {
        "id": "1", "title": "Phone", "text": ROWS[0]["text"], "language": None,
        "metadata": {"stars": 1, "day": "2024-05-06", "sold": True},
    }  # fmt: skip


def test_an_unknown_id_is_one_line(sonde: Command, shop: Path) -> None:
    ran = sonde("get", shop, "nobody", "2")
    assert (ran.code, ran.err) == (1, "sonde: there is no document with the id 'nobody'\n")
    assert ran.out == "2\nstars: 5\nday: 2025-01-02\nsold: true\n\nGreat light\n", "those that exist are printed"


def test_documents_are_counted(sonde: Command, shop: Path) -> None:
    assert sonde("count", shop).out == "3 documents\n"
    assert sonde("count", shop, "--where", "stars = 5").out == "1 document\n"
    assert json.loads(sonde("count", shop, "--where", "stars = 5", "--json").out) == {"documents": 1}


def test_documents_are_counted_by_a_column(sonde: Command, shop: Path) -> None:
    assert sonde("count", shop, "--by", "stars").out == (
        "1         2\n5         1\n3 documents, 0 without a value, mean 2.33333\n"
    )
    assert sonde("count", shop, "--by", "day", "--period", "year").out == (
        "2024         1\n2025         1\n3 documents, 1 without a value\n"
    )
    assert sonde("count", shop, "--by", "sold").out == (
        "true          2\nfalse         1\n3 documents, 0 without a value\n"
    ), "as filters and `sonde get` spell it"
    assert json.loads(sonde("count", shop, "--by", "stars", "--where", "stars < 3", "--json").out) == {
        "column": "stars", "documents": 2, "missing": 0, "distinct": 1, "low": 1, "high": 1, "mean": 1.0,
        "values": [{"value": 1, "documents": 2}],
    }  # fmt: skip
    assert sonde("count", shop, "--by", "sold", "--mean-of", "stars").out == (
        "true          2  mean 3 (sd 2.83, n 2)\nfalse         1  mean 1 (n 1)\n3 documents, 0 without a value\n"
    )
    means = json.loads(sonde("count", shop, "--by", "sold", "--mean-of", "stars", "--json").out)["values"]
    assert means == [
        {"value": True, "documents": 2, "mean": 3.0, "n": 2, "sd": pytest.approx(8**0.5)},
        {"value": False, "documents": 1, "mean": 1.0, "n": 1, "sd": None},
    ]


def test_one_value_that_is_not_listed(sonde: Command, shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sonde.pipelines.search.counts.MOST", 1)
    assert sonde("count", shop, "--by", "stars").out.splitlines()[:2] == ["1         2", "… 1 more value"]
    assert sonde("count", shop, "--by", "stars", "--offset", "1").out.splitlines()[:2] == [
        "5         1", "3 documents, 0 without a value, mean 2.33333"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--period", "year"), "--period needs --by: name the column with the dates"),
        (("--mean-of", "stars"), "--mean-of needs --by: name the column whose values get a mean"),
        (("--by", "stars", "--mean-of", "day"), "--mean-of is 'day', which is not a column of numbers: there is only"),
        (("--by", "colour"), "there is no column 'colour': there are stars, day"),
        (("--by", "stars", "--period", "year"), "--period is 'year', but 'stars' has no dates"),
    ],
)
def test_what_cannot_be_counted_is_one_line(sonde: Command, shop: Path, options: tuple[str, ...], said: str) -> None:
    ran = sonde("count", shop, *options)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"sonde: {said}")
