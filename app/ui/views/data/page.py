"""The page Data: collections at hand, making and feeding them, deleting, and their health."""

from collections.abc import Callable

import streamlit as st

from ...page import empty, escape_markdown, sentences
from ...workspace import Workspace, may_write
from .adding import show_adding, show_making
from .deleting import show_deleting
from .health import show_about, show_health
from .overview import show_overview

NEW = "New collection"
TASKS: dict[str, Callable[[Workspace, str], None]] = {
    "About": show_about,
    "Add texts": show_adding,
    "Delete": show_deleting,
    "Health": show_health,
}


def show(shelf: Workspace, name: str | None) -> None:
    """Draw the page."""
    st.title("Data", anchor=False)
    show_overview(shelf, name)
    if name is None:
        _first(shelf)
        return
    tasks = [*TASKS, NEW] if may_write() else ["About"]
    if not may_write():
        st.caption("Your key may read. Adding, deleting and mending texts needs one that may write.")
    task = st.segmented_control(
        "Task", tasks, default=tasks[0], required=True, key="do", bind="query-params", label_visibility="collapsed"
    )
    with sentences():
        if task == NEW:
            show_making(shelf)
            return
        st.subheader(escape_markdown(name), anchor=False)
        TASKS[task or tasks[0]](shelf, name)


def _first(shelf: Workspace) -> None:
    if not may_write():
        empty("No collection yet", "Whoever has a key that may write can make one.")
        return
    if not any(job.state == "running" for job in shelf.jobs.all()):
        empty("No collection yet", "Make one below: upload files, and look at what was found in them.")
    with sentences():
        show_making(shelf)
