"""The page Evaluate, put together."""

import streamlit as st

from ....api import Collection
from ...shelf import Shelf
from ...work import may_start, show_work
from .clusters import show_clusters
from .labels import show_labels
from .search import show_search

PARTS = {"search": "Search", "labels": "Labels", "clusters": "Clusters and topics"}


def show(shelf: Shelf, collection: Collection) -> None:
    """Draw the page."""
    st.title("Evaluate", anchor=False)
    running = show_work(shelf, collection)
    part = st.segmented_control(
        "What to measure", list(PARTS), default="search", required=True, key="what", bind="query-params",
        format_func=PARTS.__getitem__, label_visibility="collapsed",
    )  # fmt: skip
    shown = {"search": show_search, "labels": show_labels, "clusters": show_clusters}[part or "search"]
    shown(shelf, collection, may_start(running))
