"""The page Map: which map, in which colours, what is lit up, what is selected."""

from hashlib import sha256
from typing import Any

import numpy as np
import streamlit as st

from .....indexer.runs import Run, items_of, list_runs
from .....indexer.wording import counted
from .....pipelines.map.area import inside, read_outlines, write_outlines
from .....pipelines.map.coloring import choices
from .....pipelines.plots.colors import Coloring
from ....api import Collection
from ...generation import stamp
from ...plain import escape_markdown
from ...shelf import Shelf
from ...theme import theme
from ...ways_on import empty, sentences
from ...work import may_start, show_work, start
from .figure import base_figure, with_hits, with_outlines
from .legend import show_legend
from .points import Points, colors_of, points_of
from .selection import show_selection

PLAIN = "nothing"
LIT = 100
"""Hits of a query that are lit up."""
TOOLS = {"displaylogo": False, "displayModeBar": True, "scrollZoom": True}
TOOLS |= {"modeBarButtonsToRemove": ["autoScale2d", "toImage"]}
AREA = "area"
"""The selection, in the address."""
CHART, DRAWN, OUTLINED = "_map_chart", "_map_drawn", "_map_outlined"
"""How often the chart was begun anew; the chart that the selection was drawn on; the chart that shows an outline."""


def show(shelf: Shelf, collection: Collection) -> None:
    """Draw the page."""
    st.title("Map", anchor=False)
    running = show_work(shelf, collection)
    with collection.view() as view:
        runs = list_runs(view.catalog, count=False)
        colors = choices(view.catalog)
    maps = [run for run in runs if run.kind == "map" and run.complete]
    if not maps:
        _none(shelf, collection, running)
        return
    run, color, query, names = _controls(maps, colors)
    key = (*stamp(collection), run.number)
    points = points_of(collection, run.name, key)
    if not len(points.docs):
        empty("Nothing is left on this map", "Its documents were deleted or have changed. Make it anew.")
        _make(shelf, collection, running, "--replace", "--name", run.name)
        return
    _newer(shelf, collection, points, running)
    found = _colors(collection, color, key, runs, points)
    mode = theme()
    drawing = (*key, _colored(collection, color, runs), names, mode, query.strip())
    figure = base_figure(drawing[:-1], points, found, names, mode)
    if query.strip():
        figure = _lit(collection, figure, points, query)
    chart, side = st.columns([5, 3], gap="medium")
    with chart:
        outlines = _chart(figure, drawing)
    with side:
        selected = points.docs[inside(points.places, outlines)] if outlines else points.docs[:0]
        if outlines:
            st.button("Clear the selection", icon=":material/close:", type="tertiary", on_click=_clear, key="clear")
            show_selection(shelf, collection, selected, len(points.docs), running)
        else:
            st.markdown("Draw around points with the mouse, as a lasso or a box, to work with them. The wheel zooms.")
    if found is not None:
        with chart if outlines else side:  # beside the map there is room as long as nothing is selected
            show_legend(found[0], mode)


def _none(shelf: Shelf, collection: Collection, running: bool) -> None:
    empty(
        "No map yet",
        "A map lays all documents out on a plane, near texts near each other, and names its regions. "
        "It is made once, in the background: seconds for small collections, minutes for large ones.",
        ":material/scatter_plot:",
    )
    _make(shelf, collection, running)


def _make(shelf: Shelf, collection: Collection, running: bool, *options: str) -> None:
    with st.container(horizontal_alignment="center"), sentences():
        if st.button("Make the map", type="primary", icon=":material/scatter_plot:", disabled=not may_start(running)):
            start(shelf, collection, "Map", "map", *options)


def _controls(maps: list[Run], colors: list[str]) -> tuple[Run, str, str, str]:
    cells = st.columns([2, 3, 2, 2] if len(maps) > 1 else [2, 3, 2], vertical_alignment="bottom")
    options = [PLAIN, *colors]
    first = next((name for name in colors if name.partition(":")[0] in ("topic", "cluster")), PLAIN)
    if st.session_state.get("_map_color") in options:  # of a job, which may still run
        st.session_state["color"] = st.session_state.pop("_map_color")
    elif "color" not in st.session_state and "color" not in st.query_params:
        st.session_state["color"] = first
    color = cells[0].selectbox("Colour by", options, key="color", bind="query-params")
    query = cells[1].text_input("Light up what a query finds", key="q", bind="query-params", placeholder="a query")
    names = cells[2].segmented_control(
        "Names of regions", ["large", "small", "none"], default="large", required=True, key="names", bind="query-params"
    )  # fmt: skip
    chosen = maps[-1]
    if len(maps) > 1:
        by_name = {run.name: run for run in reversed(maps)}
        chosen = by_name[cells[3].selectbox("Map", list(by_name), key="map", bind="query-params")]
    return chosen, color or PLAIN, query or "", names or "large"


