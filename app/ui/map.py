"""The Explore page: the workbench, its state in the address, and what can be done with what is selected."""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import streamlit as st
from streamlit.components import v2

from ...indexer.errors import UsageError
from ...indexer.store.kinds import MAP
from ...indexer.wording import counted
from ...pipelines.facets import Facets
from ..api import Collection
from ..api.functions import read_outlines
from ..workbench import script, style
from .desk import DESK
from .drawer import ADDRESS, open_document
from .jobs.panel import ask_name, may_start, show_work, start
from .page import empty, escape_markdown, sentences, submitted, theme
from .selection import ACTIONS, show_action
from .workspace import Workspace, may_write

CHART = "workbench"
DO = "do"
"""In the address: which action on the selection is open."""

LIT = 100
"""Hits of the query of an old address."""
SELECTION = "s"
STATE = (SELECTION, "color", "names", "view", "sort")
"""What the client keeps in the address."""

HTML = "<div class='place'></div>"
STYLE = ".place { color: var(--st-text-color); font-family: var(--st-font); }\n"


def show(shelf: Workspace, collection: Collection) -> None:
    """Draw the page."""
    st.title("Explore", anchor=False)
    running = show_work(shelf, collection)
    maps = [run for run in collection.uncounted_runs() if run.kind is MAP and run.complete]
    chosen = _chosen([run.name for run in reversed(maps)])
    with st.spinner("Reading the documents …", show_time=True):  # seconds for a million that nobody has read yet
        table = collection.table(chosen)
    _above(shelf, collection, table, running)
    _workbench(shelf, collection, table, running)


def _chosen(names: list[str]) -> str | None:
    """Return the map to show, asking where there are several; None where there is none."""
    if len(names) < 2:
        return names[0] if names else None
    return st.selectbox("Map", names, key="map", bind="query-params", width=320)


def _above(shelf: Workspace, collection: Collection, table: Facets, running: bool) -> None:
    """Say what the map lacks, and offer to make it."""
    placed = int((~np.isnan(table.places[:, 0])).sum())
    if table.map is None:
        empty(
            "No map yet",
            "A map shows each document as a point, with similar texts close together and names for regions. "
            "It is made once, in the background: seconds for small collections, minutes for large ones.",
            ":material/scatter_plot:",
        )
        _make(shelf, collection, running)
    elif not placed:
        empty("This map is empty", "Its documents were deleted or have changed. Make the map again.")
        _make(shelf, collection, running, table.map)
    elif placed < len(table):
        _newer(shelf, collection, table.map, len(table) - placed, running)


def _make(shelf: Workspace, collection: Collection, running: bool, again: str = "") -> None:
    with st.container(horizontal_alignment="center"), sentences():
        name, replace, missing = ask_name(collection, "Name", again, MAP, "map_name") if again else ("map", [], "")
        idle = may_start(running)
        if submitted("Make the map", missing, type="primary", icon=":material/scatter_plot:", disabled=not idle):
            start(shelf, collection, "Map", "map", *(["--name", name, *replace] if again else []))


def _newer(shelf: Workspace, collection: Collection, map: str, newer: int, running: bool) -> None:
    said, button = st.columns([4, 1], vertical_alignment="center")
    said.info(f"{counted(newer, 'new document')} {'is' if newer == 1 else 'are'} not on this map.")
    with sentences():
        if button.button("Add them to the map", disabled=not may_start(running), width="stretch"):
            start(shelf, collection, "Map: new documents", *MAP.update, map)


