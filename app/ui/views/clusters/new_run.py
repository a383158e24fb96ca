"""Starting a run as a job."""

import streamlit as st

from ....api import Collection
from ...gate import may_write
from ...shelf import Shelf
from ...work import ask_name, may_start, start

METHODS = {
    "topics": "Topics: dense groups, joined in a tree",
    "kmeans": "KMeans: every document in one of k clusters",
    "density": "Density: clusters of any shape, and outliers",
}


def show_new(shelf: Shelf, collection: Collection, running: bool, *, first: bool = False) -> None:
    """Show the form of a new run."""
    if not may_write():
        st.text("This key may read only.")
        return
    method = st.radio("Method", list(METHODS), format_func=METHODS.__getitem__, key="new_method", horizontal=False)
    kind = "topic" if method == "topics" else "cluster"
    name, replace = ask_name(collection, "Name", method, kind, f"new_name_{method}")
    options = _options(collection, method)
    where = st.text_input(
        "Only documents that pass", key="new_where", placeholder="year >= 2020", disabled=method == "topics"
    )  # fmt: skip
    if where.strip() and method != "topics":
        options += ["--where", where.strip()]
    disabled = not may_start(running) or not name
    if st.button("Start", type="primary", key="new_start", disabled=disabled):
        st.session_state["_run"] = f"{kind}:{name}"
        command = ["topics"] if method == "topics" else ["cluster", "--method", method]
        start(
            shelf, collection, f"{'Topics' if method == 'topics' else 'Clusters'} {name}", command[0],
            *command[1:], "--name", name, *replace, *options,
        )  # fmt: skip


def _options(collection: Collection, method: str) -> list[str]:
    if method == "kmeans":
        if st.toggle("Choose k for me", value=True, key="new_auto", help="By silhouette and stability over many k."):
            return ["-k", "auto"]
        most = max(1, len(collection))
        return ["-k", str(st.number_input("k", 1, most, min(10, most), key="new_k"))]
    options = []
    if st.toggle("Choose the smallest size for me", value=True, key="new_size_auto") is False:
        options += ["--min-size", str(st.number_input("Smallest size", 2, 100_000, 10, key="new_size"))]
    keep = "nearest" if method == "topics" else "keep"
    ways = ["nearest", "keep"] if method == "topics" else ["keep", "nearest", "recluster"]
    names = {"keep": "keep apart", "nearest": "put in the nearest group", "recluster": "cluster among themselves"}
    outliers = st.selectbox("Outliers", ways, format_func=names.__getitem__, key=f"new_outliers_{method}")
    return options + (["--outliers", outliers] if outliers != keep else [])
