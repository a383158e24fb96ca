"""The page Clusters and topics: which run, and what of it."""

import streamlit as st

from .....indexer.runs import Item, Run, counted_run, items_of, list_runs
from .....indexer.wording import counted
from ....api import Collection
from ...gate import may_write
from ...members import show_members
from ...plain import escape_markdown
from ...shelf import Shelf
from ...ways_on import empty, sentences
from ...work import may_start, show_work
from .cards import show_cards
from .change import show_change
from .compare import show_compare
from .graphs import show_breakdown, show_curve, show_tree
from .new_run import show_new

KINDS = ("cluster", "topic")
GROUPS, TREE, CURVE, DOCUMENTS = "groups", "hierarchy", "choice of k", "documents"


def show(shelf: Shelf, collection: Collection) -> None:
    """Draw the page."""
    st.title("Clusters and topics", anchor=False)
    running = show_work(shelf, collection)
    with collection.view() as view:
        runs = [run for run in list_runs(view.catalog, count=False) if run.kind in KINDS and run.complete]
    if not runs:
        empty(
            "No clusters and no topics yet",
            "Clusters part the documents by meaning. Topics find dense groups and name them.",
            ":material/bubble_chart:",
        )
        with sentences():
            show_new(shelf, collection, running, first=True)
        return
    run, part = _chosen(shelf, collection, runs, running)
    with collection.view() as view:
        run, items = counted_run(view.catalog, run), items_of(view.catalog, run)
    with sentences():
        _facts(run, items)
        _part(shelf, collection, runs, run, items, part, running)


def _chosen(shelf: Shelf, collection: Collection, runs: list[Run], running: bool) -> tuple[Run, str]:
    by_name = {f"{run.kind}:{run.name}": run for run in reversed(runs)}
    left, middle, right = st.columns([5, 10, 4], vertical_alignment="bottom")
    if st.session_state.get("_run") in by_name:  # of a job, which may still run
        st.session_state["run"] = st.session_state.pop("_run")
    chosen = left.selectbox("Run", list(by_name), key="run", bind="query-params")
    middle_part = TREE if by_name[chosen].kind == "topic" else CURVE if by_name[chosen].report.get("curve") else None
    parts = [GROUPS, DOCUMENTS, *([middle_part] if middle_part else []), "by column", "compare"]
    part = middle.segmented_control("Show", parts, default=GROUPS, key="part", bind="query-params")
    with (
        right,
        st.popover("New run", icon=":material/add:", width="stretch", disabled=not may_start(running)),
        sentences(),
    ):
        show_new(shelf, collection, running)
    return by_name[chosen], part or GROUPS


def _facts(run: Run, items: list[Item]) -> None:
    report = run.report
    groups = sum(item.number >= 0 for item in items)
    outliers = next((item.data.get("size", 0) for item in items if item.number < 0), 0)
    cells = st.columns(5)
    cells[0].metric("Documents", f"{run.documents:,}")
    cells[1].metric("Topics" if run.kind == "topic" else "Clusters", f"{groups:,}")
    share = f"{outliers / max(run.documents, 1):.1%}" if outliers else "none"
    cells[2].metric("Outliers", share, help="Documents that belong to no group." if outliers else None)
    for cell, name in zip(cells[3:], ("silhouette", "stability"), strict=True):
        if report.get(name) is not None:
            cell.metric(name.capitalize(), f"{report[name]:.2f}")
    where = run.parameters.get("where")
    made = f"{run.created[:16].replace('T', ' ')} UTC · {run.seconds:,.1f} s"
    st.caption(f"{made} · only {escape_markdown(where)}" if where else made)


def _part(
    shelf: Shelf, collection: Collection, runs: list[Run], run: Run, items: list[Item], part: str, running: bool
) -> None:
    if part == TREE:
        show_tree(shelf, collection, run, items, running)
    elif part == DOCUMENTS:
        show_members(collection, run, items, "Documents of", "group")
    elif part == CURVE:
        show_curve(run)
    elif part == "by column":
        show_breakdown(collection, run, items)
    elif part == "compare":
        show_compare(collection, runs, run, items)
    else:
        if may_write():
            show_change(shelf, collection, run, items, running)
        if not any(item.number >= 0 for item in items):
            empty(
                "No group", f"{counted(run.documents, 'document')} lie in no dense region. Try a smaller smallest size."
            )
        show_cards(collection, run, items)
