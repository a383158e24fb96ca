"""The Explain page: what three kinds of models report about two texts, down to tokens and attention heads."""

import html
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st

from ...indexer.errors import UsageError
from ...pipelines.label import Entailment
from ...pipelines.pairs import PairScorer
from ...pipelines.search.rerank import LATE
from ...pipelines.search.rerank.stage import Reranker
from ...pipelines.similarity.similarity import Similarity
from ...pipelines.similarity.tokens import ATTENTION_MOST, MOST, Attention, TokenMatrix
from ..api import Collection
from ..api.functions import json_value
from ..api.models import compare_texts, load_nli, load_reranker, pair_attention, text_attention, token_matrix
from .page import empty, escape_markdown, sentence_of, sentences
from .workspace import Workspace

CELL = 22
SHOWN_IN_CELLS = 300
"""Cells up to which their numbers are written into them."""


def show_tokens(collection: Collection, first: str, second: str) -> None:
    """Draw the heat map."""
    st.header("Tokens", anchor=False)
    found = _matrix((f"{collection.path} {collection.model}", first, second), collection)
    st.caption("Cosine of the bi-encoder's token embeddings.")
    st.plotly_chart(_figure(found), key="tokens", config={"displaylogo": False}, alt="Similarity of tokens")
    if found.left_out:
        st.caption(f"Shows the first {MOST} tokens of each text. {found.left_out:,} more are not shown.")


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
            "Attention of", list(ADDRESS), default=BOTH, required=True, key="read", bind="query-params",
            label_visibility="collapsed",
        )  # fmt: skip
        found = _attention((f"{collection.path} {collection.model}", first, second, chosen or BOTH), collection)
        if found.total > len(found.tokens):
            st.caption(f"The first {ATTENTION_MOST} of {found.total:,} tokens.")
        _show(found)


def _show(found: Attention) -> None:
    layers, heads = found.weights.shape[:2]
    left, right = st.columns([1, 1], gap="medium")
    with left:
        st.caption("All heads: one row per layer, one column per head.")
        st.plotly_chart(_mosaic(found), key="mosaic", config={"displayModeBar": False}, alt="All attention heads")
    with right:
        layer = st.slider("Layer", 1, layers, layers, key="layer", bind="query-params") if layers > 1 else 1
        numbers = st.multiselect(
            "Heads", list(range(1, heads + 1)), default=list(range(1, min(heads, 3) + 1)), key="head",
            bind="query-params",
        )  # fmt: skip
        st.caption(
            "A line goes from a token to the token that it attends to. A stronger line means more attention. "
            "Each head has a colour."
        )
        picture = _lines(found, layer - 1, [number - 1 for number in numbers])
        st.plotly_chart(picture, key="lines", config={"displayModeBar": False}, alt="Attention of the chosen heads")


@st.cache_resource(show_spinner="Computing attention …", max_entries=16)
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


@st.cache_resource(show_spinner="Loading the NLI model …")
def nli(device: str) -> PairScorer:
    """Return the NLI model that comes with Sonde; no page fetches another from the net.

    Raises:
        SondeError: It, or the model that it builds on, is not installed.
    """
    return load_nli("bundled", device=device)


CLASSES = ("entailment", "neutral", "contradiction")


def show_verdicts(found: Similarity, crossed: bool) -> None:
    """Show the scores side by side, and below them the NLI model's probabilities in both directions."""
    cosine, stage, verdict = st.columns(3, border=True)
    cosine.metric("Bi-encoder, cosine", f"{found.cosine:.3f}", help="Cosine of the embeddings of both texts, -1 to 1.")
    cosine.caption(f"Angular similarity {found.angular:.3f}")
    if found.second_stage is not None:
        name = "Cross-encoder" if crossed else "Late interaction"
        stage.metric(f"{name}, score", f"{found.second_stage:.3f}")
        stage.caption("Raw score of the model." if crossed else "Mean of the best cosine of each token, -1 to 1.")
    verdict.metric("NLI", "paraphrase" if found.paraphrase else _word(found.forward))
    verdict.caption(
        "Each text follows from the other." if found.paraphrase else "Whether the second text follows from the first."
    )
    for note in found.notes:
        st.warning(sentence_of(note), icon=":material/visibility_off:")
    if found.forward and found.backward:
        _show_probabilities(found.forward, found.backward)


