"""The Search page: a box, examples to start with, hits, and beside them their places on the map, facets and export."""

import hashlib
import math
from typing import Any

import numpy as np
import streamlit as st

from ...indexer.store.kinds import MAP
from ...indexer.wording import counted, cut
from ...pipelines.plots.colors import escaped
from ...pipelines.search.results import Results
from ..api import Collection
from ..api.functions import hit_columns, to_csv, to_jsonl
from ..api.looks import State
from .downloads import QUOTED, choose_export_columns, for_spreadsheets
from .drawer import show_opener
from .hits import show_hits
from .jobs.panel import name_of, show_work
from .page import empty, escape_markdown, is_digest, link, sentence_of, sentences, shortened, show_text, show_top
from .query import LIKE, WIDE, SearchForm, all_of, ask, choose_values, chosen_of, facets_of, page_of, shown_value, wide
from .workspace import Workspace

SHORT = 80
LISTED = 280
"""Characters of the texts in a list of documents."""
DRAWN = 4_000
"""Points of the background."""
HEIGHT = 230
HIT = "#e6007e"
MOST = 1_000
"""Hits of an export."""
CHOICES = 8
FACETS = 6
LONGEST_CHOICE = 20
"""Characters of a choice, so that its count is not cut off."""


def show(shelf: Workspace, collection: Collection) -> None:
    """Draw the page."""
    st.title("Search", anchor=False)
    job = shelf.jobs.running(name_of(collection))
    if job is not None and job.command[:1] == ("index",):  # the hits are those of what is committed
        show_work(shelf, collection)
    asked = ask(collection)
    if asked.like is None and not asked.query.strip():
        if asked.settings.where:
            with sentences():
                _show_passing(collection, asked.settings.where, asked.settings.k)
        else:
            _show_start(collection)
        return
    if asked.like is not None:
        _show_like(collection, asked.like)
    with sentences(), st.spinner("Searching …", show_time=True):
        every = wide(collection, asked)
        _show_found(collection, asked, every)


def _show_start(collection: Collection) -> None:
    """Draw the page as it is before a query."""
    documents, passages = collection.counts()
    fields = list(collection.fields())
    with st.container(border=True, horizontal_alignment="center", gap="medium"):
        st.header(":material/search: Ask in your own words", anchor=False, text_alignment="center")
        held = f"{counted(documents, 'document')} in {counted(passages, 'passage')}"
        said = f"{held}, embedded with {collection.model}."
        if fields:
            named = ", ".join(fields[:8]) + (" …" if len(fields) > 8 else "")
            said += f" Filters: {named}."
        st.markdown(escape_markdown(said), text_alignment="center")
        found = _examples(str(collection.path), collection.state(), collection)
        if found:
            st.caption("Phrases from these texts:", text_alignment="center")
            with st.container(horizontal=True, horizontal_alignment="center"):
                for place, example in enumerate(found):
                    st.button(escape_markdown(example), key=f"example{place}", on_click=_ask, args=(example,))


def _ask(query: str) -> None:
    st.session_state["q"] = query


@st.cache_data(show_spinner="Reading texts …", max_entries=32)
def _examples(path: str, at: State, _collection: Collection) -> list[str]:
    del path, at
    return _collection.example_queries()


def _show_passing(collection: Collection, where: str, size: int) -> None:
    """List the documents that pass a filter, in the order in which they were added."""
    count, _ = collection.matching(where, 0)
    if not count:
        empty("Nothing found", "No document passes the filters.", ":material/search_off:")
        return
    st.caption(f"{counted(count, 'document')} with these filters, in the order added. Type a query to rank them.")
    listed = st.container()
    pages = math.ceil(count / size)
    number = st.pagination(pages, key=f"listed:{hashlib.sha256(where.encode()).hexdigest()[:16]}") if pages > 1 else 1
    _, first = collection.matching(where, number * size, LISTED + 1)
    with listed:
        for each in first[(number - 1) * size :]:
            with st.container(border=True, gap="small"):
                if each.title.strip():
                    show_text(each.title)
                show_text(shortened(each.text, LISTED), small=True)
                show_opener(collection, each.id, "listed")


