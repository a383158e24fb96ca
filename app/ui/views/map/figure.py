"""What the map's chart is given: points with their colours, names of regions, shades of where documents lie."""

from typing import Any

import numpy as np
import pyarrow as pa
import streamlit as st
from plotly.colors import sequential

from .....pipelines.plots.colors import GREY, Coloring
from .....pipelines.plots.text import plain
from .chart import Chart, Name
from .points import Points

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


def names_of(points: Points, level: int) -> list[Name]:
    """Return the names of regions of a level, the largest first."""
    regions = sorted(
        (item for item in points.regions if item.data["level"] == level), key=lambda item: -item.data["size"]
    )
    return [Name(item.data["x"], item.data["y"], plain(item.name, NAME), level) for item in regions]


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
