"""The page Map: empty, coloured, lit up, selected; and the parts of a map."""
# ruff: noqa: F811  (fixtures that are imported)

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from themes import rows
from ui_overview import Started, box, mapped, shop, started  # noqa: F401  (fixture)
from ui_pages import MARKUP, Pages, pages, shown, unread  # noqa: F401  (fixture)

from sonde.app.ui.views.map.chart.mount import DIMMED
from sonde.app.ui.views.map.figure import BUDGET, LONGEST, SCALE, beginnings
from sonde.indexer.errors import UsageError
from sonde.indexer.store.lock import writer_lock
from sonde.pipelines.map.regions import density, inside, read_outlines, spread_sample, write_outlines
from sonde.pipelines.map.stored import choices, coloring


def sent(page: Any) -> tuple[pa.Table, dict[str, Any]]:
    """What the chart of a page is given: its points, and the rest."""
    [chart] = page.get("bidi_component")
    found = json.loads(chart.proto.mixed.json)
    [blob] = chart.proto.mixed.arrow_blobs.values()
    with pa.ipc.open_stream(blob.data) as stream:
        return stream.read_all(), found


def test_without_a_map_there_is_a_way_to_one(pages: Pages, started: Started) -> None:
    shop(pages)
    page = pages.open("map", collection="shop")
    assert "No map yet" in shown(page)
    page.button[0].click().run()
    assert started.commands == [["map", "shop.sonde"]]


def test_an_empty_collection_and_a_map_without_documents(pages: Pages, started: Started) -> None:
    made = shop(pages)
    mapped(made)
    made.delete(where="length > 0")
    assert "An empty collection" in shown(pages.open("map", collection="shop"))
    pages.collection("shop", [{"id": "new", "text": "something else"}])
    page = pages.open("map", collection="shop")
    assert "Nothing is left on this map" in shown(page)
    make = next(button for button in page.button if button.label == "Draw the map")
    make.click().run()
    assert started.commands == [["map", "shop.sonde", "--name", "map-2"]], "regions may have names of a person"
    page.text_input(key="map_name:map-2").set_value("map").run()
    page.checkbox(key="map_name_replace:map").check().run()
    next(button for button in page.button if button.label == "Draw the map").click().run()
    assert started.commands[1:] == [["map", "shop.sonde", "--name", "map", "--replace"]]


def test_points_take_the_colours_of_a_run_or_a_column(pages: Pages) -> None:
    made = shop(pages)
    mapped(made)
    made.cluster("k", k=4, refits=0)
    page = pages.open("map", collection="shop")
    assert page.selectbox(key="color").value == "cluster:k"
    points, chart = sent(page)
    counts = Counter(points["color"].to_pylist())
    assert sorted(counts.values()) == [30] * 4 and all(color >> 24 == 255 for color in counts)
    assert set(zip(points["x"].to_pylist(), points["y"].to_pylist(), strict=True)) == {(n, n % 4) for n in range(120)}
    assert chart["bounds"] == [0, 0, 119, 3] and chart["density"] is None
    assert "30" in shown(page)
    theme = pages.open("map", collection="shop", color="theme")
    assert {name for name in ("parcel", "battery", "screen", "refund") if name in shown(theme)} == {
        "parcel", "battery", "screen", "refund",
    }  # fmt: skip
    by_day = pages.open("map", collection="shop", color="day")
    assert all(day in shown(by_day) for day in ("2024-01-10", "2024-02-26", "2024-04-13"))
    points, _ = sent(by_day)
    days = [row["day"] for row in rows()]
    ends = [days.index(min(days)), days.index(max(days))]
    by_place = dict(zip(points["x"].to_pylist(), points["color"].to_pylist(), strict=True))
    first, last = (by_place[place] for place in ends)
    assert [color.to_bytes(4, "little")[:3].hex() for color in (first, last)] == [SCALE[0][1:], SCALE[-1][1:]]
    assert page.get("alert") == []


def test_a_query_lights_up_its_hits(pages: Pages) -> None:
    made = shop(pages)
    mapped(made)
    page = pages.open("map", collection="shop", q="parcel courier", color="nothing")
    points, chart = sent(page)
    assert (chart["opacity"], len(points), len(chart["hits"])) == (DIMMED, 120, 100)
    best = chart["hits"][0]
    assert "parcel" in best["text"] and best["title"].startswith("1.")
    assert best["x"] % 4 == best["y"] == 0, "parcels lie in the first row"
    assert "100 hits of \\'parcel courier\\' highlighted" in shown(page)


