"""All collections in a table, with the work on each beside it, and the jobs below."""

from datetime import datetime
from pathlib import Path
from typing import Any

import streamlit as st

from ....indexer.upkeep.info import QuickLook
from ...api.functions import being_written, last_change, quick_look
from ..jobs import Job
from ..words import explained
from ..workspace import Workspace
from .jobs import fraction, show_job_cards

EXACT = "exact: every passage is compared, so all of them are found."
"""What stands in place of the recall of a collection without an approximate index."""

REFRESH = 1.0
"""Seconds between two looks at running jobs."""


def show_overview(shelf: Workspace, name: str | None) -> None:
    """Show all collections and jobs; this part alone is redrawn while something runs."""
    running = _running(shelf.jobs.all())
    st.fragment(_overview, run_every=REFRESH if running else None)(shelf, name, running)


def _overview(shelf: Workspace, name: str | None, before: list[str]) -> None:
    jobs = shelf.jobs.all()
    if _running(jobs) != before or (name and st.session_state.get("collection") != name):
        st.rerun()  # the whole page: what a job has made or changed, or another choice, shows everywhere
    names = shelf.names()
    if names:
        _table(shelf, names, name, jobs)
    with st.container(key="jobs"):
        show_job_cards(shelf, jobs, name)


def _running(jobs: list[Job]) -> list[str]:
    return [job.id for job in jobs if job.state == "running"]


def _table(shelf: Workspace, names: list[str], name: str | None, jobs: list[Job]) -> None:
    import pandas as pd

    key = f"collections-{name}"  # a table of its own for each, so that its mark follows the choice in the sidebar
    busy = {job.collection: job for job in jobs if job.state == "running"}
    rows = [_row(each, shelf.path(each), busy.get(each), bool(busy)) for each in names]
    st.dataframe(
        pd.DataFrame(rows),
        hide_index=True,
        height=min(38 + 35 * len(rows), 300),
        key=key,
        on_select=lambda: _choose(names, key),
        selection_mode="single-row",
        selection_default={"selection": {"rows": [names.index(name)] if name in names else []}},
        column_config={
            "Documents": st.column_config.NumberColumn(format="localized"),
            "Passages": st.column_config.NumberColumn(format="localized"),
            "Size": st.column_config.NumberColumn(format="bytes"),
            "Recall@10": st.column_config.TextColumn(help=f"{explained('recall@10')} {EXACT}"),
            "Last change": st.column_config.DatetimeColumn(format="YYYY-MM-DD HH:mm"),
            "Work": st.column_config.ProgressColumn(format="percent", min_value=0, max_value=1),
        },
    )


def _choose(names: list[str], key: str) -> None:
    rows = st.session_state[key].selection.rows
    if rows and rows[0] < len(names):
        st.session_state["collection"] = names[rows[0]]


def _row(name: str, path: Path, job: Job | None, busy: bool) -> dict[str, Any]:
    found = look(path)
    state = "damaged" if found.problem else "ready" if found.documents else "empty"
    state = "being written" if being_written(path) else state
    return {
        "Name": name,
        "Documents": found.documents,
        "Passages": found.passages,
        "Size": found.bytes,
        "Model": Path(found.model).name if found.model else "",
        "Recall@10": "" if found.problem else "exact" if found.recall is None else f"{found.recall:.3f}",
        "Last change": datetime.fromtimestamp(found.changed),
        "State": state if job is None else job.title,
        **({"Work": None if job is None else fraction(job)} if busy else {}),
    }


def look(path: Path) -> QuickLook:
    """Return what a list shows of a collection; looked up again when it has changed."""
    return _glance(str(path), last_change(path))


@st.cache_data(show_spinner=False, max_entries=200)
def _glance(path: str, changed: float) -> QuickLook:
    del changed  # part of the key
    return quick_look(Path(path))
