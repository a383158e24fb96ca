"""The page Map: which map, in which colours, what is lit up, what is selected."""

from typing import Any

import numpy as np
import streamlit as st

from .....indexer.runs import Run, list_runs
from .....indexer.wording import counted
from .....pipelines.map.area import inside, read_outlines, write_outlines
from .....pipelines.map.coloring import choices
from .....pipelines.plots.colors import Coloring
from ....api import Collection
from ...plain import escape_markdown
from ...shelf import Shelf
from ...ways_on import empty, sentences
from ...work import may_start, show_work, start
from .figure import base_figure, theme, with_hits, with_outlines
from .legend import show_legend
from .points import Points, colors_of, points_of, stamp
from .selection import show_selection

PLAIN = "nothing"
LIT = 100
"""Hits of a query that are lit up."""
TOOLS = {"displaylogo": False, "displayModeBar": True, "scrollZoom": True}
TOOLS |= {"modeBarButtonsToRemove": ["autoScale2d", "toImage"]}
AREA, DRAWN, CHART = "area", "_map_drawn", "_map_chart"
"""The selection in the address; whether this session drew it; the number of the chart, which a new one forgets."""


def show(shelf: Shelf, collection: Collection) -> None:
    """Draw the page."""
    st.title("Map", anchor=False)
    running = show_work(shelf, collection)
    with collection.view() as view:
        runs = list_runs(view.catalog)
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
    figure = base_figure((*key, _colored(color, runs), names, mode), points, found, names, mode)
    if query.strip():
        figure = _lit(collection, figure, points, query)
    chart, side = st.columns([5, 3], gap="medium")
    with chart:
        outlines = _chart(figure, points)
    with side:
        selected = points.docs[inside(points.places, outlines)] if outlines else points.docs[:0]
        if outlines:
            st.button("Clear the selection", icon=":material/close:", type="tertiary", on_click=_clear, key="clear")
            show_selection(shelf, collection, selected, len(points.docs), running)
        else:
            st.markdown("Draw around points with the mouse, as a lasso or a box, to work with them. The wheel zooms.")
        if found is not None:
            show_legend(found[0], theme())


def _none(shelf: Shelf, collection: Collection, running: bool) -> None:
    empty(
        "No map yet",
        "A map lays all documents out on a plane, near texts near each other, and names its regions. "
        "For 2,000 documents that takes about half a minute, for 100,000 several minutes.",
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
    wanted = st.session_state.pop("_map_color", None)
    if wanted in options:
        st.session_state["color"] = wanted
    color = cells[0].selectbox(
        "Colour by", options, index=options.index(first), key="color", bind="query-params",
    )  # fmt: skip
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


def _colored(color: str, runs: list[Run]) -> str:
    """Return what tells the colours from those of a run of the same name made anew, or renamed inside."""
    run = next((run for run in runs if f"{run.kind}:{run.name}" == color), None)
    return f"{color} {run.number} {run.created}" if run else color


def _colors(
    collection: Collection, color: str, key: tuple[Any, ...], runs: list[Run], points: Points
) -> tuple[Coloring, bool] | None:
    if color == PLAIN:
        return None
    return colors_of(collection, color, (*key, _colored(color, runs)), points)


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


def _chart(figure: Any, points: Points) -> list[list[tuple[float, float]]]:
    """Draw the chart, and return the outlines of the selection: those drawn now, else those of the address."""
    kept = st.query_params.get(AREA, "")
    outlines: list[list[tuple[float, float]]] = []
    if kept and not st.session_state.get(DRAWN):
        with sentences():
            outlines = read_outlines(kept)
            figure = with_outlines(figure, outlines)
    number = st.session_state.setdefault(CHART, 0)
    event = st.plotly_chart(
        figure, key=f"chart-{points.name}-{number}", on_select="rerun", selection_mode=("box", "lasso"),
        config=TOOLS,
        alt="The documents as points, near texts near each other",
    )  # fmt: skip
    drawn = _outlines(event)
    if drawn:
        st.session_state[DRAWN] = True
        st.query_params[AREA] = write_outlines(drawn)
        return read_outlines(st.query_params[AREA])
    if st.session_state.pop(DRAWN, False) and AREA in st.query_params:
        del st.query_params[AREA]  # a double click on the map
        return []
    return outlines


def _outlines(event: Any) -> list[list[tuple[float, float]]]:
    """Return the outlines of lassos and boxes in a chart's event."""
    found = []
    chosen = event.selection if event else {}
    for lasso in chosen.get("lasso", []):
        if len(lasso["x"]) >= 3:
            found.append(list(zip(lasso["x"], lasso["y"], strict=True)))
    for box in chosen.get("box", []):
        (left, right), (low, high) = box["x"][:2], box["y"][:2]
        found.append([(left, low), (right, low), (right, high), (left, high)])
    return found


def _clear() -> None:
    st.query_params.pop(AREA, None)
    st.session_state.pop(DRAWN, None)
    st.session_state[CHART] = st.session_state.get(CHART, 0) + 1
