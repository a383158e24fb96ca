"""The frame around every page: head, choice of the collection, list of pages, and scripts that watch the connection."""

import json
import logging
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from traceback import walk_tb
from urllib.parse import quote

import streamlit as st

from ...indexer.errors import SondeError
from ..api import Collection
from .desk import SERVER
from .drawer import follow_address, forget_opened
from .launch import UiSettings
from .page import BEGUN, MADE, PAGES, collection_name, empty, escape_markdown, failure, go_to, sentences
from .workspace import Workspace, admit, warm

ICON = Path(__file__).with_name("icon.svg")  # Streamlit would fetch an icon of its own from another server
STYLE = Path(__file__).with_name("style.css")


def _matters(record: logging.LogRecord) -> bool:
    """Whether to log a record of the web server; False for pages that were closed while they were being sent.

    In that case Streamlit reads from the closed connection, and the server would log a traceback.
    """
    error = record.exc_info[1] if record.exc_info else None
    if not isinstance(error, (RuntimeError, TypeError)):
        return True
    return all(frame.f_code.co_name != "_websocket_endpoint" for frame, _ in walk_tb(error.__traceback__))


logging.getLogger("uvicorn.error").addFilter(_matters)


def show() -> None:
    """Draw the page that the address names."""
    st.set_page_config(page_title="Sonde", page_icon=ICON.read_text("utf-8"), layout="wide")
    st.html(STYLE)
    forget_opened()
    with st.container(key="script"):  # hidden: an element of its own would push the page down
        _watch_connection()
    settings = UiSettings.load()
    if not admit(settings):
        return
    shelf = Workspace(settings)
    pages = [
        st.Page(_page(name, shelf), title=title, icon=icon, url_path=name) for name, (title, icon) in PAGES.items()
    ]
    start = st.Page(lambda: _start(shelf), title="Sonde", default=True, visibility="hidden")
    # The page was once called Map, and links to it must keep working. Its present name works as well.
    explore = st.Page(_explore, title=PAGES["map"][0], url_path="explore", visibility="hidden")
    chosen = st.navigation([start, *pages, explore])
    _choose(shelf)
    chosen.run()


def _start(shelf: Workspace) -> None:
    """Welcome the first visitor, or go to the page to begin with: every page keeps an address of its own that way."""
    name = collection_name()
    if shelf.names() and not st.session_state.get(BEGUN):
        go_to("search", **st.query_params.to_dict() | ({"collection": name} if name else {}))
    if any(job.state == "running" for job in shelf.jobs.all()):
        go_to("data")
    st.title("Sonde", anchor=False)
    import_module(".data.page", __package__).show_welcome(shelf)


def _explore() -> None:
    go_to("map", **st.query_params.to_dict())


def _choose(shelf: Workspace) -> None:
    names = shelf.names()
    if st.session_state.get(MADE) in names:
        st.session_state["collection"] = st.session_state.pop(MADE)
    if not names:
        st.session_state.pop("collection", None)
        return
    wanted = st.query_params.get("collection", shelf.settings.collection)
    if st.session_state.get("collection") not in names:
        st.session_state["collection"] = (wanted if wanted in names else None) if wanted else names[0]
    name = st.sidebar.selectbox("Collection", names, key="collection", placeholder="Choose one", index=_first_choice())
    if name and st.query_params.get("collection") != name:
        st.query_params["collection"] = name  # also the one that nobody chose: an address must mean the same tomorrow


def _first_choice() -> int | None:
    """Return None if the address names no collection that exists; the box can then be empty, and only then."""
    return None if st.session_state["collection"] is None else 0


def _page(name: str, shelf: Workspace) -> Callable[[], None]:
    """Return the function that draws a page, loading its module when it is first asked for."""

    def page() -> None:
        with sentences():
            if collection_name() is None and shelf.names():
                wanted = escape_markdown(st.query_params.get("collection", "")[:60])
                st.title(PAGES[name][0], anchor=False)
                empty(f"There is no collection {wanted}", "Choose another one in the sidebar.", ":material/search_off:")
                return
            module = import_module(f".{name}", __package__)
            if name == "data":
                module.show(shelf, collection_name())
                return
            collection = _collection(shelf, PAGES[name][0])
            if collection is not None:
                module.show(shelf, collection)
                follow_address(collection)

    page.__name__ = name
    return page


