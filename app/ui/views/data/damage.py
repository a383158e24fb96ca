"""Collections that cannot be used as they are: a sentence and a way on."""

import streamlit as st

from .....indexer.errors import SondeError
from ....api import Collection
from ...gate import may_write
from ...plain import escape_markdown
from ...shelf import Shelf
from .overview import look


def damaged(shelf: Shelf, name: str) -> bool:
    """Return whether a collection cannot be read, or holds nothing yet, and say what to do about it."""
    found = look(shelf.path(name))
    if found.problem:
        st.error(escape_markdown(found.problem))
        if may_write():
            st.markdown("Health finds out what is wrong and mends what can be derived; Delete removes the collection.")
        return True
    if found.model is None:
        job = shelf.jobs.running(name)
        st.info(
            "This collection is being made: nothing is committed yet."
            if job
            else "The run that was to make this collection was stopped before it wrote anything. Add texts to it."
        )
        return True
    return _unreadable(shelf, name)


def _unreadable(shelf: Shelf, name: str) -> bool:
    try:
        len(shelf.open(name))
    except SondeError as error:
        st.error(escape_markdown(str(error)))
        st.markdown("Health finds out what is wrong and mends what can be derived.")
        return True
    return False


def model_missing(collection: Collection) -> bool:
    """Return whether the collection's model is not on this machine, and say what that means."""
    if collection.encoder_at_hand:
        return False
    model = escape_markdown(collection.spec.name)
    st.warning(
        f"Its model, {model}, is not on this machine. Search by words (lexical) goes on working; search by meaning and "
        "adding texts need the model: put its folder back, or see to it that it can be downloaded."
    )
    return True
