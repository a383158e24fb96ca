"""The page Data."""

import streamlit as st

from ..shelf import Shelf


def show(shelf: Shelf, name: str | None) -> None:
    """Draw the page."""
    st.title("Data", anchor=False)
    st.text(f"{name} of {shelf.names()}")
