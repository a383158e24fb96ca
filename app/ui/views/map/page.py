"""The page Map: which map, in which colours, what is lit up, what is selected."""

from typing import Any

import numpy as np
import streamlit as st

from .....indexer.store.kinds import KINDS, MAP
from .....indexer.store.runs import Run
from .....indexer.wording import counted
from .....pipelines.map.regions import Outline
from .....pipelines.plots.colors import Coloring, one_line
from .....pipelines.search.results import Hit
from ....api import Collection
from ....api.functions import inside, read_outlines, write_outlines
from ...jobs.panel import ask_name, may_start, show_work, start
from ...page import empty, escape_markdown, sentences, theme
from ...workspace import Workspace
from .chart import Chart, Mark, Name, draw
from .figure import HIT, LONGEST, TITLE, Points, chart_of, colors_of, points_of, region_names, show_legend
from .selection import show_selection

PLAIN = "nothing"
LIT = 100
"""Hits of a query that are lit up."""
AREA = "area"
"""The selection, in the address."""
CHART = "map_chart"
LEVELS = {"large": 1, "small": 2}


def show(shelf: Workspace, collection: Collection) -> None:
    """Draw the page."""
    st.title("Map", anchor=False)
    running = show_work(shelf, collection)
    runs, colors = collection.uncounted_runs(), collection.colorings()
    maps = [run for run in runs if run.kind is MAP and run.complete]
    if not maps:
        _none(shelf, collection, running)
        return
    run, color, query, names = _controls(maps, colors)
    key = (*collection.documents_state(), run.number)
    points = points_of(collection, run.name, key)
    if not len(points.docs):
        empty("Nothing is left on this map", "Its documents were deleted or have changed. Make the map again.")
        _make(shelf, collection, running, run.name)
        return
    _newer(shelf, collection, points, running)
    found = _colors(collection, color, key, runs, points)
    mode = theme()
    chart = chart_of((*key, _colored(collection, color, runs), mode), points, found and found[0], mode)
    marks = _hits(collection, points, query) if query.strip() else []
    drawn, side = st.columns([5, 3], gap="medium")
    with drawn:
        outlines = _chart(chart, region_names(points, LEVELS[names]) if names in LEVELS else [], marks)
    with side:
        selected = points.docs[inside(points.places, outlines)] if outlines else points.docs[:0]
        if outlines:
            st.button("Clear the selection", icon=":material/close:", type="tertiary", on_click=_clear, key="clear")
            show_selection(shelf, collection, selected, len(points.docs), running)
        else:
            st.markdown("Draw around points with the mouse, as a lasso or a box, to work with them. The wheel zooms.")
    if found is not None:
        with drawn if outlines else side:  # beside the map there is room as long as nothing is selected
            show_legend(*found, mode)


def _none(shelf: Workspace, collection: Collection, running: bool) -> None:
    empty(
        "No map yet",
        "A map lays all documents out on a plane, near texts near each other, and names its regions. "
        "It is made once, in the background: seconds for small collections, minutes for large ones.",
        ":material/scatter_plot:",
    )
    _make(shelf, collection, running)


def _make(shelf: Workspace, collection: Collection, running: bool, again: str = "") -> None:
    with st.container(horizontal_alignment="center"), sentences():
        name, replace = ask_name(collection, "Name", again, MAP, "map_name") if again else ("map", [])
        idle = may_start(running)
        if st.button("Draw the map", type="primary", icon=":material/scatter_plot:", disabled=not idle or not name):
            start(shelf, collection, "Map", "map", *(["--name", name, *replace] if again else []))


