"""Hits: the best passage with matches highlighted, metadata, parts of the score, judgements."""

import html
from collections.abc import Iterable
from itertools import pairwise

import streamlit as st

from ...indexer.wording import counted
from ...pipelines.search.results import Hit, Results
from ..api import Collection
from ..api.functions import shown_metadata, telling_fields
from .drawer import show_opener
from .page import MARK, chips, escape_markdown, escaped, is_digest, joined_markdown, link, marked, sentences, show_text
from .query import LIKE, SearchForm
from .workspace import may_write

CLOSEST = "<span class='sonde-closest'>{}</span>"

Span = tuple[int, int]


def title_html(hit: Hit) -> str:
    """Return rank, title and relevance in one line; without a title, a document shows an id that somebody gave it."""
    title = hit.title.strip() or ("" if is_digest(hit.id) else hit.id)
    marks = hit.why.title_terms if hit.why and hit.title.strip() else ()
    name = marked(title, marks) if marks else html.escape(title)
    weak = "weak " if hit.weak else ""
    page = f"<span class='sonde-copies'>page {hit.page:,}</span>" if hit.page else ""
    copies = f"<span class='sonde-copies'>and {len(hit.copies):,} more</span>" if hit.copies else ""
    return (
        f"<div class='sonde-hit'><span class='sonde-rank'>{hit.rank:,}</span>"
        f"<span dir='auto' class='sonde-title'>{name}</span>{page}{copies}"
        f"<span class='sonde-score'>{weak}{hit.relevance_shown}</span></div>"
    )


def passage_html(hit: Hit) -> str:
    """Return the excerpt, with the query's words marked and the closest sentence highlighted."""
    terms = hit.why.terms if hit.why else ()
    closest = [(sentence.start, sentence.end) for sentence in (hit.why.sentences[:1] if hit.why else ())]
    shown = lit(hit.excerpt.text, hit.excerpt.start, terms, closest)
    before = "… " if hit.excerpt.start > hit.passage.start else ""
    after = " …" if hit.excerpt.end < hit.passage.end else ""
    return f"<div class='sonde-text sonde-excerpt' dir='auto'>{before}{shown}{after}</div>"


def lit(text: str, offset: int, terms: Iterable[Span], closest: Iterable[Span]) -> str:
    """Return text as HTML that shows exactly it, with two kinds of spans, which may overlap.

    Args:
        text: A stretch of a document.
        offset: Where it begins in the document.
        terms: Characters of the document, from and to, that are marked.
        closest: Those that are underlaid.
    """
    inner, outer = (
        joined_markdown(((begin - offset, end - offset) for begin, end in spans), len(text))
        for spans in (terms, closest)
    )
    cuts = sorted({0, len(text), *(place for span in (*inner, *outer) for place in span)})
    pieces = []
    for begin, end in pairwise(cuts):
        piece = escaped(text[begin:end])
        piece = MARK.format(piece) if _within(begin, inner) else piece
        pieces.append(CLOSEST.format(piece) if _within(begin, outer) else piece)
    return "".join(pieces)


def _within(place: int, spans: Iterable[Span]) -> bool:
    return any(begin <= place < end for begin, end in spans)


COPIES = 20
"""Ids of copies that are listed."""
WHOLE = 20_000
"""Characters of a document that are shown."""


def show_hits(collection: Collection, asked: SearchForm, results: Results) -> None:
    """Draw one page of hits; those judged not relevant are hidden unless asked for."""
    grades = {} if asked.like is not None else collection.judgements().of(asked.query)
    hidden = [hit for hit in results if grades.get(hit.id) == 0]
    seen = True
    if hidden:
        said, control = st.columns([3, 1], vertical_alignment="center")
        said.caption(f"{counted(len(hidden), 'hit')} on this page hidden: you judged them not relevant.")
        seen = control.toggle("Show", key="hidden", bind="query-params")
    fields = telling_fields(results)
    for hit in results:
        if seen or grades.get(hit.id) != 0:
            _show_hit(collection, asked, hit, grades.get(hit.id), fields)