def test_a_selection_of_the_address_is_shown_and_can_be_cleared(pages: Pages) -> None:
    made = shop(pages)
    mapped(made)
    page = pages.open("map", collection="shop", area=box(-0.5, -0.5, 7.5, 0.5))
    said = shown(page)
    assert "2 of 120 documents" in said and rows()[0]["text"] in said and rows()[4]["text"] in said
    assert rows()[1]["text"] not in said
    assert sent(page)[1]["outlines"] == [[[-0.5, -0.5], [7.5, -0.5], [7.5, 0.5], [-0.5, 0.5]]]
    again = pages.again("map", page)
    assert "2 of 120 documents" in shown(again)
    page.button(key="clear").click().run()
    assert "area" not in page.query_params and "2 of 120" not in shown(page)
    assert sent(page)[1]["outlines"] == []
    assert "cannot be read" in shown(pages.open("map", collection="shop", area="a,b;c"))
    assert "No document is inside the selection" in shown(
        pages.open("map", collection="shop", area=box(500, 500, 501, 501))
    )


def test_a_selection_is_named(pages: Pages) -> None:
    made = shop(pages)
    mapped(made)
    page = pages.open("map", collection="shop", area=box(-0.5, -0.5, 7.5, 0.5))
    page.text_input(key="tag_name").set_value("early <b>").run()
    page.button(key="tag_keep").click().run()
    assert [(run.name, run.documents) for run in made.runs("tag")] == [("early <b>", 2)]
    assert page.selectbox(key="color").value == "tag:early <b>"
    assert sorted(row["id"] for row in made.rows() if row["tag:early <b>"]) == ["parcel-0", "parcel-1"]


def test_a_selection_is_clustered_and_labelled(pages: Pages, started: Started) -> None:
    made = shop(pages)
    mapped(made)
    page = pages.open("map", collection="shop", area=box(-0.5, -0.5, 39.5, 1.5))
    page.button(key="part_start").click().run()
    words = started.commands[0]
    assert words[:2] == ["cluster", "shop.sonde"] and words[-4:] == [
        "--name",
        "selection",
        "--where",
        '"tag:selection"',
    ]
    assert made.runs("tag")[0].documents == 20
    page = pages.open("map", collection="shop", area=box(-0.5, -0.5, 39.5, 0.5))
    page.text_area(key="part_labels").set_value("parcel: post, and more\nrefund").run()
    page.button(key="part_label").click().run()
    assert "The tag selection already has other documents and was not changed." in shown(page)
    assert started.commands[1][2] == "--labels-file"
    assert started.commands[1][4:] == ["--name", "selection", "--where", '"tag:selection-2"']
    assert Path(started.commands[1][3]).read_text() == "parcel: post, and more\nrefund\n"
    assert [(run.name, run.documents) for run in made.runs("tag")] == [("selection", 20), ("selection-2", 10)]


def test_a_selection_replaces_no_tag_and_no_run_unasked(pages: Pages, started: Started) -> None:
    made = shop(pages)
    mapped(made)
    made.tag("mine", where="theme = 'refund'")
    made.cluster("selection", k=2, refits=0)
    page = pages.open("map", collection="shop", area=box(-0.5, -0.5, 39.5, 1.5))
    page.text_input(key="part_name:selection-2").set_value("mine").run()
    assert "This selection is now the tag mine-2." in shown(page)
    page.button(key="part_start").click().run()
    assert started.commands[-1][-4:] == ["--name", "mine", "--where", '"tag:mine-2"']
    assert [(run.name, run.documents) for run in made.runs("tag")] == [("mine", 30), ("mine-2", 20)]
    page.text_input(key="part_name:selection-2").set_value("selection").run()
    assert "The cluster run selection has this name: 120 documents" in shown(page)
    assert page.button(key="part_start").disabled
    page.checkbox(key="part_name_replace:selection").check().run()
    page.button(key="part_start").click().run()
    assert started.commands[-1][-5:] == ["--name", "selection", "--replace", "--where", '"tag:selection"']
    page.text_input(key="part_name:selection-2").set_value("other").run()
    page.button(key="part_start").click().run()
    assert started.commands[-1][-3:] == ["other", "--where", '"tag:other"']


def test_a_tag_that_exists_is_changed_only_as_chosen(pages: Pages) -> None:
    made = shop(pages)
    mapped(made)
    made.tag("mine", where="theme = 'refund'")
    page = pages.open("map", collection="shop", area=box(-0.5, -0.5, 7.5, 0.5))
    page.text_input(key="tag_name").set_value("mine ").run()
    assert page.button(key="tag_keep").disabled
    page.radio(key="tag_how:mine").set_value("add to it").run()
    page.button(key="tag_keep").click().run()
    assert [(run.name, run.documents) for run in made.runs("tag")] == [("mine", 32)]


