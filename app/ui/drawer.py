"""The drawer: one document, the same on every page. The address keeps it as `doc`."""

import html
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlencode, urlsplit

import streamlit as st

from ...indexer.errors import SondeError
from ...indexer.store.kinds import CORRECTION, LABEL, TAG, TAXONOMY
from ...indexer.store.view import StoredDocument
from ...pipelines.analysis.runs import Membership
from ...pipelines.label import NONE_NAME
from ...pipelines.search.results import Hit
from ..api import Collection
from ..api.functions import among
from .page import chips, escape_markdown, failure, score_name, sentences, shortened, show_text, shown_score
from .workspace import may_write

ADDRESS = "doc"
WIDTH = 640
WHOLE = 20_000
"""Characters of a text that are shown."""
SHORT = 160
NEIGHBOURS = 5
_TRAIL, _OPENED, _FAILED = "_drawer_trail", "_drawer_opened", "_drawer_failed"


@st.fragment
def show_opener(collection: Collection, id: str, key: str, query: str = "") -> None:
    """Draw a small button that opens a document; the page itself does not run again."""
    if st.button("Details", key=f"open:{key}:{id}", icon=":material/right_panel_open:", type="tertiary"):
        open_document(collection, id, query)


def open_document(collection: Collection, id: str, query: str = "") -> None:
    """Open the drawer.

    Args:
        collection: The collection.
        id: The document's id.
        query: The query that found it; the drawer then says why, and takes judgements.
    """
    st.session_state[_TRAIL] = [id]
    st.session_state[_OPENED] = True
    st.query_params[ADDRESS] = id
    _drawer(collection, query)


def follow_address(collection: Collection) -> None:
    """Open the document that the address names, unless the page has opened one in this run."""
    id = st.query_params.get(ADDRESS)
    if st.session_state.pop(_OPENED, False) or not id:
        return
    trail = st.session_state.setdefault(_TRAIL, [id])
    if trail[-1:] != [id]:
        st.session_state[_TRAIL] = [id]
    _drawer(collection, st.query_params.get("q", ""))


def forget_opened() -> None:
    """Begin a run of the page: nothing is opened yet."""
    st.session_state.pop(_OPENED, None)


def _close() -> None:
    st.query_params.pop(ADDRESS, None)
    st.session_state.pop(_TRAIL, None)


def _go(id: str) -> None:
    st.session_state[_TRAIL] = [*st.session_state.get(_TRAIL, []), id]
    st.query_params[ADDRESS] = id


def _back() -> None:
    trail = st.session_state.get(_TRAIL, [])[:-1]
    st.session_state[_TRAIL] = trail
    if trail:
        st.query_params[ADDRESS] = trail[-1]


@contextmanager
def _kept_failure() -> Iterator[None]:
    """Keep what fails in a callback for the drawer: Streamlit would show it at the top of the page behind."""
    try:
        yield
    except SondeError as error:
        st.session_state[_FAILED] = failure(error)


@st.dialog("Document", position="right", width=WIDTH, icon=":material/article:", on_dismiss=_close)
def _drawer(collection: Collection, query: str) -> None:
    trail = st.session_state.get(_TRAIL) or [st.query_params.get(ADDRESS, "")]
    with sentences():
        if said := st.session_state.pop(_FAILED, ""):
            st.error(said)
        if len(trail) > 1:
            st.button("Back", key="drawer_back", icon=":material/arrow_back:", type="tertiary", on_click=_back)
        document = collection.get(trail[-1])
        why = _why(collection, document.id, query) if query.strip() and len(trail) == 1 else None
        _show_text(document, why)
        if query.strip() and len(trail) == 1:
            _show_judging(collection, document.id, query)
            _show_why(why, query)
        _show_groups(collection, document.id)
        _show_link()
        _show_neighbours(collection, document.id)


