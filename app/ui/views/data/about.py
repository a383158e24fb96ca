"""What a collection holds, in numbers."""

import json
from itertools import islice
from pathlib import Path
from typing import Any

import streamlit as st

from .....indexer.build.estimate import size
from .....indexer.glance import last_change
from .....indexer.info import Info
from .....indexer.wording import counted
from ....api import Collection
from ...plain import escape_markdown
from ...shelf import Shelf
from .damage import damaged, model_missing

SKIPPED = 1_000
"""Rows of the list of skipped ones that are shown."""


def show_about(shelf: Shelf, name: str) -> None:
    """Show counts, model, index, metadata, sizes, and what the last run skipped."""
    path = shelf.path(name)
    if damaged(shelf, name):
        return
    collection = shelf.open(name)
    found = _info(collection, str(path), last_change(path))
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
            st.caption("None: its documents have texts alone.")
        st.markdown("**Disk**")
        st.dataframe([{"Part": part, "Size": size(count)} for part, count in found.bytes.items()], hide_index=True)
    _skipped(path / "skipped.jsonl")


@st.cache_data(show_spinner=False, max_entries=32)
def _info(_collection: Collection, path: str, changed: float) -> Info:
    del path, changed  # the key
    return _collection.info()


def _counts(found: Info) -> None:
    cells = st.columns(4)
    cells[0].metric("Documents", f"{found.documents:,}")
    cells[1].metric("Passages", f"{found.passages:,}", help="Pieces of whole sentences that fit the model's window.")
    cells[2].metric("Size", size(sum(found.bytes.values())))
    cells[3].metric(
        "Recall@10",
        f"{found.ann['recall']:.3f}" if found.ann and found.ann["kind"] != "exact" else "exact",
        help="Of the ten nearest by exact comparison, how many the FAISS index finds.",
    )


def _lines(found: Info) -> list[dict[str, str]]:
    lines = {
        "Model": found.model,
        "Vectors": f"{found.dimension:,} dimensions, {found.model_settings['dtype']}",
        "Language": found.language or "not known",
        "FAISS index": _index(found.ann),
        "Newer than it": f"{counted(found.newer, 'passage')}, compared exactly",
        "Tombstones": f"{found.tombstones:,}",
    }
    return [{"What": what, "Value": value} for what, value in lines.items()]


def _index(ann: dict[str, Any] | None) -> str:
    if ann is None:
        return "none: vectors are compared exactly"
    short = "" if ann["reached"] else f", short of the target {ann['target']}"
    return f"{ann['kind']}, recall@10 {ann['recall']:.3f}{short}, {ann['latency_ms']:.2f} ms"


def _skipped(path: Path) -> None:
    try:
        with path.open(encoding="utf-8", errors="replace") as stream:
            rows = [json.loads(line) for line in islice(stream, SKIPPED)]
    except (OSError, ValueError):
        return
    first = "The first " if len(rows) == SKIPPED else ""
    with st.expander(escape_markdown(f"{first}{counted(len(rows), 'row')} that the last run skipped")):
        st.dataframe([{"Where": row["origin"], "Why": row["reason"]} for row in rows], hide_index=True)
