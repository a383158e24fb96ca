"""The documents of one cluster, topic or label of a run, page by page."""

import streamlit as st

from ...indexer.runs import Item, Run
from ...pipelines.runs import members
from ..api import Collection
from .plain import show_text
from .ways_on import sentences

PAGE = 6
SHORT = 280
NAMED = ("label", "tag")
"""Kinds whose items go by their names alone; the others have their numbers before them."""


@st.fragment
def show_members(collection: Collection, run: Run, items: list[Item], prompt: str, key: str) -> None:
    """Show a choice of the run's items, the largest first, and the documents of the one chosen, the surest first."""
    with sentences():
        ranked = sorted(items, key=lambda item: -item.data.get("size", 0))
        names = {item.name if run.kind in NAMED else f"{item.number} {item.name}": item for item in ranked}
        if not names:
            return
        chosen = names[st.selectbox(prompt, list(names), key=key, bind="query-params")]
        pages = max(1, -(-chosen.data.get("size", 0) // PAGE))
        page = min(st.session_state.get(f"{key}_page", 1), pages)
        found = members(collection, run.name, chosen.number, run.kind, k=PAGE, offset=(page - 1) * PAGE)
        for start in range(0, len(found), 2):
            for cell, member in zip(st.columns(2), found[start : start + 2], strict=False):
                with cell.container(border=True, height="stretch", gap="small"):
                    if member.title.strip():
                        show_text(member.title)
                    show_text(shortened(member.text, SHORT), small=True)
                    if member.score is not None:
                        show_text(f"{'probability' if run.kind == 'label' else 'score'} {member.score:.2f}", small=True)
        if pages > 1:
            st.pagination(pages, key=f"{key}_page")


def shortened(text: str, length: int) -> str:
    """Return a text, or its beginning and an ellipsis."""
    return text if len(text) <= length else text[:length] + " …"