def _newer(shelf: Shelf, collection: Collection, points: Points, running: bool) -> None:
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
                start(shelf, collection, "Map: new documents", "map", "--update", points.name)


def _colored(collection: Collection, color: str, runs: list[Run]) -> tuple[object, ...]:
    """Return what tells colours from those of a run of the same name made anew, or with other names inside."""
    run = next((run for run in runs if f"{run.kind}:{run.name}" == color), None)
    if run is None:
        return (color,)
    with collection.view() as view:
        return color, run.number, tuple(item.name for item in items_of(view.catalog, run))


def _colors(
    collection: Collection, color: str, key: tuple[Any, ...], runs: list[Run], points: Points
) -> tuple[Coloring, bool] | None:
    if color == PLAIN:
        return None
    return colors_of(collection, color, (*key, _colored(collection, color, runs)), points)


def _lit(collection: Collection, figure: Any, points: Points, query: str) -> Any:
    with sentences():
        hits = list(collection.search(query, k=LIT))
        with collection.view() as view:
            numbers = [view.document_number(hit.id) for hit in hits]
        there = [
            (number, hit) for number, hit in zip(numbers, hits, strict=True)
            if number is not None and _on(points.docs, number)
        ]  # fmt: skip
        st.caption(
            f"{counted(len(there), 'hit')} of {escape_markdown(repr(query))} lit up, the best {LIT} at most."
            if there
            else f"Nothing on this map answers {escape_markdown(repr(query))}."
        )
        if not there:
            return figure
        from .....pipelines.plots.text import hover

        hovers = [hover(f"{hit.rank}. {hit.title}", hit.passage.text) for _, hit in there]
        return with_hits(figure, points, np.array([number for number, _ in there], np.int64), hovers)
    return figure


def _on(docs: np.ndarray, number: int) -> bool:
    place = int(np.searchsorted(docs, number))
    return place < len(docs) and docs[place] == number


def _chart(figure: Any, drawing: tuple[Any, ...]) -> list[list[tuple[float, float]]]:
    """Draw the chart, and return the outlines of the selection: those drawn on it, else those of the address.

    A browser forgets a selection with the chart it was drawn on, and a chart is another one when `drawing` is: then the
    address keeps the selection, as an outline. Drawn on a chart with an outline, a selection takes its place.
    """
    key = f"chart {sha256(repr(drawing).encode()).hexdigest()[:12]} {st.session_state.setdefault(CHART, 0)}"
    drawn = _outlines(st.session_state.get(key))
    kept: list[list[tuple[float, float]]] = []
    if drawn:
        st.query_params[AREA] = write_outlines(drawn)
        if st.session_state.get(OUTLINED) == key:
            st.session_state[CHART] += 1
            st.rerun()
        st.session_state[DRAWN] = key
        kept = read_outlines(st.query_params[AREA])
    elif st.session_state.get(DRAWN) == key and key in st.session_state:  # a double click on the chart
        _forget()
    elif AREA in st.query_params:
        with sentences():
            kept = read_outlines(st.query_params[AREA])
            figure = with_outlines(figure, kept)
            st.session_state[OUTLINED] = key
    st.plotly_chart(
        figure, key=key, on_select="rerun", selection_mode=("box", "lasso"), config=TOOLS,
        alt="The documents as points, near texts near each other",
    )  # fmt: skip
    return kept


def _forget() -> None:
    st.query_params.pop(AREA, None)
    st.session_state.pop(DRAWN, None)


def _outlines(event: Any) -> list[list[tuple[float, float]]]:
    """Return the outlines of lassos and boxes in a chart's event."""
    found = []
    chosen = event["selection"] if event else {}
    for lasso in chosen.get("lasso", []):
        if len(lasso["x"]) >= 3:
            found.append(list(zip(lasso["x"], lasso["y"], strict=True)))
    for box in chosen.get("box", []):
        (left, right), (low, high) = box["x"][:2], box["y"][:2]
        found.append([(left, low), (right, low), (right, high), (left, high)])
    return found


def _clear() -> None:
    _forget()
    st.session_state[CHART] = st.session_state.get(CHART, 0) + 1
