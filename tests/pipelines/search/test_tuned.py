"""A search says which settings of `sonde tune` it used."""

from pathlib import Path

import pytest
from command_line import Command, command, inject
from fake_encoder import FakeEncoder

import sonde as package
from sonde.pipelines.search.settings import SearchDefaults, store_defaults


@pytest.fixture
def shop(tmp_path: Path) -> package.Collection:
    rows = [{"id": str(n), "text": f"parcel {n} came late"} for n in range(12)]
    made = package.index(rows, tmp_path / "shop.sonde", encoder=FakeEncoder())  # type: ignore[arg-type]
    store_defaults(made.stored, SearchDefaults(weight=0.3, depth=20, rerank_depth=7, rerank_weight=0.2))
    return made


@pytest.mark.parametrize(
    ("options", "used"),
    [
        ({}, {"weight": 0.3, "depth": 20}),
        ({"weight": 0.9}, {"depth": 20}),
        ({"fusion": "rrf", "depth": 30}, {}),
        ({"mode": "dense"}, {}),
        ({"mode": "lexical"}, {}),
        ({"rerank": True, "rerank_depth": 3}, {"weight": 0.3, "depth": 20, "rerank_weight": 0.2}),
    ],
)
def test_stored_settings_that_are_used_are_named(
    shop: package.Collection, options: dict[str, object], used: dict[str, float]
) -> None:
    found = shop.search("late parcel", **options)  # type: ignore[arg-type]
    assert found.tuned == used
    assert (found.fusion is not None and found.fusion.dense == 0.3) == ("weight" in used)


def test_the_threshold_counts_in_every_search(shop: package.Collection) -> None:
    store_defaults(shop.stored, SearchDefaults(threshold=0.5, slope=10.0, middle=0.5))
    assert shop.search("late parcel", mode="lexical").tuned == {"threshold": 0.5}
    store_defaults(shop.stored, SearchDefaults())
    assert shop.search("late parcel").tuned == {}


def test_explain_prints_them(
    shop: package.Collection, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    inject(monkeypatch, FakeEncoder())
    sonde: Command = command(capsys, monkeypatch)
    ran = sonde("search", shop.path, "late parcel", "--explain")
    assert "tuned: weight 0.3, depth 20 (`sonde tune`)" in ran.out.splitlines()
    assert "tuned" not in sonde("search", shop.path, "late parcel").out
