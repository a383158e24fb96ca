"""What the map's chart receives: points with colours, region names, density, and the legend."""

import html
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
import streamlit as st
from plotly.colors import sequential

from .....indexer.store.runs import Item
from .....pipelines.plots.colors import GREY, Coloring, one_line
from ....api import Collection
from ....api.functions import density, spread_sample
from .chart import Chart, Name

MOST = 100_000
"""Points that are drawn, at most; beyond, a sample."""
BUDGET = 4_500_000
"""Characters of all texts together that are shown over points, so that a page stays within a few megabytes."""
TITLE, LEAST, LONGEST = 60, 30, 240
"""Characters of a title, and of the beginning of a text where there are many points and where there are few."""
ACROSS = 96
"""Cells of the density across the map."""


@dataclass(frozen=True)
class Points:
    """A map's documents, and those of them that are drawn.

    Attributes:
        name: Of the run.
        docs: int64 [n], ascending.
        places: float64 [n, 2].
        rows: int64, which of them are drawn.
        titles: Of the documents that are drawn; strings.
        texts: Their beginnings.
        density: Of all: counts, and the cells' middles; None where all are drawn.
        regions: Names of regions.
        newer: Documents that are not on the map.
    """

    name: str
    docs: np.ndarray
    places: np.ndarray
    rows: np.ndarray
    titles: pa.Array
    texts: pa.Array
    density: tuple[np.ndarray, np.ndarray, np.ndarray] | None
    regions: list[Item]
    newer: int


@st.cache_resource(show_spinner="Reading the map …", max_entries=4)
def points_of(_collection: Collection, name: str, key: tuple[Any, ...], most: int = MOST) -> Points:
    """Return what is drawn of a map; `key` is its `stamp` and the run's number."""
    del key
    found = _collection.map_run(name)
    rows = spread_sample(found.places, most)
    spread = density(found.places, ACROSS) if len(rows) < len(found) else None
    titles, texts = beginnings(_collection, found.docs[rows])
    return Points(found.name, found.docs, found.places, rows, titles, texts, spread, found.regions, found.newer)


@st.cache_resource(show_spinner="Colouring …", max_entries=16)
def colors_of(_collection: Collection, color: str, key: tuple[Any, ...], _points: Points) -> tuple[Coloring, bool]:
    """Return the colours of all documents of a map; `key` is the map's and what tells the run from others."""
    del key
    return _collection.coloring(_points.docs, color)


def beginnings(collection: Collection, docs: np.ndarray) -> tuple[pa.Array, pa.Array]:
    """Return titles and beginnings of texts, of documents in ascending order; where room is short, one of the two."""
    length = int(np.clip(BUDGET / max(len(docs), 1), LEAST, LONGEST))
    found = {
        doc: _beginning(each.title[: 2 * TITLE], each.text, length)
        for doc, each in collection.beginnings(docs.tolist(), 2 * length).items()
    }
    shown = [found.get(doc, ("", "")) for doc in docs.tolist()]
    return pa.array([title for title, _ in shown], pa.string()), pa.array([text for _, text in shown], pa.string())


def _beginning(title: str, text: str, length: int) -> tuple[str, str]:
    name = one_line(title, min(TITLE, length) if length < TITLE else TITLE) if title.strip() else ""
    return name, "" if name and length < TITLE else one_line(text, length)


NAME = 34
NOWHERE = {"light": "#c8c8c8", "dark": "#5a5f6a"}
PLAIN = {"light": "#0f6e84", "dark": "#4c9fd8"}
SHADE = {"light": "#5f7d96", "dark": "#7088a3"}
HIT = "#e6007e"
BRIGHTER = {"#393b79": "#8083d6", "#8c564b": "#c48a7e", "#637939": "#a3b96c", "#1f77b4": "#4c9fd8"}
"""Colours of the palette that are too dark on a dark page."""
SCALE: tuple[str, ...] = tuple(sequential.Viridis)
"""From the least number to the greatest."""


def shade(coloring: Coloring, code: int, mode: str) -> str:
    """Return a group's colour on a light or a dark page."""
    color = coloring.color(code)
    if color == GREY:
        return NOWHERE[mode]
    return BRIGHTER.get(color, color) if mode == "dark" else color


@st.cache_resource(show_spinner=False, max_entries=8)
def chart_of(key: tuple[Any, ...], _points: Points, _colors: Coloring | None, mode: str) -> Chart:
    """Return the chart without hits; `key` tells what is drawn and in which colours."""
    del key
    places = _points.places[_points.rows].astype(np.float32)
    colors, order = _colored(_colors, _points.rows, mode)
    columns = {"x": places[order, 0], "y": places[order, 1], "color": colors[order]}
    rows = pa.array(order)
    texts = {"title": _points.titles.take(rows), "text": _points.texts.take(rows)}
    (left, low), (right, high) = _points.places.min(axis=0).tolist(), _points.places.max(axis=0).tolist()
    return {
        "points": pa.table({**columns, **texts}),
        "bounds": (left, low, right, high),
        "size": float(np.clip(60 / max(len(places), 1) ** 0.33, 2.2, 8)),
        "opacity": 0.75 if _points.density is None else 0.5,
        "density": None if _points.density is None else _density(_points.density, (left, low, right, high), mode),
    }


