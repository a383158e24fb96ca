"""The Data page: make collections, starting with the first one, add to them, delete, and look after them."""

from collections.abc import Callable

import streamlit as st

from ....indexer.wording import counted
from ...api import Collection
from ...api.functions import remove_collection
from ...samples import SAMPLES
from ..page import BEGUN, MADE, escape_markdown, go_to, sentences
from ..workspace import Workspace, may_write
from .adding import overviews, show_adding, show_making
from .checks import show_checks, show_watching
from .health import show_about, show_damaged, show_health
from .overview import show_overview

EXAMPLES = 10
"""Documents that are shown."""
SHOWN = 200
"""Characters of a text that are shown."""

DEMO = "demo"
WHAT = (
    "Sonde finds texts by meaning. Give it a file or a folder of texts: it makes them searchable, draws a map of them, "
    "groups them by topic and labels them. Your texts stay on {place}."
)


def show_deleting(shelf: Workspace, name: str) -> None:
    """Offer to delete documents by a filter or by ids, and the collection."""
    busy = shelf.jobs.running(name) or shelf.jobs.behind(name)
    if busy:
        st.info(escape_markdown(f"{busy.title} is running. Wait until it ends, or cancel it, before you delete."))
        return
    documents, whole = st.columns(2, gap="large")
    with documents:
        st.markdown("**Documents**")
        if not show_damaged(shelf, name):
            _documents(shelf, name)
    with whole:
        st.markdown("**The collection**")
        _whole(shelf, name)


def _documents(shelf: Workspace, name: str) -> None:
    how = st.segmented_control(
        "By", ["Filter", "Ids"], default="Filter", required=True, key="delete-by", label_visibility="collapsed"
    )
    if how == "Filter":
        _by_filter(shelf, name)
    else:
        _by_ids(shelf, name)


def _by_filter(shelf: Workspace, name: str) -> None:
    collection = shelf.open(name)
    where = st.text_input("Filter", key="delete-where", placeholder="stars <= 2 AND date < '2020-01-01'").strip()
    if not where:
        known = [f"{field} ({type})" for field, type in collection.fields().items()]
        st.caption(escape_markdown(f"The condition of an SQL WHERE. Columns: {', '.join(known) or 'none'}."))
        return
    count, examples = _passing(collection, where)
    if not count:
        st.info("No document matches this filter.")
        return
    st.dataframe(examples, hide_index=True)
    label = f"Delete {counted(count, 'document')}"
    if st.button(label, key="delete-passing", type="primary", icon=":material/delete:"):
        _delete(shelf, name, label, ["--where", where])


def _passing(collection: Collection, where: str) -> tuple[int, list[dict[str, str]]]:
    """Return how many documents pass a filter, and the first of them."""
    count, first = collection.matching(where, EXAMPLES, SHOWN)
    return count, [{"id": each.id, "title": each.title, "text": each.text} for each in first]


def _by_ids(shelf: Workspace, name: str) -> None:
    given = st.text_area("Ids, one per line", key="delete-ids", height=120)
    ids = list(dict.fromkeys(line.strip() for line in given.splitlines() if line.strip()))
    if not ids:
        return
    label = f"Delete {counted(len(ids), 'document')}"
    if st.button(label, key="delete-named", type="primary", icon=":material/delete:"):
        _delete(shelf, name, label, ["--", *ids])


def _delete(shelf: Workspace, name: str, label: str, what: list[str]) -> None:
    shelf.jobs.start(f"{label} of {name}", name, ["delete", str(shelf.path(name)), "--json", *what])
    for key in ("delete-where", "delete-ids"):
        st.session_state.pop(key, None)
    st.rerun()


def _whole(shelf: Workspace, name: str) -> None:
    st.text("Deletes all its documents, embeddings and runs. You cannot undo this.")
    with st.form("delete-collection", border=False):
        typed = st.text_input("Type the name of the collection to confirm", key="delete-name", autocomplete="off")
        if not st.form_submit_button("Delete the collection", icon=":material/delete_forever:"):
            return
    if typed.strip() != name:
        st.warning(f"Not deleted. Type {escape_markdown(name)} to confirm.")
        return
    remove_collection(shelf.path(name))
    for job in shelf.jobs.of(name):
        shelf.jobs.forget(job)
    st.session_state.pop("collection", None)
    st.query_params.pop("collection", None)
    st.rerun()


NEW = "New collection"
TASKS: dict[str, Callable[[Workspace, str], None]] = {
    "About": show_about,
    "Add texts": show_adding,
    "Delete": show_deleting,
    "Check": show_checks,
    "What is new": show_watching,
    "Health": show_health,
}


def show(shelf: Workspace, name: str | None) -> None:
    """Draw the page."""
    if name is not None and st.session_state.pop(BEGUN, False):
        st.session_state["do"] = NEW  # somebody else made the first collection: what was typed here goes on
    st.title("Data", anchor=False)
    show_overview(shelf, name)
    if name is None:
        _first(shelf)
        return
    tasks = [*TASKS, NEW] if may_write() else ["About"]
    if not may_write():
        st.caption("Your key is read-only. To add or delete texts or to repair, you need a key with write rights.")
    task = st.segmented_control(
        "Task", tasks, default=tasks[0], required=True, key="do", bind="query-params", label_visibility="collapsed"
    )
    with sentences():
        if task == NEW:
            st.header("New collection", anchor=False)
            show_making(shelf)
            return
        st.header(escape_markdown(name), anchor=False)
        TASKS[task or tasks[0]](shelf, name)


def _first(shelf: Workspace) -> None:
    if not any(job.state == "running" for job in shelf.jobs.all()):
        show_welcome(shelf)


def show_welcome(shelf: Workspace) -> None:
    """Draw what a visitor sees first."""
    st.markdown(WHAT.format(place="this machine" if shelf.settings.local else "this server"))
    if not may_write():
        st.info("There is no collection yet. To create one, you need a key with write rights.")
        return
    st.session_state[BEGUN] = bool(st.session_state.get("new-kept") or st.session_state.get("new-path"))
    if st.session_state.get("new-kept"):
        _own(shelf)
        return
    left, right = st.columns([3, 2], gap="medium")
    with left.container(border=True, height="stretch"):
        _own(shelf)
    with right.container(border=True, height="stretch"):
        _demo(shelf)


def _own(shelf: Workspace) -> None:
    st.header("Your texts", anchor=False)
    with sentences():
        show_making(shelf)


def _demo(shelf: Workspace) -> None:
    st.header("Demo", anchor=False)
    st.markdown("248 support messages of an invented shop. This takes less than a minute.")
    if st.button("Load the demo", key="demo", icon=":material/play_arrow:"):
        with sentences():
            path = shelf.path(DEMO)
            shelf.jobs.start("Create demo", DEMO, _command(shelf, str(path)), overviews(shelf, DEMO))
            st.session_state[MADE] = DEMO
            go_to("data")


def _command(shelf: Workspace, to: str) -> list[str]:
    device = [] if shelf.settings.device == "auto" else ["--device", shelf.settings.device]
    return ["index", str(SAMPLES / "tickets.csv"), "--to", to, *device, "--json"]
