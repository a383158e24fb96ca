"""The hits on the newest map, small; the page Map shows it large."""

import html
from typing import Any

import numpy as np
import streamlit as st

from .....indexer.runs import list_runs
from .....pipelines.map import Map
from .....pipelines.results import Results
from ....api import Collection
from ...going import link
from ...stamp import Stamp, stamp
from .asking import Asked

DRAWN = 4_000
"""Points of the background."""
HEIGHT = 230
HIT = "#e6007e"


def show_places(collection: Collection, asked: Asked, every: Results) -> None:
    """Draw the hits on the map, if the collection has one."""
    with collection.view() as view:
        maps = [run for run in list_runs(view.catalog, "map") if run.complete]
        if not maps:
            return
        sql = "SELECT key, doc FROM documents WHERE key IN (?)"
        numbers = dict(view.catalog.select_in(sql, [hit.id for hit in every]))
    docs, places = _map(str(collection.path), stamp(collection), maps[-1].name, collection)
    if not len(docs):
        return
    rows = {hit.id: np.searchsorted(docs, numbers.get(hit.id, -1)) for hit in every}
    on = [hit for hit in every if rows[hit.id] < len(docs) and docs[rows[hit.id]] == numbers.get(hit.id)]
    texts = [html.escape(f"{hit.rank}. {(hit.title.strip() or hit.passage.text.strip() or hit.id)[:60]}") for hit in on]
    figure = _figure(places, places[[rows[hit.id] for hit in on]], texts)
    st.plotly_chart(figure, key="places", config={"displayModeBar": False}, alt="The hits on the map")
    if asked.like is None:
        link("map", "On the map", q=asked.query)


@st.cache_resource(show_spinner=False, max_entries=8)
def _map(path: str, at: Stamp, name: str, _collection: Collection) -> tuple[np.ndarray, np.ndarray]:
    del path, at
    found = Map(_collection, name)
    return found.docs, found.places.astype(np.float32)


def _figure(places: np.ndarray, lit: np.ndarray, texts: list[str]) -> Any:
    import plotly.graph_objects as go

    some = places[:: max(1, len(places) // DRAWN)]
    figure = go.Figure()
    for points, color, size, said in ((some, "#9aa4b0", 2.5, None), (lit, HIT, 6, texts)):
        figure.add_trace(
            go.Scattergl(
                x=points[:, 0], y=points[:, 1], mode="markers", text=said, showlegend=False,
                hoverinfo="text" if said else "skip",
                marker={"size": size, "color": color, "opacity": 0.9 if said else 0.45},
            )
        )  # fmt: skip
    axis = {"visible": False, "showgrid": False, "zeroline": False}
    figure.update_layout(xaxis=axis, yaxis=axis, height=HEIGHT, margin={"l": 0, "r": 0, "t": 0, "b": 0}, dragmode=False)
    return figure
