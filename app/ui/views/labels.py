"""The page labels."""

import streamlit as st

from ...api import Collection
from ..shelf import Shelf


def show(shelf: Shelf, collection: Collection) -> None:
    """Draw the page."""
    del shelf
    st.title("labels", anchor=False)
    st.text(f"{len(collection):,} documents")
