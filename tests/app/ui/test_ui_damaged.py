"""A shelf on which one collection is damaged: its pages say so, and those of the others work."""
# ruff: noqa: F811  (fixtures that are imported)

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from ui_pages import Pages, pages, shown  # noqa: F401  (fixture)

EVERY = ("search", "map", "clusters", "labels", "evaluate", "explain")


def _unopenable(bad: Path) -> str:
    (bad / "catalog.db").write_bytes(b"x" * 5_000)
    return "db is damaged"


def _unreadable(bad: Path) -> str:
    shutil.rmtree(bad / "vectors")
    return "npy is missing"


@pytest.mark.parametrize("damage", [_unopenable, _unreadable])
def test_the_pages_of_the_others_work(pages: Pages, damage: Callable[[Path], str]) -> None:
    pages.collection("aaa").close()
    pages.collection("reviews").close()
    said = damage(pages.shelf / "aaa.sonde")
    for page in EVERY:
        broken = pages.open(page, collection="aaa")
        assert not broken.exception and [said in each.value for each in broken.error] == [True], page
        sound = pages.open(page, collection="reviews")
        assert not sound.exception and not sound.error, page
    first = pages.open("search")
    assert not first.exception and "reviews" in first.selectbox[0].options
    found = pages.open("search", collection="reviews", q="battery")
    assert "battery" in shown(found) and not found.error
    for name in ("aaa", "reviews"):
        data = pages.open("data", collection=name)
        assert not data.exception, name
        assert name == "reviews" or said in shown(data)
