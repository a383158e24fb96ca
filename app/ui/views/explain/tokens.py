"""Token similarities as a heat map, and the attention of every head."""

import html
from typing import Any

import numpy as np
import streamlit as st

from .....pipelines.similarity.tokens import ATTENTION_MOST, MOST, Attention, TokenMatrix
from ....api import Collection
from ....api.explain import pair_attention, text_attention, token_matrix
from ...page import sentences

CELL = 22
SHOWN_IN_CELLS = 300
"""Cells up to which their numbers are written into them."""


def show_tokens(collection: Collection, first: str, second: str) -> None:
    """Draw the heat map."""
    st.subheader("Token by token", anchor=False)
    found = _matrix((str(collection.path), first, second), collection)
    st.caption("Cosine of the bi-encoder's vectors of single tokens in their context.")
    st.plotly_chart(_figure(found), key="tokens", config={"displaylogo": False}, alt="Similarity of tokens")
    if found.left_out:
        st.caption(f"The first {MOST} tokens of each text; {found.left_out:,} more are not shown.")


@st.cache_data(show_spinner=False, max_entries=64)
def _matrix(key: tuple[str, str, str], _collection: Collection) -> TokenMatrix:
    return token_matrix(_collection, key[1], key[2])


def _figure(found: TokenMatrix) -> Any:
    import plotly.graph_objects as go

    values = found.similarities
    names = [[html.escape(token) for token in tokens] for tokens in (found.first, found.second)]
    few = values.size <= SHOWN_IN_CELLS
    said = [[f"{one} · {two}<br>{value:.3f}" for two, value in zip(names[1], row, strict=True)]
            for one, row in zip(names[0], values.tolist(), strict=True)]  # fmt: skip
    heat = go.Heatmap(
        z=values, zmin=0, zmax=1, colorscale="Teal", text=said, hovertemplate="%{text}<extra></extra>",
        texttemplate="%{z:.2f}" if few else None, colorbar={"thickness": 12, "title": {"text": "cosine"}},
    )  # fmt: skip
    figure = go.Figure(heat)
    figure.update_xaxes(tickvals=list(range(len(names[1]))), ticktext=names[1], tickangle=-60, side="top")
    figure.update_yaxes(tickvals=list(range(len(names[0]))), ticktext=names[0], autorange="reversed")
    figure.update_layout(
        height=max(220, 120 + CELL * len(names[0])), margin={"l": 0, "r": 0, "t": 10, "b": 0}, dragmode=False
    )
    return figure


BOTH, FIRST, SECOND = "Both texts, NLI model", "First text, bi-encoder", "Second text, bi-encoder"
ADDRESS = {BOTH: "both", FIRST: "first", SECOND: "second"}
GAP = 2
COLORS = ("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22", "#17becf",
          "#4c9fd8", "#f2b447")  # fmt: skip
FAINT = 0.05
"""Attention below which no line is drawn."""
ROW = 20


def show_heads(collection: Collection, first: str, second: str) -> None:
    """Draw the attention of the model in use, once it is asked for."""
    part = st.expander("Attention heads", icon=":material/visibility:", key="heads", on_change="rerun",
                       bind="query-params")  # fmt: skip
    if not part.open:
        return
    with part, sentences():
        chosen = st.segmented_control(
            "Read", list(ADDRESS), default=BOTH, required=True, key="read", bind="query-params",
            label_visibility="collapsed",
        )  # fmt: skip
        found = _attention((str(collection.path), first, second, chosen or BOTH), collection)
        if found.total > len(found.tokens):
            st.caption(f"The first {ATTENTION_MOST} of {found.total:,} tokens.")
        _show(found)


