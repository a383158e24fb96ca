"""The map as a Plotly figure: points by WebGL, names of regions, hits of a query, an outline from the address."""

import html
from collections.abc import Sequence
from datetime import date
from typing import Any

import numpy as np
import streamlit as st

from .....indexer.runs import Item
from .....pipelines.map.area import Outline
from .....pipelines.plots.colors import GREY, Coloring
from .....pipelines.plots.text import plain
from .points import Points, narrow

HEIGHT = 560
SHOWN = (420, 440)
"""Pixels that the map itself takes on a page 1280 wide, without room at its edges."""
NAME = 34
INK = {"light": ("#222222", "rgba(255,255,255,0.75)"), "dark": ("#f2f2f2", "rgba(14,17,23,0.7)")}
NOWHERE = {"light": "#c8c8c8", "dark": "#5a5f6a"}
HIT = "#e6007e"
BRIGHTER = {"#393b79": "#8083d6", "#8c564b": "#c48a7e", "#637939": "#a3b96c", "#1f77b4": "#4c9fd8"}
"""Colours of the palette that are too dark on a dark page."""


def shade(coloring: Coloring, code: int, mode: str) -> str:
    """Return a group's colour on a light or a dark page."""
    color = coloring.color(code)
    if color == GREY:
        return NOWHERE[mode]
    return BRIGHTER.get(color, color) if mode == "dark" else color


@st.cache_resource(show_spinner=False, max_entries=8)
def base_figure(
    key: tuple[Any, ...], _points: Points, _colors: tuple[Coloring, bool] | None, names: str, mode: str
) -> Any:
    """Return the figure without hits; `key` tells what is drawn, in which colours, and how large points are."""
    import plotly.graph_objects as go

    del key
    figure = go.Figure()
    places = _points.places[_points.rows].astype(np.float32)
    if _points.density is not None:
        figure.add_trace(_density(go, _points.density, mode))
    size = float(np.clip(60 / max(len(places), 1) ** 0.33, 2.2, 8))
    opacity = 0.75 if _points.density is None else 0.5
    for color, rows, extra in _groups(_colors, _points.rows, mode):
        figure.add_trace(
            go.Scattergl(
                x=places[rows, 0], y=places[rows, 1], mode="markers", text=_points.hovers[rows],
                hovertemplate="%{text}<extra></extra>", showlegend=False,
                marker={"size": size, "opacity": opacity, "line": {"width": 0}, "color": color, **extra},
            )
        )  # fmt: skip
    axis = {"visible": False, "showgrid": False, "zeroline": False}
    figure.update_layout(
        xaxis=axis | _range(places[:, 0], 0.12), yaxis=axis | _range(places[:, 1]), dragmode="lasso",
        height=HEIGHT, margin={"l": 0, "r": 0, "t": 30, "b": 0}, hoverlabel={"align": "left"}, uirevision="map",
        hovermode="closest",
        annotations=[] if names == "none" else _names(_points, 1 if names == "large" else 2, mode),
    )  # fmt: skip
    return figure


def with_hits(figure: Any, points: Points, docs: np.ndarray, hovers: Sequence[str]) -> Any:
    """Return a figure in which the documents of hits stand out and the rest is dimmed; the best is first in `docs`."""
    import plotly.graph_objects as go

    lit = go.Figure(figure)
    lit.update_traces(marker_opacity=0.15, selector={"type": "scattergl"})
    rows = np.searchsorted(points.docs, docs)
    places = points.places[rows].astype(np.float32)
    lit.add_trace(
        go.Scattergl(
            x=places[:, 0], y=places[:, 1], mode="markers", text=narrow(hovers), showlegend=False,
            hovertemplate="%{text}<extra></extra>",
            marker={"size": 10, "color": HIT, "opacity": 0.95, "line": {"width": 1, "color": "white"}},
        )
    )  # fmt: skip
    return lit


def with_outlines(figure: Any, outlines: Sequence[Outline]) -> Any:
    """Return a figure with outlines drawn on it."""
    import plotly.graph_objects as go

    drawn = go.Figure(figure)
    for outline in outlines:
        path = "M" + "L".join(f"{x},{y}" for x, y in outline) + "Z"
        drawn.add_shape(type="path", path=path, line={"color": HIT, "width": 2, "dash": "dot"})
    return drawn


