"""Beside the hits: their places on the map, facets, and export."""

from typing import Any

import numpy as np
import streamlit as st

from ....indexer.store.kinds import MAP
from ....indexer.wording import cut
from ....pipelines.plots.colors import escaped
from ....pipelines.search.results import Results
from ...api import Collection
from ...api.functions import hit_columns, to_csv, to_jsonl
from ...api.looks import State
from ..downloads import QUOTED, choose_export_columns, for_spreadsheets
from ..jobs.panel import name_of
from ..page import escape_markdown, link
from .ask import WIDE, SearchForm, all_of
from .filters import choose_values, chosen_of, facets_of, shown_value

DRAWN = 4_000
"""Points of the background."""
HEIGHT = 230
HIT = "#e6007e"


def show_places(collection: Collection, asked: SearchForm, every: Results) -> None:
    """Draw the hits on the map, if the collection has one."""
    maps = [run for run in collection.uncounted_runs(MAP) if run.complete]
    if not maps:
        return
    numbers = collection.numbers(hit.id for hit in every)
    docs, places = _map(str(collection.path), collection.state(), maps[-1].name, collection)
    if not len(docs):
        return
    rows = {hit.id: np.searchsorted(docs, numbers.get(hit.id, -1)) for hit in every}
    on = [hit for hit in every if rows[hit.id] < len(docs) and docs[rows[hit.id]] == numbers.get(hit.id)]
    texts = [escaped(f"{hit.rank}. {(hit.title.strip() or hit.passage.text.strip() or hit.id)[:60]}") for hit in on]
    figure = _figure(places, places[[rows[hit.id] for hit in on]], texts)
    st.plotly_chart(figure, key="places", config={"displayModeBar": False}, alt="Positions of the hits on the map")
    if asked.like is None:
        link("map", "Show on the map", q=asked.query)


@st.cache_resource(show_spinner=False, max_entries=8)
def _map(path: str, at: State, name: str, _collection: Collection) -> tuple[np.ndarray, np.ndarray]:
    del path, at
    found = _collection.map_run(name)
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


MOST = 1_000
"""Hits of an export."""
SHOWN = 8
FACETS = 6
LONGEST = 20
"""Characters of a choice, so that its count is not cut off."""


def show_aside(collection: Collection, asked: SearchForm, every: Results) -> None:
    """Draw the column beside the hits."""
    show_places(collection, asked, every)
    _show_facets(collection, every)
    _show_export(collection, asked)


def _show_facets(collection: Collection, every: Results) -> None:
    known = facets_of(collection)
    counted = collection.choices_among([hit.id for hit in every], known)
    shown = [facet for facet in known if len(counted.get(facet.name, ())) > 1 or chosen_of(collection, facet)]
    if shown:
        st.caption(f"In the best {len(every)} hits" if len(every) >= WIDE else "In these hits")
    for facet in shown[:FACETS]:
        st.markdown(f"**{escape_markdown(facet.name)}**")
        held = chosen_of(collection, facet)
        with st.container(horizontal=True, gap="xsmall"):
            for value, count in counted.get(facet.name, [])[:SHOWN]:
                st.button(
                    f"{escape_markdown(cut(shown_value(value), LONGEST))} · {count:,}",
                    key=f"facet:{facet.name}:{value}",
                    on_click=choose_values, args=(collection, facet, value),
                    type="primary" if value in held else "secondary",
                )  # fmt: skip


def _show_export(collection: Collection, asked: SearchForm) -> None:
    st.caption(f"Export the best hits (up to {MOST:,})")
    columns = choose_export_columns(collection, "hits", hit_columns(collection.fields()))
    name = f"{name_of(collection)}-hits"
    with st.container(horizontal=True):
        for suffix, write in (("csv", to_csv), ("jsonl", to_jsonl)):
            st.download_button(
                suffix.upper(),
                lambda write=write, suffix=suffix: for_spreadsheets(
                    write(all_of(collection, asked, MOST), columns), f".{suffix}"
                ),
                f"{name}.{suffix}",
                mime="text/csv" if suffix == "csv" else "application/jsonl", key=f"export_{suffix}",
                on_click="ignore", icon=":material/download:", help=QUOTED if suffix == "csv" else None,
            )  # fmt: skip
