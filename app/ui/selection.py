"""What can be done with a selection: tag it, cluster it, label it, export it, and see what sets it apart."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import streamlit as st

from ...indexer.store.kinds import CLUSTER, LABEL, TAG
from ...indexer.store.runs import Run
from ...indexer.wording import counted
from ...pipelines.analysis.selections import Change
from ..api import Collection
from .downloads import choose_export_columns, help_of_export, written
from .jobs.panel import NO_NAME, ask_name, free_name, labels_file, may_start, start
from .page import chips, escape_markdown, sentences, shortened, show_text, submitted
from .workspace import Workspace

SAMPLE = 800
"""Texts of the selection, and of the rest, that terms are counted in."""
PAGE = 5
SHORT = 300
FORMATS = {"Excel": ".xlsx", "CSV": ".csv", "JSONL": ".jsonl", "Parquet": ".parquet", "RIS": ".ris"}


@dataclass(frozen=True, slots=True)
class Action:
    """Something to do with a selection.

    Attributes:
        name: In the address.
        label: Of its button.
        title: Of its dialog.
        writes: Whether it changes the collection.
        job: Whether it starts a job, which only one at a time may do.
    """

    name: str
    label: str
    title: str
    writes: bool = True
    job: bool = False


ACTIONS = (
    Action("apart", "Distinctive terms", "Distinctive terms", writes=False),
    Action("tag", "Tag", "Tag the selection"),
    Action("cluster", "Cluster", "Cluster the selection", job=True),
    Action("label", "Label", "Label the selection", job=True),
    Action("export", "Export", "Export the selection", writes=False),
)


def show_action(
    shelf: Workspace, collection: Collection, docs: np.ndarray, action: Action, running: bool, leave: Callable[[], None]
) -> None:
    """Show an action for documents by number, in a panel beside the workbench, which stays as it is."""

    @st.dialog(action.title, position="right", width=480, on_dismiss=leave)
    def panel() -> None:
        with sentences():
            _show(shelf, collection, docs, action, running)

    panel()


def _show(shelf: Workspace, collection: Collection, docs: np.ndarray, action: Action, running: bool) -> None:
    total, _ = collection.counts()
    st.markdown(f"**{len(docs):,} of {counted(total, 'document')}**")
    if not len(docs):
        st.text("No document is selected. Change the selection first.")
        return
    if action.job and not may_start(running):
        st.text("Another job is working on this collection. Wait until it ends.")
        return
    if action.name == "tag":
        _name(collection, docs)
    elif action.name == "cluster":
        _cluster(shelf, collection, docs)
    elif action.name == "label":
        _label(shelf, collection, docs)
    elif action.name == "export":
        _export(collection, docs)
    else:
        _apart(collection, docs)


def _apart(collection: Collection, docs: np.ndarray) -> None:
    terms = _terms(collection, docs, collection.documents_state())
    if terms:
        chips(("", term) for term in terms)
    else:
        st.text("No term is much more frequent here than in the other documents.")
    _texts(collection, docs)


@st.cache_data(show_spinner="Reading the selection …", max_entries=32)
def _terms(_collection: Collection, docs: np.ndarray, key: tuple[object, ...]) -> list[str]:
    del key
    return [term for term, score in _collection.contrast_with_rest(docs, SAMPLE) if score >= 2]


def _name(collection: Collection, docs: np.ndarray) -> None:
    st.text("Save these documents under a name. Filters, exports and this page can then use it as a tag.")
    name = st.text_input("Name", key="tag_name", placeholder="late deliveries").strip()
    change: Change | None = "new"
    known = next((run for run in collection.runs(TAG) if run.name == name), None)
    if known is not None:
        change = _asked(known)
    missing = NO_NAME if not name else "Choose whether to add to the tag or to replace it." if change is None else ""
    if submitted("Save", missing, type="primary", key="tag_keep"):
        found = collection.tag_numbered(name, docs, change or "new")
        st.query_params["color"] = TAG.column(found.tag)
        st.query_params.pop("do", None)
        st.toast(f"{escape_markdown(found.tag)}: {counted(found.documents, 'document')}")
        st.rerun()


def _asked(known: Run) -> Change | None:
    """Ask what becomes of a tag that exists; None as long as nothing is chosen."""
    said = f"The tag {escape_markdown(known.name)} already exists: {counted(known.documents, 'document')}"
    how = st.radio(said, ["add to it", "replace it"], index=None, key=f"tag_how:{known.name}")
    st.text("Choose one of these, or type another name.")
    return {"add to it": "add", "replace it": "replace"}.get(how)  # type: ignore[return-value]


def _cluster(shelf: Workspace, collection: Collection, docs: np.ndarray) -> None:
    name, replace, missing = ask_name(collection, "Name of the new clusters", "selection", CLUSTER, "part_name")
    where, keep = _kept(collection, docs, name)
    method = st.segmented_control("Method", ["kmeans", "density"], default="kmeans", required=True, key="part_method")
    k = "auto"
    if method == "kmeans" and not st.toggle("Choose k for me", value=True, key="part_auto"):
        most = max(2, min(200, len(docs)))
        k = str(st.number_input("k", 1, most, min(5, most), key="part_k"))
    options = ["--method", method or "kmeans", *(["-k", k] if method == "kmeans" else [])]
    if submitted("Cluster these documents", missing, type="primary", key="part_start"):
        keep()
        st.query_params["color"] = CLUSTER.column(name)
        st.query_params.pop("do", None)
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
    name, replace, missing = ask_name(collection, "Name of the labels", "selection", LABEL, "part_label_name")
    where, keep = _kept(collection, docs, name)
    labels = [line.strip() for line in lines.splitlines() if line.strip()]
    missing = missing if labels else "Type the labels first, one per line."
    if submitted("Label these documents", missing, type="primary", key="part_label"):
        keep()
        st.query_params["color"] = LABEL.column(name)
        st.query_params.pop("do", None)
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
    suffix = FORMATS[kind]
    columns = choose_export_columns(collection, "part")
    st.download_button(
        f"Download {counted(len(docs), 'document')}",
        lambda: written(suffix, lambda path: collection.export_numbered(docs, path, columns=columns, filled=True)),
        f"selection{suffix}",
        type="primary", key="part_export", on_click="ignore", help=help_of_export(suffix, columns),
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
