"""The cosines between two texts' tokens as a heat map."""

import html
from typing import Any

import streamlit as st

from .....pipelines.token_matrix import MOST, TokenMatrix, token_matrix
from ....api import Collection

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
    return token_matrix(_collection.encoder, key[1], key[2])


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
