"""A task of the Data page whose results are kept as runs: choose one, or start a new one."""

from collections.abc import Callable

import streamlit as st

from ....indexer.store.kinds import RunKind
from ...api import Collection
from ..jobs.panel import may_start
from ..page import empty, popover
from ..workspace import Workspace


def show_kept(
    shelf: Workspace,
    name: str,
    kind: RunKind,
    nothing: tuple[str, str, str],
    new: Callable[[Workspace, Collection, bool], None],
    show: Callable[[Collection, str], None],
) -> None:
    """Draw the choice of a run with its result, or what there is to do as long as there is none.

    The Data page shows jobs above its tasks, so this does not show the one that works on the collection again.

    Args:
        shelf: The collections.
        name: The collection's name.
        kind: The kind of run.
        nothing: A heading, a sentence and an icon for a collection without such runs.
        new: Draws the form of a new run; its last argument is whether a job is running.
        show: Draws the result of the run of a name.
    """
    collection = shelf.open(name)
    running = shelf.jobs.running(name) is not None
    runs = [run.name for run in reversed(collection.uncounted_runs(kind)) if run.complete]
    if not runs:
        empty(*nothing)
        new(shelf, collection, running)
        return
    left, right = st.columns([5, 2], vertical_alignment="bottom")
    chosen = left.selectbox(kind.capitalize(), runs, key=kind.name, bind="query-params")
    with (
        right,
        popover(f"New {kind}", f"new-{kind}", icon=":material/add:", width="stretch", disabled=not may_start(running)),
    ):
        new(shelf, collection, running)
    show(collection, chosen)
