"""Whether a session's browser is light or dark, and what has to follow from it in charts."""

import streamlit as st

HEAT = {"light": [[0, "#f4f8fa"], [1, "#0f6e84"]], "dark": [[0, "#1f2226"], [1, "#4fb8d0"]]}
"""From nothing to much, in tables that are drawn as charts."""


def theme() -> str:
    """Return "light" or "dark"."""
    return "dark" if getattr(st.context.theme, "type", "light") == "dark" else "light"
