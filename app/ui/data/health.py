"""What a collection holds, whether it is damaged, and how to repair it."""

import json
from itertools import islice
from pathlib import Path
from typing import Any

import streamlit as st

from ....indexer.errors import SondeError
from ....indexer.upkeep.info import Info
from ....indexer.wording import counted, part_name
from ...api import Collection
from ...api.functions import duration, last_change, size
from ..jobs import Job
from ..page import escape_markdown, failure
from ..words import explained
from ..workspace import Workspace, may_write
from .jobs import findings, told
from .overview import EXACT, look


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
    "compact": (
        "Compact",
        ":material/compress:",
        "Remove deleted rows and merge files. You can search meanwhile.",
    ),
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
