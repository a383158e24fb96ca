"""The page Clusters and topics: choose a run or start one."""

import streamlit as st

from ....indexer.store.kinds import CLUSTER, TAXONOMY, TOPIC, TOPIC_KINDS
from ....indexer.store.runs import Item, Run
from ....indexer.wording import counted
from ...api import Collection
from ..downloads import show_groups_download
from ..jobs.panel import ask_name, may_start, show_work, start
from ..page import empty, escape_markdown, popover, sentences, show_members, shown_score, submitted
from ..words import explained
from ..workspace import Workspace, may_write
from .cards import show_change, show_group_cards
from .charts import show_breakdown, show_compare, show_curve, show_tree
from .taxonomy import show_taxonomy

METHODS = {
    "topics": "Topics: named groups at three nested levels",
    "kmeans": "KMeans: every document is in one of k clusters",
    "density": "Density: clusters of any shape, and outliers",
}


ABOUT = {
    "topics": "Leave empty to use the suggested number. The run has three levels in any case.",
    "kmeans": "Leave empty to let Sonde choose the number by silhouette and stability.",
}
"""What a method does without a number of groups, for those that take one."""
SIMILAR_SIZES = "Topics differ much in size. For a report with groups of similar size, choose KMeans."


def show_new(shelf: Workspace, collection: Collection, running: bool) -> None:
    """Show the form of a new run."""
    if not may_write():
        st.text("Your key is read-only.")
        return
    method = st.radio("Method", list(METHODS), format_func=METHODS.__getitem__, key="new_method", horizontal=False)
    kind = TOPIC if method == "topics" else CLUSTER
    name, replace, missing = ask_name(collection, "Name", method, kind, f"new_name_{method}")
    options = _options(collection, method)
    where = st.text_input(
        "Filter (optional)", key="new_where", placeholder="year >= 2020", disabled=method == "topics"
    )  # fmt: skip
    if where.strip() and method != "topics":
        options += ["--where", where.strip()]
    if submitted("Start", missing, type="primary", key="new_start", disabled=not may_start(running)):
        st.session_state["_run"] = kind.column(name)
        command = ["topics"] if method == "topics" else ["cluster", "--method", method]
        start(
            shelf, collection, f"{kind.heading} '{name}'", command[0],
            *command[1:], "--name", name, *replace, *options,
        )  # fmt: skip


def _options(collection: Collection, method: str) -> list[str]:
    about = None
    if method in ABOUT:
        about = st.number_input(
            "About how many groups", 1, max(1, len(collection)), None, key=f"new_about_{method}",
            placeholder="suggested", help=ABOUT[method],
        )  # fmt: skip
    if method == "topics":
        st.caption(SIMILAR_SIZES)
    if method == "kmeans":
        return ["-k", "auto" if about is None else str(about)]
    options = [] if about is None else ["--about", str(about)]
    if st.toggle("Choose the minimum size for me", value=True, key="new_size_auto") is False:
        options += ["--min-size", str(st.number_input("Minimum size", 2, 100_000, 10, key="new_size"))]
    keep = "nearest" if method == "topics" else "keep"
    ways = ["nearest", "keep"] if method == "topics" else ["keep", "nearest", "recluster"]
    names = {"keep": "keep separate", "nearest": "put in the nearest group", "recluster": "cluster among themselves"}
    outliers = st.selectbox("Outliers", ways, format_func=names.__getitem__, key=f"new_outliers_{method}")
    return options + (["--outliers", outliers] if outliers != keep else [])


GROUPS, TREE, CURVE, DOCUMENTS, COLUMN = "groups", "hierarchy", "choice of k", "documents", "by column"


def show(shelf: Workspace, collection: Collection) -> None:
    """Draw the page."""
    st.title("Clusters and topics", anchor=False)
    running = show_work(shelf, collection)
    runs = [run for run in collection.uncounted_runs() if run.kind.groups and run.complete]
    if not runs:
        empty(
            "No clusters and no topics yet",
            "Clusters divide the documents by meaning. Topics are groups with names, at three levels.",
            ":material/bubble_chart:",
        )
        with sentences():
            show_new(shelf, collection, running)
        return
    run, part = _chosen(shelf, collection, runs, running)
    run = run if part == TREE else _at_level(collection, run)
    found = collection.counted_run(run)
    items = _sized(collection, found.run, found.items) if found.run.kind is TAXONOMY else found.items
    with sentences():
        _facts(found.run, items)
        if part == COLUMN:
            show_breakdown(collection, found.run, found.levels)
        else:
            _part(shelf, collection, runs, found.run, items, part, running)


def _sized(collection: Collection, run: Run, items: list[Item]) -> list[Item]:
    """Return the groups of a taxonomy with their numbers of documents, which edits change."""
    sizes = collection.item_sizes(run)
    return [Item(item.number, item.name, {**item.data, "size": sizes.get(item.number, 0)}) for item in items]