def region_names(points: Points, level: int) -> list[Name]:
    """Return the names of regions of a level, the largest first."""
    regions = sorted(
        (item for item in points.regions if item.data["level"] == level), key=lambda item: -item.data["size"]
    )
    return [Name(item.data["x"], item.data["y"], one_line(item.name, NAME), level) for item in regions]


def _colored(coloring: Coloring | None, drawn: np.ndarray, mode: str) -> tuple[np.ndarray, np.ndarray]:
    """Return uint32 [n] colours, and the order in which points are drawn: those without a group or number first."""
    if coloring is None:
        return np.full(len(drawn), _packed(_channels([PLAIN[mode]]))[0]), np.arange(len(drawn))
    if len(coloring.numbers):
        numbers = coloring.numbers[drawn]
        known = ~np.isnan(numbers)
        colors = np.full(len(drawn), _packed(_channels([NOWHERE[mode]]))[0])
        colors[known] = _packed(_scaled(numbers[known]))
        return colors, np.argsort(known, kind="stable")
    palette = _packed(_channels([NOWHERE[mode], *(shade(coloring, n, mode) for n in range(len(coloring.names)))]))
    codes = coloring.codes[drawn]
    return palette[codes + 1], np.argsort(codes, kind="stable")


def _scaled(numbers: np.ndarray) -> np.ndarray:
    """Return float [n, 3] channels of numbers between the least and the greatest of them."""
    low, high = (numbers.min(), numbers.max()) if len(numbers) else (0, 1)
    share = (numbers - low) / max(high - low, 1e-12)
    stops = np.linspace(0, 1, len(SCALE))
    return np.stack([np.interp(share, stops, channel) for channel in _channels(SCALE).T], axis=1)


def _channels(colors: Any) -> np.ndarray:
    """Return float [n, 3], red, green and blue from 0 to 255, of colours as "#rrggbb"."""
    return np.array([list(bytes.fromhex(color[1:])) for color in colors], np.float64)


def _packed(channels: np.ndarray) -> np.ndarray:
    red, green, blue = channels.round().astype(np.uint32).T
    return red | green << 8 | blue << 16 | np.uint32(255) << 24


def _density(
    found: tuple[np.ndarray, np.ndarray, np.ndarray], bounds: tuple[float, float, float, float], mode: str
) -> dict[str, Any]:
    counts = np.log1p(found[0])
    shades = np.where(counts > 0, 0.1 + 0.7 * counts / max(counts.max(), 1e-9), 0).round(3)
    rows, columns = counts.shape
    return {
        "bounds": bounds, "rows": rows, "columns": columns, "shades": shades.ravel().tolist(), "color": SHADE[mode],
    }  # fmt: skip


ROW = (
    "<div style='display:flex;gap:.5rem;align-items:baseline;font-size:.85rem'>"
    "<span style='flex:none;width:.7rem;height:.7rem;border-radius:50%;background:{0}'></span>"
    "<span style='flex:1;overflow:hidden;text-overflow:ellipsis;white-space:nowrap'>{1}</span>"
    "<span style='flex:none;opacity:.7;font-variant-numeric:tabular-nums'>{2:,}</span></div>"
)

BAR = (
    "<div style='margin-top:.5rem;font-size:.85rem'><div>{0}</div>"
    "<div style='height:.7rem;border-radius:.35rem;margin:.3rem 0;background:linear-gradient(to right,{1})'></div>"
    "<div style='display:flex;justify-content:space-between;font-variant-numeric:tabular-nums'>{2}</div></div>"
)


def show_legend(coloring: Coloring, days: bool, mode: str) -> None:
    """Show each group's colour, name and number of points, or the scale of numbers and how many points have none."""
    if len(coloring.numbers):
        _show_scale(coloring, days, mode)
        return
    counts = np.bincount(coloring.codes + 1, minlength=len(coloring.names) + 1).tolist()
    rows = [
        ROW.format(shade(coloring, n, mode), html.escape(one_line(name, 60)), counts[n + 1])
        for n, name in enumerate(coloring.names)
    ]
    if counts[0]:
        rows.append(ROW.format(NOWHERE[mode], "none", counts[0]))
    st.html(f"<div style='margin-top:.5rem'>{''.join(rows)}</div>")


def _show_scale(coloring: Coloring, days: bool, mode: str) -> None:
    known = coloring.numbers[~np.isnan(coloring.numbers)]
    marks = np.linspace(known.min(), known.max(), 3) if len(known) else []
    said = [date.fromordinal(round(mark)).isoformat() if days else f"{mark:,.6g}" for mark in marks]
    spans = "".join(f"<span>{mark}</span>" for mark in said)
    missing = len(coloring.numbers) - len(known)
    below = ROW.format(NOWHERE[mode], "none", missing) if missing else ""
    st.html(BAR.format(html.escape(one_line(coloring.title, 60)), ",".join(SCALE), spans) + below)