def _word(verdict: Entailment | None) -> str:
    return verdict.label if verdict else "–"


def _show_probabilities(forward: Entailment, backward: Entailment) -> None:
    rows = [(name, getattr(forward, name), getattr(backward, name)) for name in CLASSES]
    st.dataframe(
        {
            "": [name for name, *_ in rows],
            "first → second": [100 * one for _, one, _ in rows],
            "second → first": [100 * two for *_, two in rows],
        },
        hide_index=True,
        column_config={
            name: st.column_config.ProgressColumn(name, min_value=0, max_value=100, format="%.1f %%")
            for name in ("first → second", "second → first")
        },
    )


LONGEST = 4_000
EXAMPLES = (
    ("The cat chased the dog.", "The dog chased the cat."),
    ("Prices rose by 5 percent.", "Prices rose by 50 percent."),
    ("Is it safe?", "It is not safe."),
)


def show(shelf: Workspace, collection: Collection) -> None:
    """Draw the page."""
    st.title("Explain", anchor=False)
    _take_hit(collection)
    left, right = st.columns(2)
    first = left.text_area(
        "First text, or a query", key="a", bind="query-params", max_chars=LONGEST, height=120
    )  # fmt: skip
    second = right.text_area(
        "Second text", key="b", bind="query-params", max_chars=LONGEST, height=120, on_change=_own_text
    )
    model = _cross_encoder(shelf)
    if not (first or "").strip() or not (second or "").strip():
        _show_start()
        return
    with sentences():
        found = _compare(collection, first or "", second or "", model)
        show_verdicts(found, model is not None)
    with sentences():
        show_tokens(collection, first or "", second or "")
    with sentences():
        show_heads(collection, first or "", second or "")


def _take_hit(collection: Collection) -> None:
    """Put the best passage of the document that the address names into the second box, once."""
    id = st.query_params.get("id")
    if not id or st.session_state.get("_taken") == (str(collection.path), id):
        return
    st.session_state["_taken"] = (str(collection.path), id)
    with sentences():
        st.session_state["b"] = collection.best_passage(id, st.query_params.get("a") or id)[:LONGEST]


def _own_text() -> None:
    """Forget the document: the second text is no longer its passage."""
    st.query_params.pop("id", None)


def _cross_encoder(shelf: Workspace) -> str | None:
    """Return the folder of a cross-encoder, None for late interaction; a model is never downloaded here."""
    if not shelf.settings.local:
        return None
    given = st.text_input(
        "Cross-encoder", key="model", bind="query-params", placeholder="a model's folder on this machine",
        help="If empty: late interaction with the collection's model. `sonde train reranker` trains a cross-encoder.",
    )  # fmt: skip
    return given.strip() or None if given else None


def _compare(collection: Collection, first: str, second: str, model: str | None) -> Similarity:
    return _compared((str(collection.path), json_value(collection.model), first, second, model), collection)


@st.cache_data(show_spinner="Reading both texts …", max_entries=64)
def _compared(key: tuple[str, str, str, str, str | None], _collection: Collection) -> Similarity:
    _, _, first, second, model = key
    stage: Reranker | str = LATE if model is None else _loaded(model, _collection.device)
    return compare_texts(_collection, first, second, stage, nli)


@st.cache_resource(show_spinner="Loading the cross-encoder …", max_entries=2)
def _loaded(model: str, device: str) -> Reranker:
    if not Path(model).expanduser().is_dir():
        raise UsageError(f"there is no folder {model}: name the folder of a cross-encoder, or leave the box empty")
    return load_reranker(model, device, lambda _: None)


def _show_start() -> None:
    empty(
        "Compare two texts with every kind of model",
        "Type both texts. Or open **Why** on a hit on the Search page and choose **Explain in detail**. "
        "Examples where cosine similarity misleads:",
        ":material/compare_arrows:",
    )
    for place, (first, second) in enumerate(EXAMPLES):
        st.button(
            escape_markdown(f"{first} · {second}"), key=f"example{place}", on_click=_write, args=(first, second),
            type="tertiary", icon=":material/arrow_forward:",
        )  # fmt: skip


def _write(first: str, second: str) -> None:
    st.session_state["a"], st.session_state["b"] = first, second
    _own_text()