def _show_like(collection: Collection, id: str) -> None:
    shown = id
    if is_digest(id) and id in (found := collection.documents([id])):
        shown = found[id].title.strip() or shortened(found[id].text, SHORT)
    said, back = st.columns([5, 1], vertical_alignment="center")
    said.info(f"Documents similar to **{escape_markdown(shown)}**, by meaning.", icon=":material/content_copy:")
    back.button("Back", key="back", on_click=_back, width="stretch", icon=":material/arrow_back:")


def _back() -> None:
    st.query_params.pop(LIKE, None)


def _show_found(collection: Collection, asked: SearchForm, every: Results) -> None:
    if not len(every):
        _show_nothing(every, asked)
        return
    pages = math.ceil(len(every) / asked.settings.k)
    left, right = st.columns([7, 3], gap="large")
    with left:  # first: the hits are what one waits for
        _show_page(collection, asked, every, pages)
    with right:
        _show_aside(collection, asked, every)


def _show_page(collection: Collection, asked: SearchForm, every: Results, pages: int) -> None:
    above = st.container()
    hits = st.container()
    number = _number(asked, pages)
    results = page_of(collection, asked, number)
    with above:
        _show_how(results, every)
    with hits:
        show_hits(collection, asked, results)
    show_top(f"{hashlib.sha256(repr(asked.key).encode()).hexdigest()[:16]}{number}")


def _number(asked: SearchForm, pages: int) -> int:
    """Draw the choice of a page and return its number; each question has one of its own, and begins with the first."""
    question = hashlib.sha256(repr(asked.key).encode()).hexdigest()[:16]
    begun: dict[str, int] = st.session_state.setdefault("_pages", {})
    if question not in begun:
        address = st.query_params.get("page", "")
        begun[question] = int(address) if not begun and address.isdecimal() and len(address) < 4 else 1
    number = 1
    if pages > 1:
        number = st.pagination(pages, default=max(1, min(begun[question], pages)), key=f"page:{question}")
    if number > 1:
        st.query_params["page"] = str(number)
    elif "page" in st.query_params:
        del st.query_params["page"]
    return number


def _show_how(results: Results, every: Results) -> None:
    """Say how many hits there are and how they were found."""
    hits = counted(len(every), "hit")
    count = f"The best {hits}" if len(every) >= WIDE else hits
    stage = f" · reranked by {results.reranking}, {results.reranking.unit}" if results.reranking else ""
    st.caption(
        escape_markdown(f"{count} · {results.mode} · {results.strategy}{stage} · {results.seconds * 1000:,.0f} ms")
    )
    for note in results.notes:
        st.info(sentence_of(note), icon=":material/info:")


def _show_nothing(every: Results, asked: SearchForm) -> None:
    why = " ".join(sentence_of(note) for note in every.notes)
    mode = ", or hybrid or dense mode" if asked.settings.mode == "lexical" else ""
    limits = " Or open Filters: a filter or the minimum similarity may exclude hits."
    narrowed = asked.settings.where or asked.settings.threshold is not None
    empty("Nothing found", f"{why}\n\nTry other words{mode}.{limits if narrowed else ''}", ":material/search_off:")


def _show_aside(collection: Collection, asked: SearchForm, every: Results) -> None:
    """Draw the column beside the hits."""
    _show_places(collection, asked, every)
    _show_facets(collection, every)
    _show_export(collection, asked)


def _show_places(collection: Collection, asked: SearchForm, every: Results) -> None:
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


def _show_facets(collection: Collection, every: Results) -> None:
    known = facets_of(collection)
    counts = collection.choices_among([hit.id for hit in every], known)
    shown = [facet for facet in known if len(counts.get(facet.name, ())) > 1 or chosen_of(collection, facet)]
    if shown:
        st.caption(f"In the best {len(every)} hits" if len(every) >= WIDE else "In these hits")
    for facet in shown[:FACETS]:
        st.markdown(f"**{escape_markdown(facet.name)}**")
        held = chosen_of(collection, facet)
        with st.container(horizontal=True, gap="xsmall"):
            for value, count in counts.get(facet.name, [])[:CHOICES]:
                st.button(
                    f"{escape_markdown(cut(shown_value(value), LONGEST_CHOICE))} · {count:,}",
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