def _show_text(document: StoredDocument, why: Hit | None) -> None:
    title = document.title.strip() or document.id
    st.html(f"<div class='sonde-text sonde-title' dir='auto'>{html.escape(title)}</div>")
    if document.metadata:
        chips(document.metadata.items())
    marks = why.why.terms if why and why.why else ()
    with st.container(border=True, key="drawer_text"):
        show_text(document.text[:WHOLE], [span for span in marks if span[1] <= WHOLE])
        if len(document.text) > WHOLE:
            st.caption(f"The first {WHOLE:,} of {len(document.text):,} characters.")
    st.caption(f"id {escape_markdown(document.id)}")


def _why(collection: Collection, id: str, query: str) -> Hit | None:
    """Return the document as a hit of the query; None if the query does not find it."""
    found = collection.search(query, k=1, where=among("id", "text", [id]), explain=True)
    return next((hit for hit in found if hit.id == id), None)


def _show_why(hit: Hit | None, query: str) -> None:
    st.markdown(f"**Why it answers {escape_markdown(repr(shortened(query, 60)))}**")
    if hit is None or hit.why is None:
        show_text("This document does not answer the query.", small=True)
        return
    parts = {"cosine of query and passage": hit.scores.dense, "BM25": hit.scores.lexical}
    chips((name, f"{value:.2f}") for name, value in parts.items() if value is not None)
    if hit.why.matches:
        chips((match.query, f"→ {match.word} {match.similarity:.2f}") for match in hit.why.matches)
    for sentence in hit.why.sentences[:2]:
        show_text(f"{sentence.similarity:.2f}  {sentence.text}", small=True)


_GRADES = (("Relevant", 1, ":material/thumb_up:"), ("Not relevant", 0, ":material/thumb_down:"))


def _show_judging(collection: Collection, id: str, query: str) -> None:
    if not may_write():
        return
    grade = collection.judgements().of(query).get(id)
    with st.container(horizontal=True):
        for label, value, icon in _GRADES:
            said = grade is not None and bool(grade) == bool(value)
            st.button(
                label, key=f"drawer_judge{value}", icon=icon, type="primary" if said else "secondary",
                on_click=_judge, args=(collection, query, id, None if said else value),
            )  # fmt: skip


def _judge(collection: Collection, query: str, id: str, grade: int | None) -> None:
    with _kept_failure():
        collection.judge(query, [id], grade)


def _show_groups(collection: Collection, id: str) -> None:
    """Show what runs say of the document, and what a person can change: labels and tags."""
    found = collection.memberships(id)
    st.markdown("**Groups and labels**")
    shown = [each for each in _without_twins(found) if each.run.kind is not TAG]
    corrected = {(each.run.name, each.name) for each in found if each.run.kind is CORRECTION}
    chips((each.run.kind.column(each.run.name), _said(each, corrected)) for each in shown)
    if not shown:
        show_text("None yet.", small=True)
    if may_write():
        for run in collection.uncounted_runs(LABEL):
            if run.complete:
                _show_correcting(collection, id, run.name, [e.name for e in found if e.run.number == run.number])
        for run in collection.uncounted_runs(TAXONOMY):
            _show_moving(collection, id, run.name, {e.number for e in found if e.run.number == run.number})
        _show_tags(collection, id, [each.run.name for each in found if each.run.kind is TAG])


def _without_twins(found: list[Membership]) -> list[Membership]:
    """Leave out the level that a topic run consists of: it has the same groups under another column."""
    groups = {(each.run.kind, each.run.name, each.name) for each in found}
    return [
        each for each in found
        if not (each.run.kind.part and (each.run.kind.follows, each.run.name, each.name) in groups)
    ]  # fmt: skip


def _said(each: Membership, corrected: set[tuple[str, str]]) -> str:
    """Return a group and its score; the score of a label that a person gave says nothing, so it is left out."""
    if each.run.kind is LABEL and each.score == 1 and (each.run.name, each.name) in corrected:
        return f"{each.name} · corrected"
    return each.name if each.score is None else f"{each.name} · {score_name(each.run)} {shown_score(each.score)}"