def _controls(maps: list[Run], colors: list[str]) -> tuple[Run, str, str, str]:
    cells = st.columns([2, 3, 2, 2] if len(maps) > 1 else [2, 3, 2], vertical_alignment="bottom")
    options = [PLAIN, *colors]
    groups = [kind for kind in KINDS if kind.groups]
    first = next((name for name in colors if name.partition(":")[0] in groups), PLAIN)
    if st.session_state.get("_map_color") in options:  # of a job, which may still run
        st.session_state["color"] = st.session_state.pop("_map_color")
    elif "color" not in st.session_state and "color" not in st.query_params:
        st.session_state["color"] = first
    color = cells[0].selectbox("Colour by", options, key="color", bind="query-params")
    query = cells[1].text_input("Highlight the hits of a query", key="q", bind="query-params", placeholder="a query")
    names = cells[2].segmented_control(
        "Names of regions", ["large", "small", "none"], default="large", required=True, key="names", bind="query-params"
    )  # fmt: skip
    chosen = maps[-1]
    if len(maps) > 1:
        by_name = {run.name: run for run in reversed(maps)}
        chosen = by_name[cells[3].selectbox("Map", list(by_name), key="map", bind="query-params")]
    return chosen, color or PLAIN, query or "", names or "large"


def _newer(shelf: Workspace, collection: Collection, points: Points, running: bool) -> None:
    if len(points.rows) < len(points.docs):
        st.caption(
            f"{len(points.rows):,} of {counted(len(points.docs), 'document')} are drawn, from all over the map. "
            "The shades behind them show how many lie where. A selection takes all documents inside it."
        )
    if points.newer > 0:
        said, button = st.columns([4, 1], vertical_alignment="center")
        said.info(f"{counted(points.newer, 'newer document')} {'is' if points.newer == 1 else 'are'} not on this map.")
        with sentences():
            if button.button("Place them", disabled=not may_start(running), width="stretch"):
                start(shelf, collection, "Map: new documents", *MAP.update, points.name)


def _colored(collection: Collection, color: str, runs: list[Run]) -> tuple[object, ...]:
    """Return a key for colours: it changes when the run is made again, or when its items are renamed."""
    run = next((run for run in runs if run.kind.column(run.name) == color), None)
    if run is None:
        return (color,)
    return color, run.number, tuple(item.name for item in collection.items(run))


def _colors(
    collection: Collection, color: str, key: tuple[Any, ...], runs: list[Run], points: Points
) -> tuple[Coloring, bool] | None:
    if color == PLAIN:
        return None
    return colors_of(collection, color, (*key, _colored(collection, color, runs)), points)


def _hits(collection: Collection, points: Points, query: str) -> list[Mark]:
    """Return the hits of a query that are on the map, the best first, and say how many there are."""
    with sentences():
        hits = list(collection.search(query, k=LIT))
        numbers = collection.numbers(hit.id for hit in hits)
        found = [
            _mark(points.places[row].tolist(), hit)
            for hit in hits
            if hit.id in numbers and (row := _row(points.docs, numbers[hit.id])) is not None
        ]
        st.caption(
            f"{counted(len(found), 'hit')} of {escape_markdown(repr(query))} highlighted, at most the best {LIT}."
            if found
            else f"Nothing on this map answers {escape_markdown(repr(query))}."
        )
        return found
    return []


def _mark(place: list[float], hit: Hit) -> Mark:
    x, y = place
    return Mark(x, y, one_line(f"{hit.rank}. {hit.title}", TITLE), one_line(hit.passage.text, LONGEST))


def _row(docs: np.ndarray, number: int) -> int | None:
    """Return a document's place in ascending numbers; None for one that is not there."""
    row = int(np.searchsorted(docs, number))
    return row if row < len(docs) and docs[row] == number else None


def _chart(chart: Chart, names: list[Name], marks: list[Mark]) -> list[Outline]:
    """Draw the chart, and return the outlines of the selection, which the address keeps."""
    outlines: list[Outline] = []
    with sentences():
        outlines = list(read_outlines(st.query_params.get(AREA, "")))
    draw(chart, names, marks, HIT, outlines, key=CHART, on_select=_select)
    return outlines


def _select() -> None:
    """Put what was drawn into the address."""
    outlines = st.session_state[CHART]["outlines"]
    if outlines:
        st.query_params[AREA] = write_outlines(outlines)
    else:
        _clear()


def _clear() -> None:
    st.query_params.pop(AREA, None)
