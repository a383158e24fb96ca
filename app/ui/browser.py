"""What runs in the visitor's browser besides Streamlit: words for a lost server, Back for queries, and scrolling up."""

import json

import streamlit as st

from .desk import SERVER

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
_TOP = (
    """<script data-sonde="top">/* PLACE */ document.querySelector("[data-testid=stMain]")?.scrollTo(0, 0);</script>"""
)


def watch_connection() -> None:
    """Report a lost connection in Sonde's words, load the page again if another server answers, and keep each query.

    A new server knows neither the tables nor the parts of the pages that an old one drew, so their buttons would do
    nothing. The address keeps what the page shows. Streamlit replaces the address when a query changes; one that
    somebody types becomes a new step here, so that the browser's Back returns to the query before. It is enough to
    draw this once.
    """
    script = _WATCH.replace("WORDS", json.dumps(LOST)) + _RETURN.replace("ID", json.dumps(SERVER)) + _STEPS
    st.html(script, unsafe_allow_javascript=True)


def show_top(place: str) -> None:
    """Scroll to the top of the page when `place`, such as the number of a page of hits, is another than before."""
    with st.container(key="top"):
        st.html(_TOP.replace("PLACE", "".join(c for c in place if c.isalnum())), unsafe_allow_javascript=True)
