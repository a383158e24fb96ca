"""What the map draws, made once for each map and colour and kept by the server."""

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st

from .....indexer.runs import Item
from .....indexer.view import View
from .....pipelines.map import Map
from .....pipelines.map.area import density, spread_sample
from .....pipelines.map.coloring import coloring
from .....pipelines.plots.colors import Coloring
from .....pipelines.plots.text import plain
from ....api import Collection

MOST = 100_000
"""Points that are drawn, at most; beyond, a sample."""
HOVER_BUDGET = 4_500_000
"""Characters of all hover texts together, so that a page stays within a few megabytes."""
LINE = 60
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
        hovers: What a drawn point shows under the mouse, markup escaped.
        density: Of all: counts, and the cells' middles; None where all are drawn.
        regions: Names of regions.
        newer: Documents that are not on the map.
    """

    name: str
    docs: np.ndarray
    places: np.ndarray
    rows: np.ndarray
    hovers: np.ndarray
    density: tuple[np.ndarray, np.ndarray, np.ndarray] | None
    regions: list[Item]
    newer: int


@st.cache_resource(show_spinner="Reading the map …", max_entries=4)
def points_of(_collection: Collection, name: str, key: tuple[Any, ...], most: int = MOST) -> Points:
    """Return what is drawn of a map; `key` is its `stamp` and the run's number."""
    del key
    found = Map(_collection, name)
    rows = spread_sample(found.places, most)
    spread = density(found.places, ACROSS) if len(rows) < len(found) else None
    with _collection.view() as view:
        hovers = _hovers(view, found.docs[rows])
    return Points(found.name, found.docs, found.places, rows, hovers, spread, found.regions, found.newer)


@st.cache_resource(show_spinner="Colouring …", max_entries=16)
def colors_of(_collection: Collection, color: str, key: tuple[Any, ...], _points: Points) -> tuple[Coloring, bool]:
    """Return the colours of all documents of a map; `key` is the map's and what tells the run from others."""
    del key
    with _collection.view() as view:
        return coloring(view.catalog, _points.docs, color)


def _hovers(view: View, docs: np.ndarray) -> np.ndarray:
    length = int(np.clip(HOVER_BUDGET / max(len(docs), 1), LINE // 2, 4 * LINE))
    sql = f"SELECT doc, substr(title, 1, {2 * LINE}), substr(text, 1, {2 * length}) FROM documents"
    wanted = set(docs.tolist())
    found = {
        doc: _hover(title, text, length) for doc, title, text in view.catalog.connection.execute(sql) if doc in wanted
    }
    return np.array(narrow([found.get(doc, "") for doc in docs.tolist()]), object)


def narrow(texts: Sequence[str]) -> list[str]:
    """Return HTML texts with characters beyond Latin-1 as entities, unless that makes them half as long again.

    Streamlit's page searches the whole figure forty times for colours to replace, and a browser does that faster in a
    string whose characters all fit a byte: one "…" among 100,000 texts is enough to slow it down.
    """
    entities = [text.encode("latin-1", "xmlcharrefreplace").decode("latin-1") for text in texts]
    return entities if sum(map(len, entities)) <= 1.5 * sum(map(len, texts)) else list(texts)


def _hover(title: str, text: str, length: int) -> str:
    """Return title and beginning of a text, in lines and escaped: Plotly reads tags. Little room takes the title."""
    if length < LINE:
        return html.escape(plain(title.strip() or text, length))
    name = f"<b>{html.escape(plain(title, LINE))}</b><br>" if title.strip() else ""
    rest = plain(text, length)
    lines = []
    while len(rest) > LINE:
        cut = rest.rfind(" ", 1, LINE)
        cut = LINE if cut < LINE // 2 else cut
        lines.append(rest[:cut])
        rest = rest[cut:].lstrip()
    return name + "<br>".join(html.escape(line) for line in [*lines, rest])
