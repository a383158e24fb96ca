"""The page Explain: what three kinds of models say about two texts."""

from pathlib import Path

import streamlit as st

from .....indexer.errors import UsageError
from .....pipelines.label import Entailment
from .....pipelines.pairs import PairModel
from .....pipelines.search.rerank import LATE
from .....pipelines.search.rerank.reranker import Reranker
from .....pipelines.similarity.similarity import Similarity
from ....api import Collection
from ....api.explain import compare_texts, load_nli, load_reranker
from ....api.writing import json_value
from ...page import empty, escape_markdown, sentences
from ...workspace import Workspace
from .tokens import show_heads, show_tokens


@st.cache_resource(show_spinner="Loading the NLI model …")
def nli(device: str) -> PairModel:
    """Return the NLI model that comes with Sonde; no page fetches another from the net.

    Raises:
        SondeError: It, or the model that it builds on, is not installed.
    """
    return load_nli("bundled", device=device)


CLASSES = ("entailment", "neutral", "contradiction")


def show_verdicts(found: Similarity, crossed: bool) -> None:
    """Show the scores side by side, and below them the NLI model's probabilities in both directions."""
    cosine, stage, verdict = st.columns(3, border=True)
    cosine.metric("Bi-encoder, cosine", f"{found.cosine:.3f}", help="Of both texts' vectors, -1 to 1.")
    cosine.caption(f"Angular similarity {found.angular:.3f}")
    if found.second_stage is not None:
        name = "Cross-encoder" if crossed else "Late interaction"
        stage.metric(f"{name}, score", f"{found.second_stage:.3f}")
        stage.caption("As the model gives it." if crossed else "Mean of each token's best cosine, -1 to 1.")
    verdict.metric("NLI", "paraphrase" if found.paraphrase else _word(found.forward))
    verdict.caption(
        "Each follows from the other." if found.paraphrase else "Whether the second follows from the first."
    )
    for note in found.notes:
        st.warning(escape_markdown(note[:1].upper() + note[1:] + "."), icon=":material/visibility_off:")
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
        help="Late interaction over the collection's own model where empty. `sonde train reranker` makes one.",
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
        "Two texts, compared by every kind of model",
        "Write both, or open **Why** at a hit of the page Search and follow **Explain in full**. "
        "To begin with, pairs that a cosine is easily wrong about:",
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