def test_a_collection_that_is_being_written_is_said(pages: Pages) -> None:
    made = shop(pages)
    mapped(made)
    page = pages.open("map", collection="shop", area=box(-0.5, -0.5, 7.5, 0.5))
    page.text_input(key="tag_name").set_value("t").run()
    with writer_lock(made.path):
        page.button(key="tag_keep").click().run()
    assert "Another process is writing to this collection" in shown(page) and not page.exception
    assert made.runs("tag") == []


def test_text_that_looks_like_markup_stays_text(pages: Pages) -> None:
    made = shop(pages, hostile=True)
    mapped(made, regions=MARKUP)
    page = pages.open("map", collection="shop", area=box(-0.5, -0.5, 7.5, 0.5), color="theme", q=MARKUP)
    assert MARKUP in shown(page)
    unread(page)
    points, chart = sent(page)
    assert any(MARKUP in text for text in points["text"].to_pylist()), "as it stands: the chart shows it as text"
    [name] = chart["names"]
    assert name["text"].startswith("<script>alert(1)</script>")


def test_a_map_or_colour_that_is_gone_is_no_failure(pages: Pages) -> None:
    made = shop(pages)
    mapped(made)
    mapped(made, "second")
    page = pages.open("map", collection="shop", map="gone", color="cluster:gone")
    assert not page.exception and len(page.get("bidi_component")) == 1
    made.delete_run("map")
    made.delete_run("second")
    page.run()
    assert "No map yet" in shown(page)


def test_newer_documents_are_offered_a_place(pages: Pages, started: Started) -> None:
    made = shop(pages)
    mapped(made)
    pages.collection("shop", rows(31))
    page = pages.open("map", collection="shop")
    assert "4 newer documents are not on this map" in shown(page)
    next(button for button in page.button if button.label == "Place them").click().run()
    assert started.commands == [["map", "shop.sonde", "--update", "map"]]


def test_names_of_regions_come_largest_first(pages: Pages) -> None:
    made = shop(pages)
    mapped(made, regions="a region")
    named = {level: sent(pages.open("map", collection="shop", names=level))[1]["names"] for level in ("large", "none")}
    assert [(name["text"], name["level"]) for name in named["large"]] == [("a region", 1)]
    assert named["none"] == []