@st.fragment
def _workbench(shelf: Workspace, collection: Collection, table: Facets, running: bool) -> None:
    """Draw the workbench; what is asked for in it runs only this part of the page."""
    state, wrong = state_of(st.query_params.to_dict(), table.map or "")
    if wrong:
        st.error(escape_markdown(wrong[:1].upper() + wrong[1:] + "."))
    allowed = [each for each in ACTIONS if may_write() or not each.writes]
    actions = [{"name": each.name, "label": each.label} for each in allowed]
    shown = {
        "token": DESK.seat(collection, table), "rows": len(table), "state": state, "actions": actions, "theme": theme(),
    }  # fmt: skip
    above = st.container()  # below the workbench, nobody would see what failed
    _draw(shown, CHART, _act, lambda: _open(table))  # type: ignore[arg-type]
    asked = st.session_state.pop("_opened_row", None)
    action = next((each for each in allowed if each.name == st.query_params.get(DO)), None)
    id, docs = None, None
    with above, sentences():
        if asked is not None:
            id = _id(collection, asked)
        elif action is not None and ADDRESS not in st.query_params:
            docs = collection.select(state.get(SELECTION) or {"mode": "all", "parts": []})
    with sentences():
        if id is not None:
            open_document(collection, id, _query(state))
        elif action is not None and docs is not None:
            show_action(shelf, collection, docs, action, running, _leave)


def state_of(address: Mapping[str, str], map: str) -> tuple[dict[str, str], str]:
    """Return what an address means, and what of it cannot be read, as a sentence.

    Old addresses have a query in `q`, outlines in `area`, "nothing" for no colour, and a level of names in `names`.
    """
    state = {name: address[name] for name in STATE if address.get(name)}
    wrong = ""
    if SELECTION not in state:
        parts: list[object] = []
        try:
            outlines = read_outlines(address.get("area", ""))
            if outlines:
                parts.append({"kind": "area", "map": map, "outlines": outlines})
        except UsageError as error:
            wrong = str(error)
        if address.get("q", "").strip():
            parts.append({"kind": "query", "query": address["q"].strip(), "k": LIT})
        if parts:
            state[SELECTION] = json.dumps({"mode": "all", "parts": parts}, ensure_ascii=False)
    if state.get("color") == "nothing":
        state["color"] = "-"
    if state.get("names") in ("large", "small"):
        del state["names"]
    return state, wrong


class _Shown(TypedDict):
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


def _draw(shown: _Shown, key: str, on_act: Callable[[], None], on_open: Callable[[], None]) -> None:
    """Draw the workbench; then the session's state at `key` has "act" and "open", what a person asked for last."""
    _component()(key=key, data=dict(shown), on_act_change=on_act, on_open_change=on_open)


def _component() -> Any:
    return v2.component("sonde_workbench", html=HTML, css=STYLE + style(), js=_script())


@cache
def _script() -> str:
    host = Path(__file__).with_name("host.js").read_text("utf-8")
    return script().replace("export { mount };\n", "") + host


def _act() -> None:
    """Take an action that was asked for, and the state of the client, into the address."""
    asked = st.session_state[CHART]["act"]
    if not asked:
        return
    for name in STATE:
        st.query_params.pop(name, None)
    st.query_params.update({name: asked["state"][name] for name in STATE if asked["state"].get(name)})
    st.query_params.pop(ADDRESS, None)
    st.query_params[DO] = asked["name"]


def _open(table: Facets) -> None:
    asked = st.session_state[CHART]["open"]
    if asked and 0 <= asked["row"] < len(table):
        st.query_params.pop(DO, None)
        st.session_state["_opened_row"] = int(table.docs[asked["row"]])


def _leave() -> None:
    st.query_params.pop(DO, None)


def _id(collection: Collection, doc: int) -> str:
    found = collection.numbered([doc])
    if not found:
        raise UsageError("this document is no longer in the collection: reload the page")
    return found[0].id


def _query(state: dict[str, str]) -> str:
    """Return the query of a selection, for the reasons that the drawer gives."""
    try:
        parts = json.loads(state.get(SELECTION) or "{}").get("parts", [])
        return next((str(part["query"]) for part in reversed(parts) if part.get("kind") == "query"), "")
    except (ValueError, AttributeError, KeyError, TypeError):
        return ""
