"""Who may come in: where the server is reached from other machines, a page first asks for a key."""

from pathlib import Path

import streamlit as st

from ..http.keys import Keys
from .settings import UiSettings

RIGHTS = "_rights"


def admit(settings: UiSettings) -> bool:
    """Return whether this session may see anything; ask for the key if it has not given one."""
    if settings.keys is None or RIGHTS in st.session_state:
        return True
    st.title("Sonde")
    with st.form("gate"):
        given = st.text_input("Key", type="password", help="Whoever runs this server makes keys with `sonde key`.")
        asked = st.form_submit_button("Come in")
    if asked:
        key = Keys.load(Path(settings.keys)).find(given.strip())
        if key:
            st.session_state[RIGHTS] = key.rights
            st.rerun()
        st.error("This is no key of this server.")
    return False


def may_write() -> bool:
    """Return whether this session may change collections: a key of rights "read" may not."""
    return st.session_state.get(RIGHTS, "write") == "write"
