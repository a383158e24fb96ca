"""The Explore page: what the workbench is given, actions on a selection, making a map; and the parts of a map."""
# ruff: noqa: F811  (fixtures that are imported)

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import streamlit
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.testclient import TestClient
from themes import rows
from ui_overview import Started, box, mapped, shop, started  # noqa: F401  (fixture)
from ui_pages import MARKUP, Pages, pages, shown, unread  # noqa: F401  (fixture)

from sonde.app.api import Collection
from sonde.app.ui.desk import DESK, MOST_TABLES, Desk, routes
from sonde.app.ui.map import state_of
from sonde.indexer.errors import UsageError
from sonde.indexer.store.lock import writer_lock
from sonde.pipelines.facets import Facets
from sonde.pipelines.facets.table import unpack_arrays
from sonde.pipelines.map.regions import inside, read_outlines
from sonde.pipelines.map.stored import choices, coloring


def sent(page: Any) -> dict[str, Any]:
    """What the workbench of a page is given."""
    [chart] = page.get("bidi_component")
    return json.loads(chart.proto.json)


def area(*sides: float) -> str:
    """The selection of a box, as the address has it."""
    left, low, right, high = sides
    outline = [[left, low], [right, low], [right, high], [left, high]]
    return json.dumps({"mode": "all", "parts": [{"kind": "area", "map": "map", "outlines": [outline]}]})


@pytest.fixture
def client() -> TestClient:
    """A client of the requests that the workbench sends."""
    return TestClient(Starlette(routes=routes()))


def test_without_a_map_there_is_a_way_to_one_and_the_rest_works(pages: Pages, started: Started) -> None:
    shop(pages)
    page = pages.open("map", collection="shop")
    assert "No map yet" in shown(page)
    assert sent(page)["rows"] == 120, "charts and the table need no map"
    page.button[0].click().run()
    assert started.commands == [["map", "shop.sonde"]]


def test_an_empty_collection_and_a_map_without_documents(pages: Pages, started: Started) -> None:
    made = shop(pages)
    mapped(made)
    made.delete(where="length > 0")
    assert "This collection is empty" in shown(pages.open("map", collection="shop"))
    pages.collection("shop", [{"id": "new", "text": "something else"}])
    page = pages.open("map", collection="shop")
    assert "This map is empty" in shown(page)
    make = next(button for button in page.button if button.label == "Make the map")
    make.click().run()
    assert started.commands == [["map", "shop.sonde", "--name", "map-2"]], "regions may have names of a person"
    page.text_input(key="map_name:map-2").set_value("map").run()
    page.checkbox(key="map_name_replace:map").check().run()
    next(button for button in page.button if button.label == "Make the map").click().run()
    assert started.commands[1:] == [["map", "shop.sonde", "--name", "map", "--replace"]]


