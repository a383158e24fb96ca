"""The selection: how many documents, what tells them from the rest, their texts, and what to do with them."""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import streamlit as st

from .....indexer.store.kinds import CLUSTER, LABEL, TAG
from .....indexer.store.runs import Run
from .....indexer.wording import counted
from .....pipelines.analysis.corpus import Change
from ....api import Collection
from ...jobs.panel import ask_name, free_name, labels_file, may_start, start
from ...page import QUOTED, chips, escape_markdown, sentences, shortened, show_text
from ...workspace import Workspace, may_write

SAMPLE = 800
"""Texts of the selection, and of the rest, that terms are counted in."""
PAGE = 5
SHORT = 300
FORMATS = {"CSV": ".csv", "JSONL": ".jsonl", "Parquet": ".parquet"}


@st.fragment
def show_selection(shelf: Workspace, collection: Collection, docs: np.ndarray, total: int, running: bool) -> None:
    """Show what is selected; what happens here does not redraw the map."""
    st.subheader(f"{len(docs):,} of {counted(total, 'document')}", anchor=False)
    if not len(docs):
        st.text("No document is inside the selection.")
        return
    with sentences():
        words = st.container()
        if may_write():
            _actions(shelf, collection, docs, running)
        else:
            _export(collection, docs)
        _texts(collection, docs)
        with words:  # filled at last: counting them takes longest
            terms = _terms(collection, docs, collection.documents_state())
            if terms:
                chips(("", term) for term in terms)


@st.cache_data(show_spinner="Reading the selection …", max_entries=32)
def _terms(_collection: Collection, docs: np.ndarray, key: tuple[object, ...]) -> list[str]:
    del key
    return [term for term, score in _collection.contrast_with_rest(docs, SAMPLE) if score >= 2]


def _actions(shelf: Workspace, collection: Collection, docs: np.ndarray, running: bool) -> None:
    idle = may_start(running)
    with st.container(horizontal=True):
        with st.popover("Name", icon=":material/sell:"), sentences():
            _name(collection, docs)
        with st.popover("Cluster", icon=":material/bubble_chart:", disabled=not idle), sentences():
            _cluster(shelf, collection, docs)
        with st.popover("Label", icon=":material/label:", disabled=not idle), sentences():
            _label(shelf, collection, docs)
        with st.popover("Export", icon=":material/download:"), sentences():
            _export(collection, docs)


def _name(collection: Collection, docs: np.ndarray) -> None:
    st.text("Save these documents under a name. Filters, exports and this map can then use it as a tag.")
    name = st.text_input("Name", key="tag_name", placeholder="late deliveries").strip()
    change: Change | None = "new"
    known = next((run for run in collection.runs(TAG) if run.name == name), None)
    if known is not None:
        change = _asked(known)
    if st.button("Keep", type="primary", key="tag_keep", disabled=not name or change is None):
        found = collection.tag_numbered(name, docs, change or "new")
        st.session_state["_map_color"] = TAG.column(found.tag)
        st.toast(f"{escape_markdown(found.tag)}: {counted(found.documents, 'document')}")
        st.rerun()


def _asked(known: Run) -> Change | None:
    """Ask what becomes of a tag that exists; None as long as nothing is chosen."""
    said = f"The tag {escape_markdown(known.name)} already exists: {counted(known.documents, 'document')}"
    how = st.radio(said, ["add to it", "replace it"], index=None, key=f"tag_how:{known.name}")
    st.text("Choose one of these, or type another name.")
    return {"add to it": "add", "replace it": "replace"}.get(how)  # type: ignore[return-value]


def _cluster(shelf: Workspace, collection: Collection, docs: np.ndarray) -> None:
    name, replace = ask_name(collection, "Name of the new clusters", "selection", CLUSTER, "part_name")
    where, keep = _kept(collection, docs, name)
    method = st.segmented_control("Method", ["kmeans", "density"], default="kmeans", required=True, key="part_method")
    k = "auto"
    if method == "kmeans" and not st.toggle("Choose k for me", value=True, key="part_auto"):
        most = max(2, min(200, len(docs)))
        k = str(st.number_input("k", 1, most, min(5, most), key="part_k"))
    options = ["--method", method or "kmeans", *(["-k", k] if method == "kmeans" else [])]
    if st.button("Cluster just these", type="primary", key="part_start", disabled=not name):
        keep()
        st.session_state["_map_color"] = CLUSTER.column(name)
        start(
            shelf,
            collection,
            "Clusters of a selection",
            "cluster",
            *options,
            "--name",
            name,
            *replace,
            "--where",
            where,
        )


def _label(shelf: Workspace, collection: Collection, docs: np.ndarray) -> None:
    lines = st.text_area(
        "Labels, one per line", key="part_labels", placeholder="refund: the customer wants money back\npraise"
    )
    name, replace = ask_name(collection, "Name of the labels", "selection", LABEL, "part_label_name")
    where, keep = _kept(collection, docs, name)
    labels = [line.strip() for line in lines.splitlines() if line.strip()]
    if st.button("Label just these", type="primary", key="part_label", disabled=not (labels and name)):
        keep()
        st.session_state["_map_color"] = LABEL.column(name)
        start(
            shelf, collection, "Labels of a selection", "label", "--labels-file", labels_file(shelf, labels),
            "--name", name, *replace, "--where", where,
        )  # fmt: skip


def _kept(collection: Collection, docs: np.ndarray, name: str) -> tuple[str, Callable[[], object]]:
    """Return the filter of a job on the selection, and what first keeps the selection as the tag that it names.

    A tag that exists is not changed: one with other documents is left alone, and a free name taken.
    """
    tags = {run.name: run for run in collection.uncounted_runs(TAG)}
    same = name in tags and np.array_equal(collection.documents_of(tags[name]), docs)
    kept = name if same else free_name(name, tags)
    if kept != name:
        st.text(
            f"The tag {name} already has other documents and was not changed. This selection is now the tag {kept}."
        )
    doubled = TAG.column(kept).replace('"', '""')
    return f'"{doubled}"', (lambda: None) if same else (lambda: collection.tag_numbered(kept, docs))


def _export(collection: Collection, docs: np.ndarray) -> None:
    kind = st.segmented_control("Format", list(FORMATS), default="CSV", required=True, key="part_format") or "CSV"

    def content() -> bytes:
        with TemporaryDirectory() as folder:
            path = Path(folder) / f"selection{FORMATS[kind]}"
            collection.export_numbered(docs, path)
            return path.read_bytes()

    st.download_button(
        f"Download {counted(len(docs), 'document')}", content, f"selection{FORMATS[kind]}",
        type="primary", key="part_export", help=QUOTED if kind == "CSV" else None,
    )  # fmt: skip


def _texts(collection: Collection, docs: np.ndarray) -> None:
    pages = -(-len(docs) // PAGE)
    page = min(st.session_state.get("texts_page", 1), pages)
    for document in collection.numbered(docs[(page - 1) * PAGE : page * PAGE].tolist()):
        with st.container(border=True, gap="small"):
            if document.title.strip():
                show_text(document.title)
            show_text(shortened(document.text, SHORT), small=True)
    if pages > 1:
        st.pagination(pages, key="texts_page")
