"""The first page, as long as there is no collection: what Sonde is, the demo, and an upload."""

import streamlit as st

from ...samples import SAMPLES
from ..page import BEGUN, MADE, go_to, sentences
from ..workspace import Workspace, may_write
from .adding import overviews, show_making

DEMO = "demo"
WHAT = (
    "Sonde finds texts by meaning. Give it a file or a folder of texts: it makes them searchable, draws a map of them, "
    "groups them by topic and labels them. Your texts stay on {place}."
)


def show_welcome(shelf: Workspace) -> None:
    """Draw what a visitor sees first."""
    st.markdown(WHAT.format(place="this machine" if shelf.settings.local else "this server"))
    if not may_write():
        st.info("There is no collection yet. To create one, you need a key with write rights.")
        return
    st.session_state[BEGUN] = bool(st.session_state.get("new-kept") or st.session_state.get("new-path"))
    if st.session_state.get("new-kept"):
        _own(shelf)
        return
    left, right = st.columns([3, 2], gap="medium")
    with left.container(border=True, height="stretch"):
        _own(shelf)
    with right.container(border=True, height="stretch"):
        _demo(shelf)


def _own(shelf: Workspace) -> None:
    st.header("Your texts", anchor=False)
    with sentences():
        show_making(shelf)


def _demo(shelf: Workspace) -> None:
    st.header("Demo", anchor=False)
    st.markdown("248 support messages of an invented shop. This takes less than a minute.")
    if st.button("Load the demo", key="demo", icon=":material/play_arrow:"):
        with sentences():
            path = shelf.path(DEMO)
            shelf.jobs.start("Create demo", DEMO, _command(shelf, str(path)), overviews(shelf, DEMO))
            st.session_state[MADE] = DEMO
            go_to("data")


def _command(shelf: Workspace, to: str) -> list[str]:
    device = [] if shelf.settings.device == "auto" else ["--device", shelf.settings.device]
    return ["index", str(SAMPLES / "tickets.csv"), "--to", to, *device, "--json"]
