"""The Data page: make collections, starting with the first one, add to them, and look after them."""

from collections.abc import Callable

import streamlit as st

from ...samples import SAMPLES
from ..page import BEGUN, MADE, escape_markdown, go_to, sentences
from ..workspace import Workspace, may_write
from .adding import overviews, show_adding, show_making
from .checks import show_checks, show_watching
from .deleting import show_deleting
from .model import show_model
from .overview import show_about, show_health, show_overview

DEMO = "demo"
WHAT = (
    "Sonde finds texts by meaning. Give it a file or a folder of texts: it makes them searchable, draws a map of them, "
    "groups them by topic and labels them. Your texts stay on {place}."
)


NEW = "New collection"
TASKS: dict[str, Callable[[Workspace, str], None]] = {
    "About": show_about,
    "Add texts": show_adding,
    "Delete": show_deleting,
    "Check": show_checks,
    "What is new": show_watching,
    "Model": show_model,
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
