"""The page Evaluate, put together."""

import streamlit as st

from ....api import Collection
from ...jobs.panel import may_start, show_work
from ...workspace import Workspace
from .groups import show_clusters, show_labels
from .search import show_search

PARTS = {"Search": show_search, "Labels": show_labels, "Clusters": show_clusters}


def show(shelf: Workspace, collection: Collection) -> None:
    """Draw the page."""
    st.title("Evaluate", anchor=False)
    running = show_work(shelf, collection)
    part = st.segmented_control(
        "What to measure", list(PARTS), default="Search", required=True, key="what", bind="query-params",
        label_visibility="collapsed",
    )  # fmt: skip
    PARTS[part or "Search"](shelf, collection, may_start(running))
