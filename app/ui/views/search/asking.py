"""What is asked: the box, the mode, filters and threshold, all of them in the address."""

from dataclasses import dataclass
from typing import Any, cast

import streamlit as st

from .....pipelines.results import Mode
from .....pipelines.search import MODES, SearchSettings
from ....api import Collection
from .filters import show_filters

LONGEST = 2_000
SIZES = (10, 20, 50)
WIDE = 100
"""Hits that are paged through, counted in facets and lit up on the map."""
LIKE = "like"


@dataclass(frozen=True, slots=True)
class Asked:
    """A query, or a document to find others like it, and how to search.

    Attributes:
        query: What to look for; blank where nothing was asked.
        like: The id of a document, in place of the query.
        settings: How to search, k being the hits of one page.
    """

    query: str
    like: str | None
    settings: SearchSettings

    @property
    def key(self) -> tuple[Any, ...]:
        """What tells this question from another."""
        return (self.query, self.like, self.settings)


def ask(collection: Collection) -> Asked:
    """Draw the box with what belongs to it, and return what is asked."""
    like = st.query_params.get(LIKE)
    query = st.text_input(
        "Query", key="q", type="search", bind="query-params", placeholder="What are you looking for?",
        max_chars=LONGEST, label_visibility="collapsed", icon=":material/search:", on_change=_leave_like,
    ) or ""  # fmt: skip
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        mode = st.segmented_control(
            "Mode", MODES, default="hybrid", required=True, key="mode", bind="query-params",
            label_visibility="collapsed", disabled=like is not None,
            help="Hybrid joins search by meaning (dense) and by words (lexical).",
        )  # fmt: skip
        rerank = st.toggle(
            "Rerank", key="rerank", bind="query-params", disabled=like is not None,
            help="A second stage reads the best 50 hits again: slower, and usually better.",
        )  # fmt: skip
        size = st.selectbox(
            "Hits a page", SIZES, key="k", bind="query-params", label_visibility="collapsed", width=90
        )  # fmt: skip
        st.text("hits a page")
    where, threshold = show_filters(collection)
    chosen = cast(Mode, mode or "hybrid")
    settings = SearchSettings(
        k=size, mode="dense" if like else chosen, where=where, threshold=threshold, rerank=rerank and not like
    )
    return Asked(query, like, settings)


def _leave_like() -> None:
    st.query_params.pop(LIKE, None)
