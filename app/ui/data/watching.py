"""What is new in a collection: since when, and the groups that grew, shrank or appeared."""

import streamlit as st

from ....indexer.store.kinds import MAP, WATCH, RunKind
from ....indexer.store.runs import Item
from ....indexer.wording import counted, shown_p
from ...api import Collection
from ...api.functions import among
from ..jobs.panel import ask_name, may_start, start
from ..page import escape_markdown, link, show_members, submitted
from ..workspace import Workspace
from .kept import show_kept

DATE = "a date"


def show_watching(shelf: Workspace, name: str) -> None:
    """Offer a watch, and show what the newest ones found."""
    nothing = (
        "Nothing compared yet",
        "Compare new documents with old ones, and find groups that grew, shrank or appeared.",
        ":material/trending_up:",
    )
    show_kept(shelf, name, WATCH, nothing, _new, _show)


def _new(shelf: Workspace, collection: Collection, running: bool) -> None:
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


def _show(collection: Collection, name: str) -> None:
    found = collection.run(name, WATCH)
    report = found.run.report
    compared = f"{counted(report['new'], 'new document')} and {report['old']:,} old"
    st.caption(escape_markdown(f"Since {report['since']}: {compared} · {found.run.seconds:,.1f} s"))
    for note in report["notes"]:
        st.caption(escape_markdown(note))
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
