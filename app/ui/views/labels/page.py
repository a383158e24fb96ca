"""The page Labels: type them, try them, run them, look at a run."""

import streamlit as st

from .....indexer.runs import Run, counted_run, items_of, list_runs
from ....api import Collection
from ...gate import may_write
from ...shelf import Shelf
from ...ways_on import empty, sentences
from ...work import show_work
from .outcome import show_outcome
from .review import show_review
from .truth import show_truth
from .typed import show_typed

PARTS = ["labels", "documents by label", "review", "against a column"]


def show(shelf: Shelf, collection: Collection) -> None:
    """Draw the page."""
    st.title("Labels", anchor=False)
    running = show_work(shelf, collection)
    with collection.view() as view:
        runs = [run for run in list_runs(view.catalog, "label", count=False) if run.complete]
    run, part = _chosen(runs)
    with sentences():
        if part == "labels" or run is None:
            if run is None:
                empty(
                    "No labels yet",
                    "Type labels below, one a line. Every document gets the one that fits best, from the labels' names "
                    "alone: no examples are needed.",
                    ":material/label:",
                )
            show_typed(shelf, collection, run, running)
        elif part == "review":
            show_review(shelf, collection, run, running)
        elif part == "against a column":
            show_truth(collection, run)
        else:
            with collection.view() as view:
                run, items = counted_run(view.catalog, run), items_of(view.catalog, run)
            show_outcome(collection, run, items, changeable=may_write())


def _chosen(runs: list[Run]) -> tuple[Run | None, str]:
    if not runs:
        return None, "labels"
    by_name = {run.name: run for run in reversed(runs)}
    left, right = st.columns([2, 5], vertical_alignment="bottom")
    if st.session_state.get("_label_run") in by_name:  # of a job, which may still run
        st.session_state["run"] = st.session_state.pop("_label_run")
    name = left.selectbox("Run", list(by_name), key="run", bind="query-params")
    wanted_part = st.session_state.pop("_label_part", None)
    if wanted_part:
        st.session_state["part"] = wanted_part
    if "part" not in st.session_state and "part" not in st.query_params:
        st.session_state["part"] = "documents by label"
    part = right.segmented_control("Show", PARTS, key="part", bind="query-params")
    return by_name[name], part or "documents by label"
