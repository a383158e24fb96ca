"""The query in the address: box, mode, filters and threshold; and its results, found once."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any, cast

import streamlit as st

from ...indexer.document import Value
from ...pipelines.search.facets import Facet
from ...pipelines.search.results import Mode, Results
from ...pipelines.search.settings import MODES, SearchSettings
from ..api import Collection
from ..api.functions import among, between, containing, every
from ..api.looks import State
from .jobs.panel import name_of
from .page import escape_markdown

LONGEST = 20_000
"""Characters of a query; the box takes no more. It stands in the address, which servers take up to 64 kB."""
SIZES = (10, 20, 50)
WIDE = 100
"""Hits that are paged through, counted in facets and highlighted on the map."""
LIKE = "like"
SHOWN = 12
"""Fields that have a widget from the start; more are added on demand."""
EXACT = 2**53
TRUTH = {True: "true", False: "false"}


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
    where, threshold = _show_filters(collection)
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


@st.cache_data(show_spinner=False, max_entries=32)
def _known_facets(path: str, at: State, _collection: Collection) -> list[Facet]:
    """Return what one can filter by, found once for each state of a collection."""
    del path, at
    return _collection.facets()


def facets_of(collection: Collection) -> list[Facet]:
    """Return what one can filter by; groups that have two names only once, unless the address names the other."""
    known = _known_facets(str(collection.path), collection.state(), collection)
    return [facet for facet in known if not facet.same or f"f.{facet.name}" in st.query_params]


def _show_filters(collection: Collection) -> tuple[str | None, float | None]:
    """Draw the filters and return the condition and the threshold that they make."""
    known = facets_of(collection)
    with st.expander("Filters", icon=":material/filter_alt:", key="filters", on_change="rerun", bind="query-params"):
        chosen = _fields(known)
        conditions = []
        for row in range(0, len(chosen), 3):  # by rows, so that a narrow page keeps the order
            for cell, facet in zip(st.columns(3), chosen[row : row + 3], strict=False):
                with cell:
                    conditions.append(_widget(collection, facet))
        left, right = st.columns([2, 1])
        own = left.text_input(
            "Condition", key="where", bind="query-params", placeholder="stars <= 2 AND date >= '2024-01-01'",
            help="The condition of an SQL WHERE. Besides your columns: id, title, text, length, language.",
        )  # fmt: skip
        threshold = right.number_input(
            "Minimum similarity", value=None, step=0.05, format="%.2f", key="threshold", bind="query-params",
            help="Cosine of query and passage. In lexical mode: BM25.",
        )  # fmt: skip
    where = every([*conditions, own or ""])
    if where:
        shown, clear = st.columns([6, 1], vertical_alignment="center")
        shown.code(where, language=None, wrap_lines=True)
        clear.button("Clear", key="clear", on_click=_clear, args=(collection, known), width="stretch")
    return where, threshold


def choose_values(collection: Collection, facet: Facet, value: Value) -> None:
    """Add a choice to a filter, or take it out: what a click on a facet does."""
    key = _key(collection, facet)
    held = list(st.session_state.get(key, _addressed(facet)))
    held = [each for each in held if each != value] if value in held else [*held, value]
    st.session_state[key] = held
    _keep(facet, held)


def chosen_of(collection: Collection, facet: Facet) -> list[Value]:
    """Return the choices that a filter holds."""
    return list(st.session_state.get(_key(collection, facet), _addressed(facet)))


def _fields(known: list[Facet]) -> list[Facet]:
    usable = [facet for facet in known if _has_widget(facet)]
    if len(usable) <= SHOWN:
        return usable
    names = [facet.name for facet in usable]
    named = st.multiselect("Fields", names, default=names[:SHOWN], key="fields", bind="query-params")
    return [facet for facet in usable if facet.name in named]


def _has_widget(facet: Facet) -> bool:
    """Return whether a filter can leave some documents out: a number or a day that all share cannot."""
    if facet.choices or not facet.documents:
        return bool(facet.documents)
    return facet.type == "text" or _days(facet) is not None or _ends(facet) is not None


def _widget(collection: Collection, facet: Facet) -> str:
    if facet.choices:
        return _choices(collection, facet)
    if days := _days(facet):
        return _dates(facet, *days)
    if ends := _ends(facet):
        return _range(facet, ends)
    part = st.text_input(
        escape_markdown(facet.name), key=f"f.{facet.name}", bind="query-params", placeholder="contains …",
    )  # fmt: skip
    return containing(facet.name, part) if part else ""


def _choices(collection: Collection, facet: Facet) -> str:
    key, counts = _key(collection, facet), dict(facet.choices)
    if key not in st.session_state:
        st.session_state[key] = _addressed(facet)
    held = [value for value in st.session_state[key] if value in counts]
    if held != st.session_state[key]:
        st.session_state[key] = held  # the value has gone from the collection since

    # A path shows the tree also among the chosen values, which indentation would not.
    paths = dict(zip(counts, facet.paths, strict=True)) if facet.paths else {}

    def name(value: Value) -> str:
        return f"{paths.get(value) or shown_value(value)} ({counts.get(value, 0):,})"

    given: Sequence[Value] = st.multiselect(
        escape_markdown(facet.name), list(counts), key=key, format_func=name, placeholder="any"
    )
    _keep(facet, list(given))
    return among(facet.name, facet.type, list(given)) if given else ""


def _range(facet: Facet, ends: tuple[float, float]) -> str:
    step = 1 if facet.type == "integer" else (ends[1] - ends[0]) / 100
    first, last = st.slider(
        escape_markdown(facet.name), ends[0], ends[1], ends, step, key=f"f.{facet.name}", bind="query-params",
    )  # fmt: skip
    return between(facet.name, first if first > ends[0] else None, last if last < ends[1] else None)


def _ends(facet: Facet) -> tuple[float, float] | None:
    """Return the least and the greatest number, None where there is nothing between them to choose."""
    low, high = facet.low, facet.high
    if not isinstance(low, (int, float)) or not isinstance(high, (int, float)) or low >= high:
        return None
    if max(abs(low), abs(high)) >= EXACT:
        return None  # a browser's numbers end here; a condition of one's own still reaches them
    return (int(low), int(high)) if facet.type == "integer" else (float(low), float(high))


def _days(facet: Facet) -> tuple[date, date] | None:
    """Return the first and the last day, None where there is nothing between them to choose."""
    low, high = _day(facet.low), _day(facet.high)
    return None if low is None or high is None or low >= high else (low, high)


def _dates(facet: Facet, low: date, high: date) -> str:
    given: Any = st.date_input(
        escape_markdown(facet.name), (low, high), low, high, key=f"f.{facet.name}", bind="query-params",
    )  # fmt: skip
    days = list(given) if isinstance(given, (tuple, list)) else [given]
    first, last = days[0] if days else low, days[1] if len(days) > 1 else high
    return between(facet.name, first if first > low else None, last if last < high else None)


def _day(value: Value) -> date | None:
    return value.date() if isinstance(value, datetime) else value if isinstance(value, date) else None


def shown_value(value: Value) -> str:
    """Return a choice as people read it."""
    return TRUTH[value] if isinstance(value, bool) else str(value)


def _key(collection: Collection, facet: Facet) -> str:
    """Return the key of a widget: choices differ from collection to collection, the name in the address does not."""
    return f"choice.{hashlib.sha256(str(collection.path).encode()).hexdigest()[:8]}.{name_of(collection)}.{facet.name}"


def _addressed(facet: Facet) -> list[Value]:
    wanted = st.query_params.get_all(f"f.{facet.name}")
    return [value for value, _ in facet.choices if shown_value(value) in wanted]


def _keep(facet: Facet, held: list[Value]) -> None:
    """Put choices into the address; without their counts, which a widget bound to it would add."""
    name, texts = f"f.{facet.name}", [shown_value(value) for value in held]
    if texts and st.query_params.get_all(name) != texts:
        st.query_params[name] = texts
    elif not texts and name in st.query_params:
        del st.query_params[name]


def _clear(collection: Collection, known: list[Facet]) -> None:
    for facet in known:
        if facet.choices:
            st.session_state[_key(collection, facet)] = []
            _keep(facet, [])
        elif f"f.{facet.name}" in st.session_state:
            st.session_state[f"f.{facet.name}"] = _whole(facet)
    st.session_state["where"] = ""


def _whole(facet: Facet) -> Any:
    """Return the value of a widget that leaves nothing out."""
    return _days(facet) or _ends(facet) or ""
