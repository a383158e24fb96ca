"""Changing a run: rename it or a group, merge groups, bring it up to date, delete it."""

import streamlit as st

from .....indexer.runs import Item, Run
from .....pipelines.runs import delete, rename
from ....api import Collection
from ...plain import escape_markdown
from ...shelf import Shelf
from ...ways_on import sentences
from ...work import may_start, start


def show_change(shelf: Shelf, collection: Collection, run: Run, items: list[Item], running: bool) -> None:
    """Show what can be changed, each behind a button."""
    idle = may_start(running)
    with st.container(horizontal=True):
        with st.popover("Rename", icon=":material/edit:"), sentences():
            _rename(collection, run, items)
        with st.popover("Merge", icon=":material/merge:", disabled=not idle), sentences():
            _merge(shelf, collection, run, items)
        newer = len(collection) - run.documents if not run.parameters.get("where") else 0
        if newer > 0 and st.button(f"Add {newer:,} newer documents", icon=":material/update:", disabled=not idle):
            with sentences():
                command = "topics" if run.kind == "topic" else "cluster"
                start(shelf, collection, f"New documents into {run.name}", command, "--update", run.name)
        with st.popover("Delete", icon=":material/delete:"), sentences():
            st.text(f"Delete the {run.kind} run {run.name}? The documents stay as they are.")
            if st.button("Delete it", type="primary", key="delete_run"):
                delete(collection, run.name, run.kind)
                st.rerun()


def options_of(items: list[Item]) -> dict[str, int]:
    """Return the numbers of groups by what a list shows of them."""
    return {f"{item.number} {item.name}": item.number for item in items if item.number >= 0}


def _rename(collection: Collection, run: Run, items: list[Item]) -> None:
    groups = options_of(items)
    whole = f"the whole run {run.name}"
    which = st.selectbox("What", [*groups, whole], key="rename_what")
    name = st.text_input("New name", key="rename_to")
    if st.button("Rename", type="primary", key="rename_do", disabled=not name.strip()):
        number = groups.get(which)
        rename(collection, run.name, name.strip(), run.kind, number)
        if number is None:
            st.session_state["_run"] = f"{run.kind}:{name.strip()}"
        st.toast(f"Renamed to {escape_markdown(name.strip())}")
        st.rerun()


def _merge(shelf: Shelf, collection: Collection, run: Run, items: list[Item]) -> None:
    groups = options_of(items)
    chosen = st.multiselect("Make these one", list(groups), key="merge_which", help="Under the first one's number.")
    numbers = ",".join(str(groups[name]) for name in chosen)
    if st.button("Merge", type="primary", key="merge_do", disabled=len(chosen) < 2):
        what = (run.name, "--kind", run.kind, "--merge", numbers)
        start(shelf, collection, f"Merge {len(chosen)} groups of {run.name}", "runs", *what)