def _show_hit(collection: Collection, asked: SearchForm, hit: Hit, grade: int | None, fields: list[str]) -> None:
    with st.container(border=True, gap="small"):
        st.html(title_html(hit))
        st.html(passage_html(hit))
        if metadata := shown_metadata(hit.metadata, fields):
            chips(metadata)
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            if asked.like is None and may_write():
                _show_judging(collection, asked.query, hit, grade)
            show_opener(collection, hit.id, "hit", asked.query if asked.like is None else "")
            st.button("More like this", key=f"like:{hit.id}", on_click=_more, args=(hit.id,), type="tertiary")
            _show_why(asked, hit)
        if len(hit.text) > len(hit.excerpt.text.strip()) + 20:
            _show_whole(hit)


def _show_judging(collection: Collection, query: str, hit: Hit, grade: int | None) -> None:
    """Draw the two buttons; pressing a button again removes the judgement."""
    for label, value, icon in (("Relevant", 1, ":material/thumb_up:"), ("Not relevant", 0, ":material/thumb_down:")):
        said = grade is not None and bool(grade) == bool(value)
        st.button(
            label, key=f"{'good' if value else 'bad'}:{hit.id}", icon=icon, type="primary" if said else "secondary",
            on_click=_say, args=(collection, query, hit.id, None if said else value),
            help="Stored in the collection. The Evaluate page uses it.",
        )  # fmt: skip


def _say(collection: Collection, query: str, id: str, grade: int | None) -> None:
    with sentences():
        collection.judge(query, [id], grade)


def _more(id: str) -> None:
    st.query_params[LIKE] = id


def _show_why(asked: SearchForm, hit: Hit) -> None:
    why = st.popover("Why", type="tertiary", width="content", key=f"why:{hit.id}", on_change="rerun")
    if why.open:  # the tables of ten hits that nobody looks at would hold up the page
        with why:
            _show_reasons(asked, hit)


def _show_reasons(asked: SearchForm, hit: Hit) -> None:
    parts = {"relevance": hit.relevance, "score": hit.score, "dense": hit.scores.dense, "lexical": hit.scores.lexical}
    names = {
        "relevance": "Relevance",
        "score": "Score for sorting",
        "dense": "Cosine of query and passage",
        "lexical": "BM25",
    }
    if hit.reranker:
        parts["rerank"] = hit.scores.rerank
        names["rerank"] = f"{hit.reranker.kind}, {hit.reranker.unit}"
    st.dataframe(
        {"part": [names[n] for n, v in parts.items() if v is not None],
         "value": [f"{v:.3f}" for v in parts.values() if v is not None]},
        hide_index=True,
    )  # fmt: skip
    if hit.why and hit.why.matches:
        st.caption("Words of the query and what they matched")
        st.dataframe(
            {"query": [m.query for m in hit.why.matches], "passage": [m.word for m in hit.why.matches],
             "cosine": [f"{m.similarity:.2f}" for m in hit.why.matches]},
            hide_index=True,
        )  # fmt: skip
    if hit.why and hit.why.sentences:
        st.caption("Sentences of the passage, closest first")
        for sentence in hit.why.sentences:
            show_text(f"{sentence.similarity:.3f}  {sentence.text}", small=True)
    st.caption(f"id {escape_markdown(hit.id)}")
    if hit.copies:
        st.caption(f"Same text: {escape_markdown(', '.join(hit.copies[:COPIES]))}")
    if asked.like is None:
        link("explain", "Explain in detail", a=asked.query, id=hit.id)


def _show_whole(hit: Hit) -> None:
    label = f"Whole text · {len(hit.text):,} characters"
    whole = st.expander(label, key=f"whole:{hit.id}", on_change="rerun", type="compact")
    if whole.open:
        with whole:
            show_text(hit.text[:WHOLE], [(hit.passage.start, hit.passage.end)])
            if len(hit.text) > WHOLE:
                st.caption(f"The first {WHOLE:,} characters.")
