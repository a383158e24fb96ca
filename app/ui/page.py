"""What every page shares: text that is never markup, lists of documents, links, empty states, the theme."""

import html
import logging
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

import streamlit as st

from ...indexer.errors import SondeError, WriterBusyError
from ...indexer.store.runs import Item, Run
from ..api import Collection
from .launch import UiSettings

_MARKDOWN = re.compile(r"([\\`*_{}\[\]()<>#+\-.!|~$:&^=@\"'/%])")
_TOGETHER = re.compile(
    r"(?<=:)(?=//|[\w+-]+(?::|$))|(?<=www)(?=\.|$)|(?<=@)(?=[-\w])|(?<=[<>~-])(?=[>=-])", re.IGNORECASE
)
"""Inside what Streamlit replaces after it has read the Markdown: addresses, icons, emoji, arrows, signs such as >=."""
NOTHING = ":small[]"
"""An empty element in Markdown."""
QUOTED = "An apostrophe is put before cells that a spreadsheet would run as a formula; JSONL holds the unchanged texts."
"""What a button says that downloads a CSV file."""
MARK = "<mark class='sonde'>{}</mark>"


def escape_markdown(text: str) -> str:
    """Return text on one line that Markdown shows as it is: for labels of widgets, which are Markdown.

    A backslash does not stop what Streamlit replaces in the text that Markdown yields, such as `:streamlit:` or an
    address. An empty element inside does: it divides the text, and neither half is replaced.
    """
    pieces = _TOGETHER.split(" ".join(text.split()))
    return NOTHING.join(_MARKDOWN.sub(r"\\\1", piece) for piece in pieces)


def show_text(text: str, marks: Iterable[tuple[int, int]] = (), *, small: bool = False) -> None:
    """Show text as it is, line breaks included, with the spans [begin, end) of characters marked."""
    kind = "sonde-text sonde-small" if small else "sonde-text"
    st.html(f"<div class='{kind}'>{marked(text, marks)}</div>")


def marked(text: str, marks: Iterable[tuple[int, int]] = ()) -> str:
    """Return text as HTML that shows exactly it, with spans marked; spans that overlap become one."""
    parts, place = [], 0
    for begin, end in joined_markdown(marks, len(text)):
        parts += [html.escape(text[place:begin]), MARK.format(html.escape(text[begin:end]))]
        place = end
    return "".join([*parts, html.escape(text[place:])])


def joined_markdown(marks: Iterable[tuple[int, int]], length: int) -> list[tuple[int, int]]:
    """Return spans in order, cut to [0, length), those that overlap or touch joined."""
    kept: list[tuple[int, int]] = []
    for begin, end in sorted((max(0, begin), min(end, length)) for begin, end in marks):
        if begin >= end:
            continue
        if kept and begin <= kept[-1][1]:
            kept[-1] = (kept[-1][0], max(end, kept[-1][1]))
        else:
            kept.append((begin, end))
    return kept


def chips(pairs: Iterable[tuple[str, object]]) -> None:
    """Show names and values, such as a document's metadata, as small chips in one line."""
    cells = (f"<span class='sonde-chip'><b>{html.escape(n)}</b> {html.escape(str(v))}</span>" for n, v in pairs)
    st.html(f"<div class='sonde-chips'>{''.join(cells)}</div>")


log = logging.getLogger("sonde.ui")


def label(field: str) -> str:
    """Return an argument or a setting as the pages call it: "reduce to" for `reduce_to`."""
    return field.replace("_", " ")


def failure(error: SondeError) -> str:
    """Return an error as a page says it, as Markdown: without the folder on the server that holds the collections."""
    return escape_markdown(error.render(label).replace(f"{UiSettings.load().folder}{os.sep}", ""))