def _chosen(shelf: Workspace, collection: Collection, runs: list[Run], running: bool) -> tuple[Run, str]:
    by_name = {run.kind.column(run.name): run for run in reversed(runs)}
    left, middle, right = st.columns([5, 10, 4], vertical_alignment="bottom")
    if st.session_state.get("_run") in by_name:  # of a job, which may still run
        st.session_state["run"] = st.session_state.pop("_run")
    chosen = left.selectbox("Run", list(by_name), key="run", bind="query-params")
    middle_part = TREE if by_name[chosen].kind is TOPIC else CURVE if by_name[chosen].report.get("curve") else None
    parts = [GROUPS, DOCUMENTS, *([middle_part] if middle_part else []), COLUMN, "compare"]
    part = middle.segmented_control("Show", parts, default=GROUPS, key="part", bind="query-params", wrap=True)
    with (
        right,
        popover("New run", "new", icon=":material/add:", width="stretch", disabled=not may_start(running)),
        sentences(),
    ):
        show_new(shelf, collection, running)
    return by_name[chosen], part or GROUPS


def _at_level(collection: Collection, run: Run) -> Run:
    """Let a level of a topic run be chosen; return the run that holds its groups."""
    sizes = run.report.get("levels", {})
    if not sizes:
        return run
    named = {f"{level} ({size:,})": level for level, size in sizes.items()}
    if _is_changed(run, now := sum(item.number >= 0 for item in collection.items(run))):
        level, why = run.report["level"], "changed" if run.parameters.get("changes") else "merged to your number"
        named = {f"{level}, {why} ({now:,})" if each == level else shown: each for shown, each in named.items()}
    first = next(shown for shown, level in named.items() if level == run.report["level"])
    nested = "Every fine group is part of one middle group, and every middle group of one coarse group."
    chosen = st.segmented_control("Level", list(named), default=first, key=f"level:{run.number}", help=nested)
    if run.report.get("clear") is False:
        low, high = run.report["equal"]
        about = f"{low:,} to {high:,} are about equally good" if low < high else "other seeds give other groups"
        st.caption(f"The number of groups is not clear: {about}.")
    if chosen is None or chosen == first:
        return run
    return next(part for part in collection.uncounted_runs(named[chosen]) if part.name == run.name)


def _is_changed(run: Run, groups: int) -> bool:
    """Whether topics of a run were joined or split since: its measures are those of the level as it was found."""
    levels = run.report.get("levels", {})
    return bool(levels) and not run.kind.part and groups != levels[run.report["level"]]


def _facts(run: Run, items: list[Item]) -> None:
    report = run.report
    groups = sum(item.number >= 0 for item in items)
    outliers = next((item.data.get("size", 0) for item in items if item.number < 0), 0)
    cells = st.columns(5)
    cells[0].metric("Documents", f"{run.documents:,}")
    cells[1].metric(run.kind.items.capitalize() if run.kind.logged else run.kind.heading, f"{groups:,}")
    share = f"{outliers / max(run.documents, 1):.1%}" if outliers else "none"
    outside = "In no group" if run.kind.logged else "Outliers"
    cells[2].metric(outside, share, help="Documents that are in no group." if outliers else None)
    for cell, name in zip(cells[3:], ("silhouette", "stability"), strict=True):
        if report.get(name) is not None and not _is_changed(run, groups):
            measure = "stability of topics" if name == "stability" and run.kind in TOPIC_KINDS else name
            cell.metric(name.capitalize(), shown_score(report[name]), help=explained(measure))
    where = run.parameters.get("where")
    made = f"{run.created[:16].replace('T', ' ')} UTC · {run.seconds:,.1f} s"
    st.caption(f"{made} · only {escape_markdown(where)}" if where else made)


def _part(
    shelf: Workspace, collection: Collection, runs: list[Run], run: Run, items: list[Item], part: str, running: bool
) -> None:
    if part == TREE:
        show_tree(shelf, collection, run, items, running)
    elif part == DOCUMENTS:
        show_members(collection, run, items, "Documents of", "group")
    elif part == CURVE:
        show_curve(run)
    elif part == "compare":
        show_compare(collection, runs, run, items)
    elif run.kind is TAXONOMY:
        show_taxonomy(shelf, collection, run, running)
    else:
        if may_write() and not run.kind.part:
            show_change(shelf, collection, run, items, running)
        elif may_write():
            level = next(each.report["level"] for each in runs if each.name == run.name and each.report.get("levels"))
            st.caption(f"Groups are edited at the level {level}. There, Make a taxonomy gives a tree of all levels.")
        if not any(item.number >= 0 for item in items):
            empty(
                "No groups",
                f"None of {counted(run.documents, 'document')} is in a dense region. Try a smaller minimum size.",
            )
        else:
            show_groups_download(collection, run, "groups")
        show_group_cards(collection, run, items)
