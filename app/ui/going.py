"""From one page to another, with its address."""

from urllib.parse import urlencode

import streamlit as st

from .main import PAGES, collection_name


def link(page: str, label: str, **address: str) -> None:
    """Draw a link to another page of the same collection; the label is Markdown."""
    title, icon = PAGES[page]
    there = st.Page(lambda: None, title=title, url_path=page)  # Streamlit knows a page by its address
    st.page_link(there, label=label, icon=icon, query_params={"collection": collection_name() or "", **address})


def address(page: str, **more: str) -> str:
    """Return the address of another page of the same collection, for a link in Sonde's own words."""
    return f"/{page}?{urlencode({'collection': collection_name() or '', **more})}"
