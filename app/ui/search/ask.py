"""The question in the address: box, mode, filters and threshold; and its results, found once."""

from dataclasses import dataclass, replace
from typing import Any, cast

import streamlit as st

from ....pipelines.search.results import Mode, Results
from ....pipelines.search.settings import MODES, SearchSettings
from ...api import Collection
from .filters import show_filters

LONGEST = 20_000
"""Characters of a query; the box takes no more. It stands in the address, which servers take up to 64 kB."""
SIZES = (10, 20, 50)
WIDE = 100
"""Hits that are paged through, counted in facets and highlighted on the map."""
LIKE = "like"


@dataclass(frozen=True, slots=True)
class SearchForm:
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


def ask(collection: Collection) -> SearchForm:
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
            help="Hybrid combines search by meaning (dense) and by words (lexical).",
        )  # fmt: skip
        rerank = st.toggle(
            "Rerank", key="rerank", bind="query-params", disabled=like is not None,
            help="A second stage reads the best 50 hits again. This is slower and usually better.",
        )  # fmt: skip
        with st.container(horizontal=True, vertical_alignment="center", gap="small", width="content"):
            size = st.selectbox(
                "Hits per page", SIZES, key="k", bind="query-params", label_visibility="collapsed", width=90
            )  # fmt: skip
            st.text("hits per page", width="content")
    where, threshold = show_filters(collection)
    chosen = cast(Mode, mode or "hybrid")
    settings = SearchSettings(
        k=size, mode="dense" if like else chosen, where=where, threshold=threshold, rerank=rerank and not like
    )
    return SearchForm(query, like, settings)


def _leave_like() -> None:
    st.query_params.pop(LIKE, None)


def wide(collection: Collection, asked: SearchForm) -> Results:
    """Return the best hits of the first stage without their texts, for facets, the map and the number of pages.

    Raises:
        SondeError: The search cannot be made.
    """
    settings = replace(asked.settings, k=max(WIDE, asked.settings.k), rerank=False)
    return _found(collection, replace(asked, settings=settings), texts=False)


def page_of(collection: Collection, asked: SearchForm, number: int) -> Results:
    """Return one page of hits, from 1, with reasons where a query has them.

    Raises:
        SondeError: The search cannot be made.
    """
    offset = (number - 1) * asked.settings.k
    settings = replace(asked.settings, offset=offset, explain=not asked.like)
    return _found(collection, replace(asked, settings=settings), texts=True)


def all_of(collection: Collection, asked: SearchForm, most: int) -> Results:
    """Return hits without reasons, for a file.

    Raises:
        SondeError: The search cannot be made.
    """
    return _search(collection, replace(asked, settings=replace(asked.settings, k=most)))


def _found(collection: Collection, asked: SearchForm, *, texts: bool) -> Results:
    return _kept((str(collection.path), collection.state(), asked.key, texts), collection, asked)


@st.cache_data(show_spinner=False, max_entries=32)
def _kept(key: tuple[Any, ...], _collection: Collection, _asked: SearchForm) -> Results:
    *_, texts = key
    found = _search(_collection, _asked)
    # A hundred long documents for each question would fill the memory, and nobody reads them there.
    return found if texts else replace(found, hits=tuple(replace(hit, text="") for hit in found))


def _search(collection: Collection, asked: SearchForm) -> Results:
    given = {name: getattr(asked.settings, name) for name in asked.settings.__slots__}
    if asked.like is not None:
        return collection.similar(asked.like, **given)
    return collection.search(asked.query, **given)