def _collection(shelf: Workspace, title: str) -> Collection | None:
    """Return the collection to show; if there is none, say so below the page's title."""
    name, problem = collection_name(), None
    try:
        if name is not None and len(collection := shelf.open(name)):
            warm(collection)
            return collection
    except SondeError as error:
        problem = error
    st.title(title, anchor=False)
    _say_why(shelf, name, problem)
    return None


def _say_why(shelf: Workspace, name: str | None, problem: SondeError | None) -> None:
    if name is None and any(job.state == "running" for job in shelf.jobs.all()):
        empty("Not ready yet", "The first collection is being indexed. The [Data](/data) page shows the progress.")
        return
    if name is None:
        empty("No collection yet", "Create one on the [Data](/data) page.")
        return
    data = f"/data?collection={quote(name)}"
    if shelf.jobs.running(name):
        empty("Not ready yet", f"This collection is being created. The [Data]({data}) page shows the progress.")
    elif problem:
        st.error(failure(problem))
        st.markdown(f"Open [Health on the Data page]({data}&do=Health) to find out what is wrong and to repair it.")
    else:
        empty("This collection is empty", f"Add texts on the [Data]({data}&do=Add+texts) page.")


LOST = {
    "Connection error": "Sonde is not running",
    "Is Streamlit still running? If you accidentally stopped Streamlit, just restart it in your terminal:": (
        "The server does not answer. Start it again with the command below; this page then loads again. "
        "Jobs that were running continue without the server."
    ),
    "Streamlit server is not responding. Are you connected to the internet?": (
        "The server does not answer. Start it again with sonde ui; this page then loads again. "
        "Jobs that were running continue without the server."
    ),
    "streamlit run yourscript.py": "sonde ui",
}
"""Streamlit's texts for a lost connection, and ours. They are compared without the space around them."""
_WATCH = """<script data-sonde="words">
(() => {
  if (window.sondeWords) return;
  window.sondeWords = WORDS;
  const change = (root) => {
    const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      const shown = window.sondeWords[texts.currentNode.nodeValue.trim()];
      if (shown) texts.currentNode.nodeValue = shown;
    }
  };
  new MutationObserver(() => document.querySelectorAll("[role=dialog]").forEach(change))
    .observe(document.body, { childList: true, subtree: true, characterData: true });
})();
</script>"""
_RETURN = """<script data-sonde="server">
(() => {
  if (window.sondeServer) return;
  window.sondeServer = ID;
  let lost = false;
  const look = async () => {
    const found = document.querySelector("[data-test-connection-state]")?.dataset.testConnectionState;
    if (found && found !== "CONNECTED") lost = true;
    if (!lost || found !== "CONNECTED") return;
    lost = false;
    const base = location.pathname.replace(/[^/]*\\/?$/, "");
    const answer = await fetch(`${base}workbench/server`, { cache: "no-store" }).catch(() => null);
    if (answer?.ok && (await answer.json()).id !== window.sondeServer) location.reload();
  };
  new MutationObserver(look)
    .observe(document.body, { subtree: true, attributes: true, attributeFilter: ["data-test-connection-state"] });
})();
</script>"""
_STEPS = """<script data-sonde="steps">
(() => {
  if (window.sondeSteps) return;
  window.sondeSteps = true;
  const replace = history.replaceState;
  history.replaceState = function (state, title, address) {
    const next = new URL(address ?? location.href, location.href), now = new URL(location.href);
    const other = next.pathname === now.pathname && next.searchParams.get("q") !== now.searchParams.get("q");
    const typed = document.querySelector("[data-testid=stMain]")?.contains(document.activeElement);
    (other && typed ? history.pushState : replace).call(history, state, title, address);
  };
})();
</script>"""


def _watch_connection() -> None:
    """Report a lost connection in Sonde's words, load the page again if another server answers, and keep each query.

    A new server knows neither the tables nor the parts of the pages that an old one drew, so their buttons would do
    nothing. The address keeps what the page shows. Streamlit replaces the address when a query changes; one that
    somebody types becomes a new step here, so that the browser's Back returns to the query before. It is enough to
    draw this once.
    """
    script = _WATCH.replace("WORDS", json.dumps(LOST)) + _RETURN.replace("ID", json.dumps(SERVER)) + _STEPS
    st.html(script, unsafe_allow_javascript=True)