def _groups(
    colors: tuple[Coloring, bool] | None, drawn: np.ndarray, mode: str
) -> list[tuple[Any, np.ndarray, dict[str, Any]]]:
    """Return the colour, the rows and more marker settings of each trace, those without a group first, so below."""
    if colors is None:
        return [("#4c9fd8" if mode == "dark" else "#0f6e84", np.arange(len(drawn)), {})]
    coloring, days = colors
    numbers, codes = (part[drawn] if len(part) else part for part in (coloring.numbers, coloring.codes))
    if len(numbers):
        known = np.flatnonzero(~np.isnan(numbers))
        bar = {"title": {"text": html.escape(plain(coloring.title, 20))}, "thickness": 12, "len": 0.6}
        scale = {"colorscale": "Viridis", "showscale": True, "colorbar": bar | _ticks(numbers[known], days)}
        blank = np.flatnonzero(np.isnan(numbers))
        found = [(NOWHERE[mode], blank, {}), (numbers[known].astype(np.float32), known, scale)]
        return [part for part in found if len(part[1])]
    found = [(NOWHERE[mode], np.flatnonzero(codes < 0), {})]
    found += [(shade(coloring, n, mode), np.flatnonzero(codes == n), {}) for n in range(len(coloring.names))]
    return [part for part in found if len(part[1])]


def _ticks(numbers: np.ndarray, days: bool) -> dict[str, Any]:
    if not days or not len(numbers):
        return {}
    low, high = numbers.min(), numbers.max()
    ticks = np.unique(np.linspace(low, high, 5).round())
    return {"tickvals": ticks.tolist(), "ticktext": [date.fromordinal(int(day)).isoformat() for day in ticks]}


def _range(values: np.ndarray, share: float = 0.06) -> dict[str, Any]:
    """Return an axis range with room for names at the edges."""
    low, high = float(values.min()), float(values.max())
    room = share * max(high - low, 1e-6)
    return {"range": [low - room, high + room]}


def _density(go: Any, found: tuple[np.ndarray, np.ndarray, np.ndarray], mode: str) -> Any:
    counts, x, y = found
    shades = np.where(counts > 0, np.log1p(counts), np.nan)
    scale = [[0, "#e3eaf0"], [1, "#5f7d96"]] if mode == "light" else [[0, "#1f2a36"], [1, "#7088a3"]]
    return go.Heatmap(z=shades.astype(np.float32), x=x, y=y, colorscale=scale, showscale=False, hoverinfo="skip")


def _names(points: Points, level: int, mode: str) -> list[dict[str, Any]]:
    """Return the names of regions as annotations: text of a trace would lie below the points."""
    ink, halo = INK[mode]
    regions = [item for item in points.regions if item.data["level"] == level]
    found = _apart(regions, 7.5 if level == 1 else 6, np.ptp(points.places, axis=0))
    return [
        {
            "x": item.data["x"], "y": item.data["y"], "showarrow": False, "bgcolor": halo, "borderpad": 1,
            "text": narrow([html.escape(plain(item.name, NAME))])[0],
            "font": {"size": 13 if level == 1 else 10, "color": ink},
        }
        for item in found
    ]  # fmt: skip


def _apart(items: list[Item], letter: float, extent: np.ndarray) -> list[Item]:
    """Return the regions, the largest first, whose names overlap no larger one's.

    A letter is so many pixels wide, the map so large in its own units.
    """
    width, height = np.maximum(extent, 1e-6) / SHOWN
    kept: list[tuple[float, float, float, Item]] = []
    for item in sorted(items, key=lambda item: -item.data["size"]):
        x, y, half = item.data["x"] / width, item.data["y"] / height, letter * len(plain(item.name, NAME)) / 2
        if not any(abs(x - other) < half + more and abs(y - down) < 16 for other, down, more, _ in kept):
            kept.append((x, y, half, item))
    return [item for *_, item in kept]