def test_the_page_says_that_it_reads_the_documents(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    mapped(shop(pages))
    now: list[str] = []
    read = Collection.table

    @contextmanager
    def spinner(text: str, **_: Any) -> Iterator[None]:
        now.append(text)
        yield
        now.clear()

    def table(collection: Collection, map: str | None = None) -> Facets:
        assert now == ["Reading the documents …"]
        return read(collection, map)

    monkeypatch.setattr(streamlit, "spinner", spinner)
    monkeypatch.setattr(Collection, "table", table)
    assert sent(pages.open("map", collection="shop"))["rows"] == 120


def test_the_workbench_reads_table_texts_and_hits_by_requests(pages: Pages, client: TestClient) -> None:
    made = shop(pages)
    places = mapped(made)
    token = sent(pages.open("map", collection="shop"))["token"]
    assert sent(pages.open("map", collection="shop"))["token"] == token, "the same table is read once"
    answer = client.get(f"/workbench/{token}/table")
    header, arrays = unpack_arrays(answer.content)
    assert (header["rows"], header["map"]) == (120, "map") and "immutable" in answer.headers["cache-control"]
    assert np.array_equal(np.stack([arrays["x"], arrays["y"]], axis=1), places.astype(np.float32))
    found = client.get(f"/workbench/{token}/rows", params={"rows": "4,0,900,-1"}).json()
    assert [(each["row"], each["id"], each["text"]) for each in found] == [
        (0, "parcel-0", rows()[0]["text"]), (4, "parcel-1", rows()[4]["text"]),
    ]  # fmt: skip
    hits = client.get(f"/workbench/{token}/search", params={"q": "parcel courier", "k": "7"}).json()
    query = {"kind": "query", "query": "parcel courier", "k": 7}
    assert sorted(hits["rows"]) == made.table().rows(made.select({"parts": [query]})).tolist(), (
        "as the selection has it"
    )
    assert len(hits["rows"]) == 7 and hits["scores"] == sorted(hits["scores"], reverse=True)
    assert all(row % 4 == 0 for row in hits["rows"][:3]), "parcels lie in the first row"
    part = {"kind": "documents", "ids": ["parcel-1", "nobody", "parcel-0"]}
    assert client.get(f"/workbench/{token}/resolve", params={"part": json.dumps(part)}).json() == {"rows": [0, 4]}


def test_requests_that_cannot_be_answered_say_why_in_one_line(pages: Pages, client: TestClient) -> None:
    mapped(shop(pages))
    token = sent(pages.open("map", collection="shop"))["token"]
    for path, status, said in (
        ("guessed/table", 404, "This page is out of date. Reload it."),
        (f"{token}/rows?rows=x", 400, "The rows are not whole numbers"),
        (f"{token}/rows?rows={'9' * 5000}", 400, "The rows are not whole numbers"),
        (f"{token}/search?q=", 400, "The query is empty"),
        (f"{token}/search?q=a&k={'9' * 5000}", 400, "The number of hits is not a whole number from 1"),
        (f"{token}/search?q=a&k=0", 400, "The number of hits is not a whole number from 1"),
        (f"{token}/resolve?part=[", 400, "This part of the selection is not valid: remove it"),
        (f"{token}/resolve?part={'[' * 20_000}", 400, "This part of the selection is not valid: remove it"),
        (f"{token}/resolve?part=[]", 400, "Part 1 of the selection is not an object"),
        (f"{token}/resolve?part={{}}", 400, "Part 1 of the selection has the kind None"),
    ):
        answer = client.get(f"/workbench/{path}")
        assert answer.status_code == status
        assert answer.json()["message"].startswith(said)


def test_another_commit_is_another_table_and_the_oldest_is_given_up(pages: Pages) -> None:
    made = shop(pages)
    mapped(made)
    token = sent(pages.open("map", collection="shop"))["token"]
    made.tag("late", where="theme = 'parcel'")
    other = sent(pages.open("map", collection="shop"))["token"]
    before, after = DESK.find(token), DESK.find(other)
    assert before is not None and after is not None and token != other
    names = [[column.name for column in seat.table.columns] for seat in (before, after)]
    assert "tag:late" in names[1] and "tag:late" not in names[0], "an open page keeps the table that it shows"
    desk, table = Desk(), made.table()
    first = desk.seat(made, table)
    assert desk.seat(made, table) == first
    for _ in range(MOST_TABLES):
        made.tag("late", where="theme = 'parcel'", change="replace")
        desk.seat(made, made.table())
    assert desk.find(first) is None


def test_addresses_of_the_former_map_open_the_same(pages: Pages) -> None:
    made = shop(pages)
    mapped(made)
    old = {"q": "parcel courier", "area": box(-0.5, -0.5, 7.5, 0.5), "color": "nothing", "names": "small"}
    state = sent(pages.open("map", collection="shop", **old))["state"]
    assert state["color"] == "-" and "names" not in state
    assert json.loads(state["s"]) == {"mode": "all", "parts": [
        {"kind": "area", "map": "map", "outlines": [[[-0.5, -0.5], [7.5, -0.5], [7.5, 0.5], [-0.5, 0.5]]]},
        {"kind": "query", "query": "parcel courier", "k": 100},
    ]}  # fmt: skip
    assert state_of({"color": "theme", "names": "none", "s": "", "view": "1,2,3"}, "map") == (
        {"color": "theme", "names": "none", "view": "1,2,3"}, "",
    )  # fmt: skip
    page = pages.open("map", collection="shop", area="a,b;c")
    assert "cannot be read: draw it again" in shown(page).replace("\\", "") and sent(page)["state"] == {}


def test_a_selection_is_shown_with_its_terms_and_texts(pages: Pages) -> None:
    mapped(shop(pages))
    page = pages.open("map", collection="shop", s=area(-0.5, -0.5, 7.5, 0.5), do="apart")
    said = shown(page)
    assert "2 of 120 documents" in said and rows()[0]["text"] in said and rows()[4]["text"] in said
    assert rows()[1]["text"] not in said
    nothing = pages.open("map", collection="shop", s=area(500, 500, 501, 501), do="apart")
    assert "No document is selected" in shown(nothing)
    wrong = pages.open("map", collection="shop", s="{", do="tag")
    assert "the selection is not valid JSON" in shown(wrong).replace("\\", "")


def test_a_selection_is_tagged_and_colours_the_map(pages: Pages) -> None:
    made = shop(pages)
    mapped(made)
    page = pages.open("map", collection="shop", s=area(-0.5, -0.5, 7.5, 0.5), do="tag")
    page.text_input(key="tag_name").set_value("early <b>").run()
    page.button(key="tag_keep").click().run()
    assert [(run.name, run.documents) for run in made.runs("tag")] == [("early <b>", 2)]
    assert page.query_params["color"] in ("tag:early <b>", ["tag:early <b>"]) and "do" not in page.query_params
    assert sorted(row["id"] for row in made.rows() if row["tag:early <b>"]) == ["parcel-0", "parcel-1"]


def test_a_selection_is_clustered_and_labelled(pages: Pages, started: Started) -> None:
    made = shop(pages)
    mapped(made)
    page = pages.open("map", collection="shop", s=area(-0.5, -0.5, 39.5, 1.5), do="cluster")
    page.button(key="part_start").click().run()
    words = started.commands[0]
    assert words[:2] == ["cluster", "shop.sonde"] and words[-4:] == [
        "--name",
        "selection",
        "--where",
        '"tag:selection"',
    ]
    assert made.runs("tag")[0].documents == 20
    page = pages.open("map", collection="shop", s=area(-0.5, -0.5, 39.5, 0.5), do="label")
    page.text_area(key="part_labels").set_value("parcel: post, and more\nrefund").run()
    assert "The tag selection already has other documents and was not changed." in shown(page)
    page.button(key="part_label").click().run()
    assert started.commands[1][2] == "--labels-file"
    assert started.commands[1][4:] == ["--name", "selection", "--where", '"tag:selection-2"']
    assert Path(started.commands[1][3]).read_text() == "parcel: post, and more\nrefund\n"
    assert [(run.name, run.documents) for run in made.runs("tag")] == [("selection", 20), ("selection-2", 10)]


def test_a_selection_replaces_no_tag_and_no_run_unasked(pages: Pages, started: Started) -> None:
    made = shop(pages)
    mapped(made)
    made.tag("mine", where="theme = 'refund'")
    made.cluster("selection", k=2, refits=0)
    page = pages.open("map", collection="shop", s=area(-0.5, -0.5, 39.5, 1.5), do="cluster")
    page.text_input(key="part_name:selection-2").set_value("mine").run()
    assert "This selection is now the tag mine-2." in shown(page)
    page.button(key="part_start").click().run()
    assert started.commands[-1][-4:] == ["--name", "mine", "--where", '"tag:mine-2"']
    assert [(run.name, run.documents) for run in made.runs("tag")] == [("mine", 30), ("mine-2", 20)]
    page = pages.open("map", collection="shop", s=area(-0.5, -0.5, 39.5, 1.5), do="cluster")
    page.text_input(key="part_name:selection-2").set_value("selection").run()
    assert "The cluster run selection already has this name: 120 documents" in shown(page)
    page.button(key="part_start").click().run()
    assert len(started.commands) == 1 and "tick the box to replace the run" in shown(page)
    page.checkbox(key="part_name_replace:selection").check().run()
    page.button(key="part_start").click().run()
    assert started.commands[-1][-5:] == ["--name", "selection", "--replace", "--where", '"tag:selection"']
    page = pages.open("map", collection="shop", s=area(-0.5, -0.5, 39.5, 1.5), do="cluster")
    page.text_input(key="part_name:selection-2").set_value("other").run()
    page.button(key="part_start").click().run()
    assert started.commands[-1][-3:] == ["other", "--where", '"tag:other"']


def test_a_tag_that_exists_is_changed_only_as_chosen(pages: Pages) -> None:
    made = shop(pages)
    mapped(made)
    made.tag("mine", where="theme = 'refund'")
    page = pages.open("map", collection="shop", s=area(-0.5, -0.5, 7.5, 0.5), do="tag")
    page.text_input(key="tag_name").set_value("mine ").run()
    page.button(key="tag_keep").click().run()
    assert made.runs("tag")[0].documents == 30 and "Choose whether to add to the tag" in shown(page)
    page.radio(key="tag_how:mine").set_value("add to it").run()
    page.button(key="tag_keep").click().run()
    assert [(run.name, run.documents) for run in made.runs("tag")] == [("mine", 32)]


def test_a_collection_that_is_being_written_is_said(pages: Pages) -> None:
    made = shop(pages)
    mapped(made)
    page = pages.open("map", collection="shop", s=area(-0.5, -0.5, 7.5, 0.5), do="tag")
    page.text_input(key="tag_name").set_value("t").run()
    with writer_lock(made.path):
        page.button(key="tag_keep").click().run()
    assert "Another process is writing to this collection" in shown(page) and not page.exception
    assert made.runs("tag") == []


def test_text_that_looks_like_markup_stays_text(pages: Pages) -> None:
    made = shop(pages, hostile=True)
    mapped(made, regions=MARKUP)
    page = pages.open("map", collection="shop", s=area(-0.5, -0.5, 7.5, 0.5), do="apart", color="theme")
    assert MARKUP in shown(page)
    unread(page)


def test_a_map_that_is_gone_is_no_failure(pages: Pages) -> None:
    made = shop(pages)
    mapped(made)
    mapped(made, "second")
    page = pages.open("map", collection="shop", map="gone", color="cluster:gone")
    assert not page.exception and len(page.get("bidi_component")) == 1
    assert page.selectbox(key="map").options == ["second", "map"]
    made.delete_run("map")
    made.delete_run("second")
    page.run()
    assert "No map yet" in shown(page)


def test_newer_documents_are_offered_a_place(pages: Pages, started: Started) -> None:
    made = shop(pages)
    mapped(made)
    pages.collection("shop", rows(31))
    page = pages.open("map", collection="shop")
    assert "4 new documents are not on this map" in shown(page)
    next(button for button in page.button if button.label == "Add them to the map").click().run()
    assert started.commands == [["map", "shop.sonde", "--update", "map"]]


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


def test_outlines_of_an_old_address() -> None:
    outlines = [[(0.0, 1.5), (2.25, 3.0), (4.0, -1.0)], [(1.0, 1.0), (2.0, 1.0), (2.0, 2.0)]]
    assert read_outlines("0,1.5;2.25,3;4,-1|1,1;2,1;2,2") == outlines
    for wrong in ("1,2;3,4", "x", "1,2;nan,3;4,5", "1;2;3"):
        with pytest.raises(UsageError, match="draw it again"):
            read_outlines(wrong)


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


def test_what_fails_is_shown_above_the_workbench(pages: Pages) -> None:
    shop(pages)
    page = pages.open("map", collection="shop", do="tag", s='{"mode": "all", "parts": [{"kind": "values"}]}')
    [error] = page.error
    assert error.value.replace("\\", "").startswith("part 1 of the selection has no values: give at least one")
    order = [each.type for each in page.main]
    assert order.index("error") < order.index("bidi_component")
