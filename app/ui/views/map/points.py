"""What the map draws, made once for each map and colour and kept by the server."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
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
    found = Map(_collection, name)
    rows = spread_sample(found.places, most)
    spread = density(found.places, ACROSS) if len(rows) < len(found) else None
    with _collection.view() as view:
        titles, texts = beginnings(view, found.docs[rows])
    return Points(found.name, found.docs, found.places, rows, titles, texts, spread, found.regions, found.newer)


@st.cache_resource(show_spinner="Colouring …", max_entries=16)
def colors_of(_collection: Collection, color: str, key: tuple[Any, ...], _points: Points) -> tuple[Coloring, bool]:
    """Return the colours of all documents of a map; `key` is the map's and what tells the run from others."""
    del key
    with _collection.view() as view:
        return coloring(view.catalog, _points.docs, color)


def beginnings(view: View, docs: np.ndarray) -> tuple[pa.Array, pa.Array]:
    """Return titles and beginnings of texts, of documents in ascending order; where room is short, one of the two."""
    length = int(np.clip(BUDGET / max(len(docs), 1), LEAST, LONGEST))
    sql = f"SELECT doc, substr(title, 1, {2 * TITLE}), substr(text, 1, {2 * length}) FROM documents"
    wanted = set(docs.tolist())
    found = {
        doc: _beginning(title, text, length)
        for doc, title, text in view.catalog.connection.execute(sql)
        if doc in wanted
    }
    shown = [found.get(doc, ("", "")) for doc in docs.tolist()]
    return pa.array([title for title, _ in shown], pa.string()), pa.array([text for _, text in shown], pa.string())


def _beginning(title: str, text: str, length: int) -> tuple[str, str]:
    name = plain(title, min(TITLE, length) if length < TITLE else TITLE) if title.strip() else ""
    return name, "" if name and length < TITLE else plain(text, length)