def _show(found: Attention) -> None:
    layers, heads = found.weights.shape[:2]
    left, right = st.columns([1, 1], gap="medium")
    with left:
        st.caption("All heads at a glance: a row of pictures for each layer, a column for each head.")
        st.plotly_chart(_mosaic(found), key="mosaic", config={"displayModeBar": False}, alt="All attention heads")
    with right:
        layer = st.slider("Layer", 1, layers, layers, key="layer", bind="query-params") if layers > 1 else 1
        numbers = st.multiselect(
            "Heads", list(range(1, heads + 1)), default=list(range(1, min(heads, 3) + 1)), key="head",
            bind="query-params",
        )  # fmt: skip
        st.caption("A line leads from a token to what it looks at: the stronger, the more. A colour for each head.")
        picture = _lines(found, layer - 1, [number - 1 for number in numbers])
        st.plotly_chart(picture, key="lines", config={"displayModeBar": False}, alt="The attention of some heads")


@st.cache_resource(show_spinner="Reading with open eyes …", max_entries=16)
def _attention(key: tuple[str, str, str, str], _collection: Collection) -> Attention:
    _, first, second, chosen = key
    if chosen == BOTH:
        return pair_attention(first, second)
    return text_attention(_collection, first if chosen == FIRST else second)


def _mosaic(found: Attention) -> Any:
    """Return one picture of all heads: their matrices side by side, a row for each layer."""
    import plotly.graph_objects as go

    layers, heads, size, _ = found.weights.shape
    step = size + GAP
    whole = np.full((layers * step - GAP, heads * step - GAP), np.nan, np.float32)
    for layer in range(layers):
        for head in range(heads):
            whole[layer * step : layer * step + size, head * step : head * step + size] = found.weights[layer, head]
    figure = go.Figure(go.Heatmap(z=whole, zmin=0, zmax=1, colorscale="Blues", showscale=False, hoverinfo="skip"))
    middle = (size - 1) / 2
    figure.update_xaxes(tickvals=[middle + n * step for n in range(heads)], ticktext=list(range(1, heads + 1)),
                        title="head", showgrid=False)  # fmt: skip
    figure.update_yaxes(tickvals=[middle + n * step for n in range(layers)], ticktext=list(range(1, layers + 1)),
                        title="layer", autorange="reversed", showgrid=False)  # fmt: skip
    figure.update_layout(height=420, margin={"l": 0, "r": 0, "t": 0, "b": 0}, dragmode=False)
    return figure


def _lines(found: Attention, layer: int, heads: list[int]) -> Any:
    """Return a picture with the tokens twice, and lines from those that look to those that are looked at."""
    import plotly.graph_objects as go

    figure = go.Figure()
    for head in heads:
        for strength in (0.1, 0.3, 0.6, 0.9):  # a trace has one opacity: four steps of it
            rows, columns = np.nonzero(_between(found.weights[layer, head], strength))
            if len(rows):
                x = np.tile([0.0, 1.0, np.nan], len(rows))
                y = np.column_stack([rows, columns, np.full(len(rows), np.nan)]).ravel()
                line = {"color": COLORS[head % len(COLORS)], "width": 1 + 2 * strength}
                figure.add_trace(go.Scatter(x=x, y=y, mode="lines", line=line, opacity=strength, hoverinfo="skip"))
    names = [html.escape(token) for token in found.tokens]
    places = list(range(len(names)))
    for x, anchor in ((0, "middle left"), (1, "middle right")):
        figure.add_trace(
            go.Scatter(x=[x] * len(names), y=places, mode="text", text=names, textposition=anchor, hoverinfo="skip")
        )
    axis = {"visible": False, "showgrid": False}
    figure.update_layout(
        xaxis=axis | {"range": [-0.5, 1.5]}, yaxis=axis | {"range": [len(names) - 0.5, -0.5]}, showlegend=False,
        height=max(240, ROW * len(names)), margin={"l": 0, "r": 0, "t": 0, "b": 0}, dragmode=False,
    )  # fmt: skip
    return figure


def _between(weights: np.ndarray, strength: float) -> np.ndarray:
    low, high = {0.1: (FAINT, 0.2), 0.3: (0.2, 0.45), 0.6: (0.45, 0.75), 0.9: (0.75, 1.01)}[strength]
    return (weights >= low) & (weights < high)
