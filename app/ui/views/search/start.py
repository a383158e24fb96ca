"""Before anything is asked: what the collection is, and what one might ask."""

import streamlit as st

from .....indexer.wording import counted
from .....pipelines.opening import example_queries
from ....api import Collection
from ...plain import escape_markdown
from ...stamp import Stamp, stamp


def show_start(collection: Collection) -> None:
    """Draw the page as it is before a query."""
    with collection.view() as view:
        documents, passages, _ = view.catalog.counts()
        fields = list(view.fields)
    with st.container(border=True, horizontal_alignment="center", gap="medium"):
        st.subheader(":material/search: Ask in your own words", anchor=False, text_alignment="center")
        said = f"{counted(documents, 'document')} in {counted(passages, 'passage')}, encoded by {collection.spec.name}."
        if fields:
            named = ", ".join(fields[:8]) + (" …" if len(fields) > 8 else "")
            said += f" Filters: {named}."
        st.markdown(escape_markdown(said), text_alignment="center")
        found = _examples(str(collection.path), stamp(collection), collection)
        if found:
            st.caption("Phrases that its texts use:", text_alignment="center")
            with st.container(horizontal=True, horizontal_alignment="center"):
                for place, example in enumerate(found):
                    st.button(escape_markdown(example), key=f"example{place}", on_click=_ask, args=(example,))


def _ask(query: str) -> None:
    st.session_state["q"] = query


@st.cache_data(show_spinner="Reading some texts …", max_entries=32)
def _examples(path: str, at: Stamp, _collection: Collection) -> list[str]:
    del path, at
    with _collection.view() as view:
        return example_queries(view)