def test_little_room_takes_the_texts_of_documents_with_a_title(pages: Pages) -> None:
    made = pages.collection(
        "c", [{"id": "1", "title": "A title", "text": "word " * 100}, {"id": "2", "text": "b " * 400}]
    )
    docs = np.array([1, 2])
    titles, texts = beginnings(made, docs)
    assert titles.to_pylist() == ["A title", ""]
    assert [len(text) <= LONGEST and text.endswith(" …") for text in texts.to_pylist()] == [True, True]
    many = np.concatenate([docs, np.arange(3, BUDGET // 40)])  # those that are not there have no text
    titles, texts = beginnings(made, many)
    assert (titles[0].as_py(), texts[0].as_py(), titles[1].as_py()) == ("A title", "", "")
    assert 30 < len(texts[1].as_py()) <= 40 and texts[2].as_py() == ""


def test_beyond_the_limit_a_sample_and_the_density_are_drawn(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    import inspect

    from sonde.app.ui.views.map import figure
    from sonde.app.ui.views.map import page as module

    made = shop(pages)
    mapped(made)
    monkeypatch.setattr(module, "points_of", lambda made, name, key: figure.points_of(made, name, key, 50))
    page = pages.open("map", collection="shop", color="nothing", area=box(-1, -1, 200, 5))
    sample, chart = sent(page)
    below = chart["density"]
    assert len(sample) == 50 and below["bounds"] == [0, 0, 119, 3]
    assert len(below["shades"]) == below["rows"] * below["columns"] and 0 < max(below["shades"]) <= 0.8
    assert sum(shade > 0 for shade in below["shades"]) > 50, "where the other documents lie"
    assert "50 of 120 documents are drawn" in shown(page)
    themed = pages.open("map", collection="shop", color="theme")
    assert shown(themed).count("30") >= 4, "the legend counts all documents"
    assert "120 of 120 documents" in shown(page), "a selection takes those that are not drawn too"
    assert inspect.signature(figure.points_of).parameters["most"].default == 100_000


@given(
    st.lists(st.tuples(st.floats(-5, 5), st.floats(-5, 5)), max_size=30),
    st.tuples(st.floats(-4, 0), st.floats(-4, 0), st.floats(0.1, 4), st.floats(0.1, 4)),
)
def test_what_lies_in_a_box(places: list[tuple[float, float]], sides: tuple[float, float, float, float]) -> None:
    left, low, right, high = sides
    found = inside(np.array(places).reshape(-1, 2), [[(left, low), (right, low), (right, high), (left, high)]])
    for (x, y), within in zip(places, found, strict=True):
        if left < x < right and low < y < high:
            assert within
        if not (left <= x <= right and low <= y <= high):
            assert not within


def test_what_lies_in_a_ring_and_in_two_outlines() -> None:
    concave = [(0, 0), (4, 0), (4, 4), (2, 1), (0, 4)]
    places = np.array([[2, 0.5], [2, 3], [0.5, 2], [3.5, 2], [9, 9], [8, 8]])
    assert inside(places, [concave]).tolist() == [True, False, True, True, False, False]
    assert inside(places, [concave, [(8.5, 8.5), (10, 8.5), (10, 9.9)]]).tolist()[4] is False
    assert inside(places, [concave, [(8.5, 8.5), (10, 8.5), (9, 10)]]).tolist()[4] is True


def test_outlines_in_an_address() -> None:
    outlines = [[(0.0, 1.5), (2.25, 3.0), (4.0, -1.0)], [(1.0, 1.0), (2.0, 1.0), (2.0, 2.0)]]
    assert write_outlines(outlines) == "0,1.5;2.25,3;4,-1|1,1;2,1;2,2"
    assert read_outlines(write_outlines(outlines)) == outlines
    assert read_outlines(write_outlines([[(n / 7, n % 13) for n in range(5000)]]))[0].__len__() == 200
    for wrong in ("1,2;3,4", "x", "1,2;nan,3;4,5", "1;2;3"):
        with pytest.raises(UsageError, match="draw it again"):
            read_outlines(wrong)


def test_a_sample_holds_what_is_rare(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    places = np.vstack([random.normal(0, 1, (20_000, 2)), [[50, 50], [-50, 50]]])
    rows = spread_sample(places, 2_000)
    assert len(rows) == len(set(rows.tolist())) == 2_000 and (np.diff(rows) > 0).all()
    assert {20_000, 20_001} <= set(rows.tolist())
    assert spread_sample(places, 2_000).tolist() == rows.tolist()
    assert spread_sample(places[:10], 20).tolist() == list(range(10))
    even = random.random((20_000, 2))
    counts = np.histogram(even[spread_sample(even, 4_000)][:, 0], 4, (0, 1))[0]
    assert counts.min() > 900


def test_density_counts_every_document() -> None:
    places = np.array([[0.0, 0.0], [0.0, 0.0], [10.0, 5.0]])
    counts, x, y = density(places, 10)
    assert counts.sum() == 3 and counts.shape == (len(y), len(x)) == (20, 10)
    assert counts[0, 0] == 2 and counts[-1, -1] == 1
    assert density(np.zeros((3, 2)), 10)[0].sum() == 3


def test_colours_of_runs_and_columns(pages: Pages) -> None:
    made = shop(pages)
    made.cluster("k", k=4, refits=0)
    made.label(["parcel", "refund"], engine="similarity", name="l", where="theme IN ('parcel', 'refund')")
    made.tag("t", where="theme = 'screen'")
    with made.stored.view() as view:
        docs = np.array([doc for (doc,) in view.catalog.connection.execute("SELECT doc FROM documents ORDER BY doc")])
        assert choices(view.catalog) == ["tag:t", "label:l", "cluster:k", "theme", "day", "stars"]
        themes, _ = coloring(view.catalog, docs, "theme")
        clusters, _ = coloring(view.catalog, docs, "cluster:k")
        assert len({*zip(themes.codes.tolist(), clusters.codes.tolist(), strict=True)}) == 4
        tagged, _ = coloring(view.catalog, docs, "tag:t")
        assert tagged.names == ("tagged",) and (tagged.codes == 0).sum() == 30
        labels, _ = coloring(view.catalog, docs, "label:l")
        assert (labels.codes < 0).sum() == 60
        days, are_days = coloring(view.catalog, docs[:1], "day")
        assert are_days and days.numbers.tolist() == [738_895.0]
        with pytest.raises(UsageError, match="cannot colour by 'x'"):
            coloring(view.catalog, docs, "x")
