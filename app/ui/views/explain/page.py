"""The page Explain, put together."""

from pathlib import Path

import streamlit as st

from .....indexer.errors import UsageError
from .....indexer.fields import plain
from .....pipelines.rerank.choice import load_reranker
from .....pipelines.rerank.reranker import Reranker
from .....pipelines.similarity import LATE, Comparison, Similarity
from .....pipelines.why import best_passage
from ....api import Collection
from ...plain import escape_markdown
from ...shelf import Shelf
from ...ways_on import empty, sentences
from .heads import show_heads
from .models import nli
from .tokens import show_tokens
from .verdicts import show_verdicts

LONGEST = 4_000
EXAMPLES = (
    ("The cat chased the dog.", "The dog chased the cat."),
    ("Prices rose by 5 percent.", "Prices rose by 50 percent."),
    ("Is it safe?", "It is not safe."),
)


def show(shelf: Shelf, collection: Collection) -> None:
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
    with sentences(), collection.view() as view:
        st.session_state["b"] = best_passage(view, id, st.query_params.get("a") or id)[:LONGEST]


def _own_text() -> None:
    """Forget the document: the second text is no longer its passage."""
    st.query_params.pop("id", None)


def _cross_encoder(shelf: Shelf) -> str | None:
    """Return the folder of a cross-encoder, None for late interaction; a model is never downloaded here."""
    if not shelf.settings.local:
        return None
    given = st.text_input(
        "Cross-encoder", key="model", bind="query-params", placeholder="a model's folder on this machine",
        help="Late interaction over the collection's own model where empty. `sonde train reranker` makes one.",
    )  # fmt: skip
    return given.strip() or None if given else None


def _compare(collection: Collection, first: str, second: str, model: str | None) -> Similarity:
    return _compared((str(collection.path), plain(collection.spec.name), first, second, model), collection)


@st.cache_data(show_spinner="Reading both texts …", max_entries=64)
def _compared(key: tuple[str, str, str, str, str | None], _collection: Collection) -> Similarity:
    _, _, first, second, model = key
    stage: Reranker | str = LATE if model is None else _loaded(model, _collection.device)
    [found] = Comparison(_collection.encoder, stage, nli(_collection.device))([(first, second)])
    return found


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
