"""The web UI over a sharded collection: every page shows what it shows of one collection."""

# ruff: noqa: F811  (a fixture that is imported)

import re
import shutil
from pathlib import Path

import pytest
import themes
from fake_encoder import FakeEncoder
from ui_pages import Pages, pages, shown  # noqa: F401  (pages: a fixture)

from sonde.app.api import Collection, index
from sonde.app.api.functions import quick_look, remove_collection
from sonde.app.ui.launch import UiSettings, settings_for
from sonde.app.ui.workspace import Workspace
from sonde.indexer.errors import UsageError


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One collection and one in shards, of the same documents and with the same runs."""
    folder = tmp_path_factory.mktemp("made")
    for name, shards in (("xwhole", None), ("xshards", 3)):
        path = folder / f"{name}.sonde"
        with index(themes.rows(12), path, id="id", text="text", encoder=FakeEncoder(), shards=shards) as each:  # type: ignore[arg-type]
            each.cluster("k", k=4)
            each.label(tuple(themes.THEMES), name="l")
            each.map("m")
            each.tag("late", where="stars <= 1")
    return folder


@pytest.fixture
def shelf(pages: Pages, made: Path) -> Pages:
    """Copies of both, which a test may change."""
    shutil.copytree(made, pages.shelf, dirs_exist_ok=True)
    return pages


ADDRESSES: tuple[tuple[str, dict[str, str]], ...] = (
    ("search", {"q": "late parcel"}),
    ("search", {"q": "late parcel", "where": '"cluster:k" = 0'}),
    ("map", {}),
    ("clusters", {}),
    ("clusters", {"run": "cluster:k", "group": "0"}),
    ("labels", {}),
    ("labels", {"run": "l"}),
    ("evaluate", {}),
    ("explain", {}),
    *(("data", {"do": task}) for task in ("About", "Add texts", "Check", "What is new", "Health", "Delete")),
)


@pytest.mark.parametrize(("page", "address"), ADDRESSES, ids=lambda value: str(value))
def test_a_page_shows_what_it_shows_of_one_collection(shelf: Pages, page: str, address: dict[str, str]):
    one, three = (_text(shelf, page, address, name) for name in ("xwhole", "xshards"))
    assert len(one) > 40 or page == "map"  # which a script draws
    assert three == one


def _text(shelf: Pages, page: str, address: dict[str, str], name: str) -> str:
    """Return what a page shows, without times, sizes on the disk and how many shards were searched."""
    text = shown(shelf.open(page, collection=name, **address)).replace(name, "NAME")
    text = re.sub(r"\d shards(, the first)?\\: ", "", text)
    return re.sub(r"exact scan of \d+ passages|[\d.]+ [kM]?B\b|[\d.,]+ m?s\b|\d+:\d+(:\d+)?", "…", text)


def test_it_is_found_opened_and_removed(shelf: Pages):
    work = Workspace(UiSettings(str(shelf.shelf)))
    assert work.names() == ["xshards", "xwhole"]
    assert len(work.open("xshards")) == 48
    assert settings_for(shelf.shelf / "xshards.sonde", None, "cpu", local=True).collection == "xshards"
    look = quick_look(work.path("xshards"))
    assert (look.documents, look.passages, look.model, look.problem) == (48, 48, "fake", "")
    assert look.bytes > 10_000
    before = work.open("xshards")
    remove_collection(work.path("xshards"))
    assert work.names() == ["xwhole"]
    index(themes.rows(2), work.path("xshards"), id="id", text="text", encoder=shelf.encoder, shards=2)  # type: ignore[arg-type]
    assert work.open("xshards") is not before
    assert len(work.open("xshards")) == 8


def test_a_damaged_one_says_so(shelf: Pages):
    path = shelf.shelf / "xshards.sonde"
    (path / "collection.json").write_text("{}")
    assert "collection.json is damaged" in quick_look(path).problem
    assert "is damaged" in shown(shelf.open("data", collection="xshards", do="About"))


def test_an_address_is_refused():
    with pytest.raises(
        UsageError, match=r"does not open collections in an object store yet: search s3://b/c.sonde with"
    ):
        settings_for(Path("s3://b/c.sonde"), None, "cpu", local=True)


def test_a_long_task_is_a_command_on_the_folder(shelf: Pages):
    """The buttons of Health start `sonde verify`, `repair` and `compact`, which know shards."""
    page = shelf.open("data", collection="xshards", do="Health")
    assert [button.label for button in page.button if (button.key or "").startswith("health-")] == [
        "Verify", "Repair", "Compact",
    ]  # fmt: skip
    opened = Collection.open(shelf.shelf / "xshards.sonde", encoder=shelf.encoder)  # type: ignore[arg-type]
    assert (opened.verify(), opened.repair(), opened.compact().removed) == ([], [], 0)
