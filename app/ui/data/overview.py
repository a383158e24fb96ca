"""The collections of the server: all in a table with the work on each; of one, what it holds, its health and repair."""

import json
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any

import streamlit as st

from ....indexer.errors import SondeError
from ....indexer.upkeep.info import Info, QuickLook
from ....indexer.wording import counted, part_name
from ...api import Collection
from ...api.functions import being_written, duration, last_change, quick_look, size
from ..jobs import Job
from ..page import escape_markdown, failure
from ..words import explained
from ..workspace import Workspace, may_write
from .jobs import findings, fraction, show_job_cards, told

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


def show_damaged(shelf: Workspace, name: str) -> bool:
    """Return whether a collection cannot be read, or holds nothing yet, and say what to do about it."""
    found = look(shelf.path(name))
    if found.problem:
        st.error(escape_markdown(found.problem))
        if may_write():
            st.markdown(
                "Health finds problems and rebuilds anything that can be rebuilt. Delete removes the collection."
            )
        return True
    if found.model is None:
        job = shelf.jobs.running(name)
        st.info(
            "This collection is being created. Nothing is committed yet."
            if job
            else "Indexing stopped before anything was written. Add texts."
        )
        return True
    return _unreadable(shelf, name)


def _unreadable(shelf: Workspace, name: str) -> bool:
    try:
        len(shelf.open(name))
    except SondeError as error:
        st.error(failure(error))
        st.markdown("Health finds problems and rebuilds anything that can be rebuilt.")
        return True
    return False


def model_missing(collection: Collection) -> bool:
    """Return whether the collection's model is not on this machine, and say what that means."""
    if collection.model_at_hand:
        return False
    model = escape_markdown(collection.model)
    st.warning(
        f"The model of this collection, {model}, is not on this machine. Search by words (lexical) still works. "
        "To search by meaning or to add texts, restore the model's folder or make sure that it can be downloaded."
    )
    return True


SKIPPED = 1_000
"""Rows of the list of skipped ones that are shown."""


def show_about(shelf: Workspace, name: str) -> None:
    """Show counts, model, index, metadata, sizes, and what the last run skipped."""
    path = shelf.path(name)
    if show_damaged(shelf, name):
        return
    collection = shelf.open(name)
    found = info_of(collection, str(path), last_change(path))
    model_missing(collection)
    _counts(found)
    left, right = st.columns(2, gap="large")
    with left:
        st.markdown("**Model and index**")
        st.dataframe(_lines(found), hide_index=True)
    with right:
        st.markdown("**Metadata**")
        if found.fields:
            st.dataframe([{"Column": each, "Type": kind} for each, kind in found.fields.items()], hide_index=True)
        else:
            st.caption("None. The documents have only texts.")
        st.markdown("**Disk**")
        st.dataframe([{"Part": part_name(part), "Size": size(n)} for part, n in found.bytes.items()], hide_index=True)
    _skipped(path / "skipped.jsonl")


@st.cache_data(show_spinner=False, max_entries=32)
def info_of(_collection: Collection, path: str, changed: float) -> Info:
    """Return counts, model, index and sizes of a collection; looked up again when it has changed."""
    del path, changed  # the key
    return _collection.info()


def _counts(found: Info) -> None:
    cells = st.columns(4)
    cells[0].metric("Documents", f"{found.documents:,}")
    cells[1].metric(
        "Passages", f"{found.passages:,}", help="Parts of documents that fit the model's window; whole sentences."
    )
    cells[2].metric("Size", size(found.disk))
    cells[3].metric(
        "Recall@10",
        f"{found.ann['recall']:.3f}" if found.ann and found.ann["kind"] != "exact" else "exact",
        help=f"{explained('recall@10')} {EXACT}",
    )


def _lines(found: Info) -> list[dict[str, str]]:
    lines = {
        "Model": found.model,
        "Embeddings": f"{found.dimension:,} dimensions, {found.model_settings['dtype']}",
        "Language": found.language or "not known",
        "FAISS index": _index(found.ann),
        "Not in the index yet": f"{counted(found.newer, 'passage')}, compared exactly",
        "Deleted passages": f"{found.tombstones:,}" + (", Compact removes them" if found.tombstones else ""),
    }
    others = [(_beside(other), f"{other['model']}, {size(other['bytes'])}") for other in found.other_models]
    return [{"What": what, "Value": value} for what, value in (*lines.items(), *others)]


def _beside(other: dict[str, Any]) -> str:
    return "Previous model" if other["previous"] else "Model not in use"


def _index(ann: dict[str, Any] | None) -> str:
    if ann is None:
        return "none: all passages are compared"
    short = "" if ann["reached"] else f", below the target {ann['target']}"
    return f"{ann['kind']}, recall@10 {ann['recall']:.3f}{short}, {ann['latency_ms']:.2f} ms"


def _skipped(path: Path) -> None:
    try:
        with path.open(encoding="utf-8", errors="replace") as stream:
            rows = [json.loads(line) for line in islice(stream, SKIPPED)]
    except (OSError, ValueError):
        return
    first = "The first " if len(rows) == SKIPPED else ""
    with st.expander(escape_markdown(f"{first}{counted(len(rows), 'row')} skipped in the last run")):
        st.dataframe([{"Where": row["origin"], "Why": row["reason"]} for row in rows], hide_index=True)


WORK = {
    "verify": ("Verify", ":material/health_and_safety:", "Check every stored value and both indexes."),
    "repair": ("Repair", ":material/healing:", "Rebuild indexes from embeddings, and lost embeddings from texts."),
    "compact": ("Compact", ":material/compress:", "Remove deleted rows and merge files. You can search meanwhile."),
}


def show_health(shelf: Workspace, name: str) -> None:
    """Offer to verify, repair and compact, and show what the last check found."""
    busy = shelf.jobs.running(name)
    if busy:
        st.info(escape_markdown(f"{busy.title} is running."))
    for command, (title, icon, what) in WORK.items():
        cells = st.columns([1, 5], vertical_alignment="center")
        if cells[0].button(title, key=f"health-{command}", icon=icon, disabled=busy is not None, width="stretch"):
            shelf.jobs.start(f"{title} {name}", name, [command, str(shelf.path(name)), "--json"])
            st.rerun()
        cells[1].text(what)
    checked = next((job for job in shelf.jobs.of(name) if job.command[0] == "verify" and job.state != "running"), None)
    if checked:
        _finding(shelf, name, checked)


def _finding(shelf: Workspace, name: str, job: Job) -> None:
    st.markdown(f"**Last check** · {duration(job.seconds)}")
    found = findings(job)
    if job.state == "done":
        st.success(" ".join(told(job)))
    elif not found:
        st.error(escape_markdown(job.error))
    else:
        st.warning(f"{counted(len(found), 'problem')} found. Repair rebuilds anything that can be rebuilt.")
        for sentence in found:
            st.text(sentence)
    repaired = [other for other in shelf.jobs.of(name) if other.started > job.started and other.command[0] == "repair"]
    if found and any(other.state == "done" for other in repaired):
        st.caption("The collection was repaired after this check. Verify it again.")
