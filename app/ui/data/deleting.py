"""Deleting: documents by a filter or by ids, after a look at them, and the whole collection."""

from collections.abc import Sequence

import streamlit as st

from ....indexer.wording import counted
from ...api import Collection
from ...api.functions import remove_collection
from ..page import escape_markdown, popover, sentences, shortened, show_text, shut_popovers
from ..workspace import Workspace
from .overview import show_damaged

EXAMPLES = 10
"""Documents that are shown."""
SHOWN = 200
"""Characters of a text that are shown."""
FEW, FEW_SHOWN = 3, 90
"""Documents that are shown once more before they are deleted, and the characters of their texts."""


def show_deleting(shelf: Workspace, name: str) -> None:
    """Offer to delete documents by a filter or by ids, and the collection."""
    busy = shelf.jobs.running(name) or shelf.jobs.behind(name)
    if busy:
        st.info(escape_markdown(f"{busy.title} is running. Wait until it ends, or cancel it, before you delete."))
        return
    documents, whole = st.columns(2, gap="large")
    with documents:
        st.markdown("**Documents**")
        if not show_damaged(shelf, name):
            _documents(shelf, name)
    with whole:
        st.markdown("**The collection**")
        _whole(shelf, name)


def _documents(shelf: Workspace, name: str) -> None:
    how = st.segmented_control(
        "By", ["Filter", "Ids"], default="Filter", required=True, key="delete-by", label_visibility="collapsed"
    )
    if how == "Filter":
        _by_filter(shelf, name)
    else:
        _by_ids(shelf, name)


def _by_filter(shelf: Workspace, name: str) -> None:
    collection = shelf.open(name)
    where = st.text_input("Filter", key="delete-where", placeholder="stars <= 2 AND date < '2020-01-01'").strip()
    if not where:
        known = [f"{field} ({type})" for field, type in collection.fields().items()]
        st.caption(escape_markdown(f"The condition of an SQL WHERE. Columns: {', '.join(known) or 'none'}."))
        return
    count, examples = _passing(collection, where)
    if not count:
        st.info("No document matches this filter.")
        return
    st.dataframe(examples, hide_index=True)
    texts = [shortened(f"{each['title']} {each['text']}".strip(), FEW_SHOWN) for each in examples[:FEW]]
    confirm_deletion(shelf, name, count, texts, ["--where", where], "delete-passing")


def _passing(collection: Collection, where: str) -> tuple[int, list[dict[str, str]]]:
    """Return how many documents pass a filter, and the first of them."""
    count, first = collection.matching(where, EXAMPLES, SHOWN)
    return count, [{"id": each.id, "title": each.title, "text": each.text} for each in first]


def _by_ids(shelf: Workspace, name: str) -> None:
    given = st.text_area("Ids, one per line", key="delete-ids", height=120)
    ids = list(dict.fromkeys(line.strip() for line in given.splitlines() if line.strip()))
    if not ids:
        return
    confirm_deletion(shelf, name, len(ids), texts_of(shelf.open(name), ids), ["--", *ids], "delete-named")


def texts_of(collection: Collection, ids: Sequence[str]) -> list[str]:
    """Return the beginnings of a few of the documents, for `confirm_deletion`."""
    found = collection.texts(list(ids[:FEW]), FEW_SHOWN + 1).values()
    return [shortened(f"{each.title} {each.text}".strip(), FEW_SHOWN) for each in found]


def confirm_deletion(
    shelf: Workspace, name: str, count: int, texts: Sequence[str], what: Sequence[str], key: str
) -> None:
    """Draw a button that opens `show_deletion`, with the same arguments."""
    with popover(f"Delete {counted(count, 'document')} …", key, icon=":material/delete:"), sentences():
        show_deletion(shelf, name, count, texts, what, key)


def show_deletion(shelf: Workspace, name: str, count: int, texts: Sequence[str], what: Sequence[str], key: str) -> None:
    """Say how many documents would be deleted, show a few of them, and draw the button that deletes them.

    Args:
        shelf: The collections.
        name: The collection's name.
        count: How many documents.
        texts: The beginnings of a few of them.
        what: The arguments of `sonde delete` that name them.
        key: Of the button.
    """
    label = f"Delete {counted(count, 'document')}"
    st.text(f"{label} of {name}? You cannot undo this.")
    for text in texts:
        show_text(text, small=True)
    if texts and count > len(texts):
        st.caption(f"and {count - len(texts):,} more")
    if st.button(label, key=key, type="primary", icon=":material/delete:"):
        _delete(shelf, name, label, what)


def _delete(shelf: Workspace, name: str, label: str, what: Sequence[str]) -> None:
    shelf.jobs.start(f"{label} of {name}", name, ["delete", str(shelf.path(name)), "--json", *what])
    for key in ("delete-where", "delete-ids"):
        st.session_state.pop(key, None)
    shut_popovers()
    st.rerun()


def _whole(shelf: Workspace, name: str) -> None:
    st.text("Deletes all its documents, embeddings and runs. You cannot undo this.")
    with st.form("delete-collection", border=False):
        typed = st.text_input("Type the name of the collection to confirm", key="delete-name", autocomplete="off")
        if not st.form_submit_button("Delete the collection", icon=":material/delete_forever:"):
            return
    if typed.strip() != name:
        st.warning(f"Not deleted. Type {escape_markdown(name)} to confirm.")
        return
    remove_collection(shelf.path(name))
    for job in shelf.jobs.of(name):
        shelf.jobs.forget(job)
    st.session_state.pop("collection", None)
    st.query_params.pop("collection", None)
    st.rerun()
