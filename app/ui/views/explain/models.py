"""Models of this page, loaded once for the server."""

import streamlit as st

from .....pipelines.label import load_nli
from .....pipelines.pairs import PairModel


@st.cache_resource(show_spinner="Loading the NLI model …")
def nli(device: str) -> PairModel:
    """Return the NLI model that comes with Sonde; no page fetches another from the net.

    Raises:
        SondeError: It, or the model that it builds on, is not installed.
    """
    return load_nli("bundled", device=device)