def _show_correcting(collection: Collection, id: str, run: str, given: list[str]) -> None:
    kept = next((list(each.labels) for each in collection.corrections(run) if each.id == id), None)
    details = collection.run(run, kind=LABEL)
    names = [*dict.fromkeys(item.name for item in details.items if item.number >= 0), NONE_NAME]
    key, several = f"drawer_label:{run}:{id}", bool(details.run.parameters.get("multi_label"))
    label = f"Correct the label in {escape_markdown(run)}"
    args = (collection, id, run, key)
    now = [name for name in (kept if kept is not None else given) if name in names]
    if several:
        st.multiselect(label, names[:-1], now, key=key, on_change=_correct, args=args)
    else:
        index = names.index(now[0]) if now else None
        st.selectbox(label, names, index, key=key, on_change=_correct, args=args)
    if kept is not None:
        st.caption("You corrected this label. The next run uses your correction.")


def _correct(collection: Collection, id: str, run: str, key: str) -> None:
    with _kept_failure():
        collection.correct({id: st.session_state[key] or NONE_NAME}, run)


def _show_moving(collection: Collection, id: str, taxonomy: str, given: set[int]) -> None:
    """Let the document be moved to another group of a taxonomy, or out of all of them."""
    places: dict[int | str, str] = {"none": "no group"}
    places |= {group.number: group.path for group in collection.taxonomy(taxonomy).groups}
    key = f"drawer_group:{taxonomy}:{id}"
    index = next((place for place, number in enumerate(places) if number in given), 0)
    st.selectbox(
        f"Group in {escape_markdown(taxonomy)}", list(places), index, key=key, format_func=places.__getitem__,
        on_change=_move, args=(collection, id, taxonomy, key), help="Changing the group locks the document there.",
    )  # fmt: skip


def _move(collection: Collection, id: str, taxonomy: str, key: str) -> None:
    with _kept_failure():
        collection.edit_taxonomy("move", taxonomy, by="web UI", ids=[id], to=st.session_state[key])


def _show_tags(collection: Collection, id: str, given: list[str]) -> None:
    known = [run.name for run in collection.uncounted_runs(TAG)]
    key = f"drawer_tags:{id}"
    st.multiselect(
        "Tags", sorted({*known, *given}), given, key=key, accept_new_options=True, placeholder="Choose or type a tag",
        on_change=_tag, args=(collection, id, key, given, known),
    )  # fmt: skip


def _tag(collection: Collection, id: str, key: str, given: list[str], known: list[str]) -> None:
    chosen = [name.strip() for name in st.session_state[key] if name.strip()]
    with _kept_failure():
        for name in chosen:
            if name not in given:
                collection.tag(name, ids=[id], change="add" if name in known else "new")
        for name in given:
            if name not in chosen:
                _untag(collection, name, id)


def _untag(collection: Collection, name: str, id: str) -> None:
    """Take a tag from a document; a tag without documents is deleted."""
    if collection.run(name, kind=TAG).run.documents > 1:
        collection.tag(name, ids=[id], change="remove")
    else:
        collection.delete_run(name, kind=TAG)


def _show_link() -> None:
    """Show the address that opens this page with this document."""
    there = urlsplit(st.context.url or "")
    query = urlencode({name: st.query_params.get_all(name) for name in st.query_params}, doseq=True)
    with st.popover("Copy link", icon=":material/link:", type="tertiary"):
        st.code(f"{there.scheme}://{there.netloc}{there.path}?{query}", language=None, wrap_lines=True)


def _show_neighbours(collection: Collection, id: str) -> None:
    st.markdown("**Nearest documents**")
    for hit in collection.similar(id, k=NEIGHBOURS):
        with st.container(border=True, gap="small"):
            if hit.title.strip():
                show_text(hit.title)
            show_text(shortened(hit.passage.text, SHORT), small=True)
            st.button(
                f"Open · similarity {hit.score:.2f}", key=f"drawer_to:{hit.id}", type="tertiary", on_click=_go,
                args=(hit.id,), icon=":material/arrow_forward:",
            )  # fmt: skip
