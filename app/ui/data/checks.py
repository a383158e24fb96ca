"""Tasks of the Data page whose results are kept as runs: mistakes in texts and labels, and what is new."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import streamlit as st

from ....indexer.store.kinds import CHECK, MAP, WATCH, RunKind
from ....indexer.store.runs import Item
from ....indexer.wording import counted, shown_p
from ...api import Collection
from ...api.functions import among
from ..jobs.panel import ask_name, may_start, name_of, start
from ..page import empty, escape_markdown, link, popover, sentences, show_members, submitted
from ..words import in_places
from ..workspace import Workspace
from .deleting import show_deletion, texts_of

NONE = "none"
DUPLICATE = "duplicate"
"""What a check calls copies."""
EXACT, NEAR = "Exact copies", "Exact and near copies"
COPIES = {
    EXACT: "The same words, whatever their case, spaces, punctuation and metadata.",
    NEAR: "Also those that share most of their sequences of words. Look at them first.",
}
KINDS = {"exact": "exact", "near": "near", "meaning": "by meaning"}
"""Kinds of copies in the reasons of a check, and as the page says them."""

DATE = "a date"


def show_checks(shelf: Workspace, name: str) -> None:
    """Offer a check, and show what the newest ones found."""
    nothing = (
        "Not checked yet",
        "A check finds doubtful labels, duplicates, outliers, texts in other languages, boilerplate and personal data.",
        ":material/fact_check:",
    )
    _show_kept(shelf, name, CHECK, nothing, _new_check, _show_check)


def _new_check(shelf: Workspace, collection: Collection, running: bool) -> None:
    columns = [NONE, *(field for field, type in collection.fields().items() if type != "list")]
    label = st.selectbox(
        "Column with labels", columns, key="check-label", help="The check looks for labels that may be wrong."
    )
    split = st.selectbox(
        "Column with splits",
        columns,
        key="check-split",
        help="The check looks for texts that are in more than one split.",
    )
    region = st.text_input(
        "Country of phone numbers", key="check-region", placeholder="US", autocomplete="off",
        help="Two letters. Without it, only numbers with + and a country code are found.",
    ).strip()  # fmt: skip
    name, replace, missing = ask_name(collection, "Name", CHECK.name, CHECK, "check-name")
    given = {"--label": label, "--split": split, "--region": region}
    options = [word for option, value in given.items() if value not in ("", NONE) for word in (option, value)]
    if submitted("Check", missing, key="check-start", type="primary", disabled=not may_start(running)):
        start(shelf, collection, f"Check '{name}'", "check", "--name", name, *options, *replace)


def _show_check(shelf: Workspace, collection: Collection, name: str, running: bool) -> None:
    found = collection.run(name, CHECK)
    report = found.run.report
    st.caption(
        f"Findings in {report['found']:,} of {counted(report['documents'], 'document')} · {found.run.seconds:,.1f} s"
    )
    changed = (found.run.documents, len(collection)) != (report["found"], report["documents"])
    if changed:
        st.caption(f"{counted(found.run.documents, 'document')} now: the collection has changed since. Check it again.")
    for note in report["notes"]:
        st.caption(escape_markdown(in_places(note)))
    items = [item for item in found.items if item.data["size"]]
    nothing = [item.name for item in found.items if not item.data["size"]]
    with st.container(horizontal=True):
        for item in items:
            label = f"{escape_markdown(item.name)}: {item.data['size']:,}"
            link("search", label, where=among(CHECK.column(name), "list", [item.name]))
    if nothing:
        st.caption(f"{'No findings now' if changed else 'Nothing found'}: {', '.join(nothing)}.")
    if copies := next((item for item in items if item.name == DUPLICATE), None):
        _show_kinds(copies)
        _delete_copies(shelf, collection, running)
    show_members(collection, found.run, items, "Documents", "finding")


def _show_kinds(item: Item) -> None:
    """Say how many copies are exact, near and by meaning, where the run has kept the reason of each."""
    kinds = Counter(why.partition(":")[0] for why in item.data["why"].values())
    if kinds.total() == item.data["size"]:
        st.caption("Duplicates: " + ", ".join(f"{kinds[kind]:,} {said}" for kind, said in KINDS.items() if kinds[kind]))


def _delete_copies(shelf: Workspace, collection: Collection, running: bool) -> None:
    """Offer to delete copies; they are looked for now, because the collection may have changed since the check."""
    whole: Any = popover(
        "Delete copies …", "copies", icon=":material/delete:", on_change="rerun", disabled=not may_start(running)
    )
    if not whole.open:
        return
    with whole, sentences():
        which = st.radio("Copies", list(COPIES), key="copies-which", captions=list(COPIES.values()))
        found = _copies(collection, which, str(collection.path), collection.documents_state())
        if not found:
            st.text("There are none now.")
            return
        st.text("One document of each group is kept: the first one that was added.")
        texts = texts_of(collection, found)
        show_deletion(shelf, name_of(collection), len(found), texts, ["--", *found], "copies-delete")


@st.cache_data(show_spinner="Looking for copies …", max_entries=8)
def _copies(_collection: Collection, which: str, path: str, state: tuple[object, ...]) -> list[str]:
    del path, state  # the key
    kinds: Any = ("exact",) if which == EXACT else ("exact", "near")
    return sorted(_collection.duplicates(kinds=kinds).redundant)


def show_watching(shelf: Workspace, name: str) -> None:
    """Offer a watch, and show what the newest ones found."""
    nothing = (
        "Nothing compared yet",
        "Compare new documents with old ones, and find groups that grew, shrank or appeared.",
        ":material/trending_up:",
    )
    _show_kept(shelf, name, WATCH, nothing, _new_watch, _show_watch)


def _new_watch(shelf: Workspace, collection: Collection, running: bool) -> None:
    columns = [field for field, type in collection.fields().items() if type == "date"]
    runs = [run.name for run in reversed(collection.uncounted_runs()) if run.complete and _knows(run.kind)]
    since = st.selectbox("New since", [*([DATE] if columns else []), *runs], key="watch-since", index=None)
    given = ["--since", since] if since else []
    first = "" if since else "Choose since when documents are new."
    if since == DATE:
        column = st.selectbox("Column with the dates", columns, key="watch-column")
        day = st.date_input("New from this day on", key="watch-day", value=None)
        given = ["--since", day.isoformat(), "--date", column] if day else []
        first = "" if day else "Choose the first day of the new documents."
    name, replace, missing = ask_name(collection, "Name", WATCH.name, WATCH, "watch-name")
    idle = may_start(running)
    if submitted("Find what is new", first or missing, key="watch-start", type="primary", disabled=not idle):
        start(shelf, collection, f"What is new '{name}'", "watch", "--name", name, *given, *replace)


def _knows(kind: RunKind) -> bool:
    return kind.groups or kind is MAP


def _show_watch(shelf: Workspace, collection: Collection, name: str, running: bool) -> None:
    del shelf, running
    found = collection.run(name, WATCH)
    report = found.run.report
    compared = f"{counted(report['new'], 'new document')} and {report['old']:,} old"
    st.caption(escape_markdown(f"Since {report['since']}: {compared} · {found.run.seconds:,.1f} s"))
    for note in report["notes"]:
        st.caption(escape_markdown(in_places(note)))
    if not found.items:
        st.info("No significant change." if report["new"] else "No new documents.")
        return
    for item in found.items:
        label = escape_markdown(f"{item.name} · {_figures(item)}")
        link("search", label, where=among(WATCH.column(name), "list", [item.name]))
    show_members(collection, found.run, found.items, "Documents", "change")


def _figures(item: Item) -> str:
    data = item.data
    new = f"{counted(data['new'], 'new document')} ({data['new_share']:.1%} of the new texts)"
    old = f"{data['old']:,} old ({data['old_share']:.1%} of the old texts)"
    return f"{new}, {old} · p {shown_p(data['p'])}"


def _show_kept(
    shelf: Workspace,
    name: str,
    kind: RunKind,
    nothing: tuple[str, str, str],
    new: Callable[[Workspace, Collection, bool], None],
    show: Callable[[Workspace, Collection, str, bool], None],
) -> None:
    """Draw the choice of a run with its result, or what there is to do as long as there is none.

    The Data page shows jobs above its tasks, so this does not show the one that works on the collection again.

    Args:
        shelf: The collections.
        name: The collection's name.
        kind: The kind of run.
        nothing: A heading, a sentence and an icon for a collection without such runs.
        new: Draws the form of a new run; its last argument is whether a job is running.
        show: Draws the result of the run of a name; its last argument is whether a job is running.
    """
    collection = shelf.open(name)
    running = shelf.jobs.running(name) is not None
    runs = [run.name for run in reversed(collection.uncounted_runs(kind)) if run.complete]
    if not runs:
        empty(*nothing)
        new(shelf, collection, running)
        return
    left, right = st.columns([5, 2], vertical_alignment="bottom")
    chosen = left.selectbox(kind.capitalize(), runs, key=kind.name, bind="query-params")
    with (
        right,
        popover(f"New {kind}", f"new-{kind}", icon=":material/add:", width="stretch", disabled=not may_start(running)),
    ):
        new(shelf, collection, running)
    show(shelf, collection, chosen, running)
