"""What earlier `sonde evaluate` jobs found, and the columns that may hold the truth."""

from datetime import datetime
from typing import Any

import streamlit as st

from ....api import Collection
from ...jobs import Job
from ...jobs.panel import WATCHED, command_line, name_of
from ...workspace import Workspace
from ..search.filters import facets_of


def truths(collection: Collection) -> list[str]:
    """Return the metadata fields with few different values: classes that labels or clusters are compared with."""
    known = [facet for facet in facets_of(collection) if not facet.run]
    return [facet.name for facet in known if facet.choices] + [f.name for f in known if f.type == "integer"]


def measure(shelf: Workspace, collection: Collection, title: str, subject: str, *arguments: str) -> None:
    """Start `sonde evaluate SUBJECT C.sonde …` as a job, and draw the page anew.

    Raises:
        UsageError: Another job works on this collection.
    """
    words = ("evaluate", subject, str(collection.path), *arguments, "--json")
    st.session_state[WATCHED] = shelf.jobs.start(title, name_of(collection), words).id
    st.session_state.pop("result", None)
    st.rerun()


def chosen_result(shelf: Workspace, collection: Collection, subject: str) -> list[dict[str, Any]]:
    """Let the visitor choose among finished measurements, the newest first; return what the chosen one printed."""
    jobs = [job for job in shelf.jobs.of(name_of(collection)) if _is(job, subject)]
    if not jobs:
        return []
    ids = {job.id: job for job in jobs}
    shown = jobs[0]
    if len(jobs) > 1:
        id = st.selectbox("Measured", list(ids), format_func=lambda id: _named(ids[id]), key=f"result_{subject}")
        shown = ids.get(id, shown)
    else:
        st.caption(f"Measured {_when(shown)}")
    with st.popover("Command", type="tertiary", help="The same from the command line"):
        st.code(command_line(shown), language=None, wrap_lines=True)
    return [each for each in shown.output if isinstance(each, dict)]


def _is(job: Job, subject: str) -> bool:
    return job.command[:2] == ("evaluate", subject) and job.state == "done" and bool(job.output)


def _named(job: Job) -> str:
    return f"{_when(job)} · {job.title}"


def _when(job: Job) -> str:
    return datetime.fromtimestamp(job.started).strftime("%Y-%m-%d %H:%M")