@contextmanager
def sentences() -> Iterator[None]:
    """Show what fails inside the block as one sentence; what nobody foresaw goes to the server's log."""
    try:
        yield
    except WriterBusyError:
        st.warning("Another process is writing to this collection. You can still search it. Try this again later.")
    except SondeError as error:
        st.error(failure(error))
    except OSError as error:
        st.error(escape_markdown(f"{error.strerror or error}: {Path(error.filename or 'a file').name}"))
    except Exception:
        log.exception("a page failed")
        st.error("An unexpected error occurred. The server's log has the details. Reload the page.")


def empty(what: str, way_on: str, icon: str = ":material/inbox:") -> None:
    """Show that there is nothing here yet, and what to do about it; both are Sonde's own words, as Markdown."""
    with st.container(border=True, horizontal_alignment="center"):
        st.subheader(f"{icon} {what}", anchor=False, text_alignment="center")
        st.markdown(way_on, text_alignment="center")


PAGE = 6
SHORT = 280


@st.fragment
def show_members(collection: Collection, run: Run, items: list[Item], prompt: str, key: str) -> None:
    """Show a choice of the run's items, the largest first, and the documents of the one chosen, the surest first."""
    with sentences():
        ranked = sorted(items, key=lambda item: -item.data.get("size", 0))
        names = {f"{item.number} {item.name}" if run.kind.numbered else item.name: item for item in ranked}
        if not names:
            return
        chosen = names[st.selectbox(prompt, list(names), key=key, bind="query-params")]
        pages = max(1, -(-chosen.data.get("size", 0) // PAGE))
        page = min(st.session_state.get(f"{key}_page", 1), pages)
        found = collection.members(run.name, chosen.number, kind=run.kind, k=PAGE, offset=(page - 1) * PAGE)
        for start in range(0, len(found), 2):
            for cell, member in zip(st.columns(2), found[start : start + 2], strict=False):
                with cell.container(border=True, height="stretch", gap="small"):
                    if member.title.strip():
                        show_text(member.title)
                    show_text(shortened(member.text, SHORT), small=True)
                    if reason := chosen.data.get("why", {}).get(member.id):
                        show_text(reason, small=True)
                    if member.score is not None:
                        show_text(f"{run.kind.score} {member.score:.2f}", small=True)
        if pages > 1:
            st.pagination(pages, key=f"{key}_page")


def shortened(text: str, length: int) -> str:
    """Return a text, or its beginning and an ellipsis."""
    return text if len(text) <= length else text[:length] + " …"


PAGES = {
    "search": ("Search", ":material/search:"),
    "map": ("Map", ":material/scatter_plot:"),
    "clusters": ("Clusters and topics", ":material/bubble_chart:"),
    "labels": ("Labels", ":material/label:"),
    "explain": ("Explain", ":material/compare_arrows:"),
    "evaluate": ("Evaluate", ":material/bar_chart:"),
    "data": ("Data", ":material/database:"),
}
"""A page's address, which is also the name of its module, its title and its icon."""


def collection_name() -> str | None:
    """Return the name of the collection that the session looks at."""
    return st.session_state.get("collection")


def link(page: str, label: str, **address: str) -> None:
    """Draw a link to another page of the same collection; the label is Markdown."""
    title, icon = PAGES[page]
    there = st.Page(lambda: None, title=title, url_path=page)  # Streamlit knows a page by its address
    st.page_link(there, label=label, icon=icon, query_params={"collection": collection_name() or "", **address})


def address(page: str, **more: str) -> str:
    """Return the address of another page of the same collection, for a link in Sonde's own words."""
    return f"/{page}?{urlencode({'collection': collection_name() or '', **more})}"


HEAT = {"light": [[0, "#f4f8fa"], [1, "#0f6e84"]], "dark": [[0, "#1f2226"], [1, "#4fb8d0"]]}
"""From nothing to much, in tables that are drawn as charts."""


def theme() -> str:
    """Return "light" or "dark"."""
    return "dark" if getattr(st.context.theme, "type", "light") == "dark" else "light"
