"""Puts the workbench on a page of Streamlit."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypedDict

from streamlit.components import v2

from ...workbench import script, style

HTML = "<div class='place'></div>"
STYLE = ".place { color: var(--st-text-color); font-family: var(--st-font); }\n"


class Shown(TypedDict):
    """What the workbench is given.

    Attributes:
        token: Of the table, from the desk; the client reads the table itself.
        rows: Documents in the table.
        state: What an old address means; the client takes everything else from the address.
        actions: Buttons for the selection: {"name", "label"}.
        theme: "light" or "dark".
    """

    token: str
    rows: int
    state: Mapping[str, str]
    actions: Sequence[Mapping[str, str]]
    theme: str


def draw(shown: Shown, key: str, on_act: Callable[[], None], on_open: Callable[[], None]) -> None:
    """Draw the workbench; then the session's state at `key` has "act" and "open", what a person asked for last."""
    _component()(key=key, data=dict(shown), on_act_change=on_act, on_open_change=on_open)


def _component() -> Any:
    return v2.component("sonde_workbench", html=HTML, css=STYLE + style(), js=_script())


@cache
def _script() -> str:
    host = Path(__file__).with_name("host.js").read_text("utf-8")
    return script().replace("export { mount };\n", "") + host
