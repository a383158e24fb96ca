"""The map: places, new documents on it, regions, drawings."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from clustered import clustered
from command_line import Command, command, contents, inject, problems
from extras import needs
from fake_encoder import FakeEncoder
from themes import THEMES, collection, rows
from thinned import thinned

from sonde.app.api import Collection
from sonde.indexer.errors import SondeError
from sonde.indexer.store.kinds import MAP
from sonde.indexer.store.run_writing import delete_run
from sonde.pipelines.analysis.neighbours import place
from sonde.pipelines.map import Map, MapSettings
from sonde.pipelines.map.mapping import fit_places
from sonde.pipelines.map.regions import find_regions

pytestmark = needs("umap")

MARKUP = "<b>battery</b> </script><script>alert(1)</script> & voltage"


@pytest.fixture
def shop(tmp_path: Path) -> Collection:
    made = collection(tmp_path / "shop.sonde", [*rows(), {"id": "markup", "text": MARKUP, "theme": "", "stars": 0}])
    made.map(seed=1)
    return made


@pytest.fixture
def sonde(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    inject(monkeypatch, FakeEncoder())
    return command(capsys, monkeypatch)


def by_id(found: Map) -> dict[str, tuple[float, float]]:
    with found.collection.view() as view:
        documents = view.documents(found.docs.tolist())
    return {documents[doc].id: tuple(at) for doc, at in zip(found.docs.tolist(), found.places.tolist(), strict=True)}


def test_near_texts_are_near(shop: Collection) -> None:
    places = by_id(shop.map_run())
    middles = {theme: np.mean([places[f"{theme}-{n}"] for n in range(30)], axis=0) for theme in THEMES}
    for key, at in places.items():
        if key != "markup":
            assert min(middles, key=lambda theme: float(np.linalg.norm(middles[theme] - at))) == key.split("-")[0]


def test_new_documents_are_placed_and_no_other_moves(shop: Collection) -> None:
    before = by_id(shop.map_run())
    twin = {"id": "twin", "text": rows()[0]["text"], "theme": "parcel", "stars": 1}
    made = [*rows(), {"id": "markup", "text": MARKUP, "theme": "", "stars": 0}]
    collection(shop.path, [*made, *rows(4, first=200), twin])
    assert shop.map_run().newer == 17
    found = shop.map_run().update()
    after = by_id(found)
    assert {key: at for key, at in after.items() if key in before} == before
    assert after["twin"] == before[rows()[0]["id"]]
    for theme in THEMES:
        known = np.array([before[f"{theme}-{n}"] for n in range(30)])
        for n in range(200, 204):
            assert np.linalg.norm(known - after[f"{theme}-{n}"], axis=1).min() < np.ptp(found.places, axis=0).max() / 5
    assert sum(item.data["size"] for item in found.regions if item.data["level"] == 1) == len(after)
    assert found.newer == 0


def test_the_rest_is_placed_among_the_sample() -> None:
    vectors = clustered(300)
    settings = MapSettings(sample=150, seed=5)
    places, fitted = fit_places(vectors, settings)
    again, _ = fit_places(vectors, settings)
    np.testing.assert_array_equal(places, again)
    assert len(fitted) == 150
    others = np.setdiff1d(np.arange(300), fitted)
    alone = place(vectors[others[:1]], vectors[fitted], places[fitted])
    np.testing.assert_array_equal(alone[0], places[others[0]])
    low, high = places[fitted].min(axis=0), places[fitted].max(axis=0)
    assert ((places[others] >= low) & (places[others] <= high)).all()


def test_a_text_between_two_islands_goes_to_one_of_them() -> None:
    vectors = np.eye(4, dtype=np.float32)[[0] * 6 + [1] * 4]
    vectors += 0.01 * np.arange(10, dtype=np.float32)[:, None] * np.eye(4, dtype=np.float32)[3]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    places = np.array([[0.0, 0.0]] * 6 + [[100.0, 0.0]] * 4)
    query = np.array([[1, 0.9, 0, 0]], np.float32)
    assert place(query / np.linalg.norm(query), vectors, places)[0].tolist() == [0.0, 0.0]


def test_regions_nest() -> None:
    places = np.random.default_rng(0).standard_normal((2_000, 2))
    regions = find_regions(places, seed=0)
    assert len(regions.centres) == 48
    assert set(regions.large_of.tolist()) == set(range(9))
    assert regions.of(regions.centres).tolist() == list(range(48))
    assert len(find_regions(places[:5], seed=0).centres) == 0


def test_regions_have_names_and_places(shop: Collection) -> None:
    found = shop.map_run()
    words = {word for theme, more in THEMES.items() for word in (theme, *more.split())} | {"script", "alert"}
    assert {item.data["level"] for item in found.regions} == {1, 2}
    named = [item for item in found.regions if item.name != f"region {item.number}"]
    assert len(named) >= len(found.regions) - 2  # its own words may all be in the names of others
    for item in named:
        assert set(re.findall(r"\w+", item.name)) <= words
    for item in found.regions:
        assert [item.data["x"], item.data["y"]] in np.round(found.places, 5).tolist()
    for level in (1, 2):
        assert sum(item.data["size"] for item in found.regions if item.data["level"] == level) == 121


def test_no_region_repeats_a_name_or_the_words_of_the_region_around_it(shop: Collection) -> None:
    regions = shop.map_run().regions if any(run.kind == "map" for run in shop.runs()) else shop.map().regions
    names = {item.number: item.name for item in regions}
    assert len({name.casefold() for name in names.values()}) == len(names)
    for item in regions:
        if item.data["level"] == 2:
            around = set(names[item.data["within"]].lower().replace(",", "").split())
            assert not around & set(item.name.lower().replace(",", "").split()) - {"region"}


@pytest.mark.parametrize("color", [None, "theme", "stars"])
def test_a_page_works_offline_and_shows_texts_as_texts(shop: Collection, tmp_path: Path, color: str | None) -> None:
    pytest.importorskip("plotly")
    shop.map_run().draw(tmp_path / "map.html", color)
    page = (tmp_path / "map.html").read_text("utf-8")
    assert re.findall(r"<(?:script|link|img|iframe)[^>]*(?:src|href)=", page) == []
    assert "@import" not in page
    assert "alert(1)</script>" not in page
    assert "battery-1" in page
    start = page.index("Plotly.newPlot(")
    assert "&lt;b&gt;battery" in page[start:].replace("\\u0026", "&")


@pytest.mark.parametrize("color", thinned(["theme", None, "stars"]))
def test_an_image(shop: Collection, tmp_path: Path, color: str | None) -> None:
    pytest.importorskip("matplotlib")
    for name in ("one.png", "two.png"):
        shop.map_run().draw(tmp_path / name, color)
    one, two = ((tmp_path / name).read_bytes() for name in ("one.png", "two.png"))
    assert one.startswith(b"\x89PNG")
    assert one == two
    assert len(one) > 20_000


def test_some_points_are_drawn(shop: Collection, tmp_path: Path) -> None:
    pytest.importorskip("plotly")
    said: list[object] = []
    shop.map_run().draw(tmp_path / "map.html", points=50, notify=said.append)
    assert said == ["drawing 50 of 121 documents, sampled at random"]


def test_the_command_line(shop: Collection, sonde: Command, tmp_path: Path) -> None:
    before = contents(shop.path)
    png = tmp_path / "map.png"
    assert sonde("map", shop.path, "--to", png, "--color", "theme").code == 0
    assert png.read_bytes().startswith(b"\x89PNG")
    found = [json.loads(line) for line in sonde("map", shop.path, "--update", "map", "--json").out.splitlines()]
    assert {"run", "number", "name", "level", "x", "y", "size", "terms"} <= found[0].keys()
    again = sonde("map", shop.path, "--to", png)
    assert (again.code, "· made 20" in again.err) == (0, True), "drawn, and not made again"
    sonde("map", shop.path, "--to", png, "--seed", 2).refused("'map' was made with another seed", code=2)
    sonde("map", shop.path, "--to", "x.pdf").refused("'x.pdf'", ".html, .png or .svg", code=2)
    sonde("map", shop.path, "--to", "no/such/x.png").refused("no/such")
    sonde("map", shop.path, "--color", "theme").refused("--color needs --to", code=2)
    sonde("map", shop.path, "--to", png, "--color", "topic:x").refused("'topic:x'", "theme, day, stars", code=2)
    sonde("map", shop.path, "--update", "other").refused("there is no map run 'other'", "map")
    assert contents(shop.path) == before
    delete_run(shop.stored, MAP, "map")
    with pytest.raises(SondeError, match="there is no map run in this collection: create one first, with `sonde map`"):
        shop.map_run()
    assert sonde("map", shop.path, "--to", png).code == 0
    assert problems(shop.path) == []


@pytest.mark.parametrize(("count", "distinct"), [(1, 1), (3, 3), (30, 1)])
def test_a_handful_of_texts(tmp_path: Path, count: int, distinct: int) -> None:
    pytest.importorskip("matplotlib")
    made = collection(tmp_path / "c.sonde", [{"id": str(n), "text": f"word{n % distinct}"} for n in range(count)])
    found = made.map()
    assert len(np.unique(found.places, axis=0)) == distinct
    assert np.isfinite(found.places).all()
    found.draw(tmp_path / "map.png")


def test_an_interrupted_map_leaves_nothing(shop: Collection) -> None:
    before = contents(shop.path)

    def interrupt(event: object) -> None:
        if "naming" in str(event):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match=r"^$"):
        shop.map("other", progress=interrupt)
    assert contents(shop.path) == before
