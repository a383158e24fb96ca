"""What every page shares: text that is never markup, lists of documents, links, empty states, the theme."""

import html
import logging
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlencode

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.navigation.page import StreamlitPage

from ...indexer.document import PAGE_BREAK
from ...indexer.errors import Message, SondeError, WriterBusyError
from ...indexer.store.kinds import LABEL
from ...indexer.store.runs import Item, Run
from ..api import Collection
from .launch import UiSettings
from .words import explained, in_pages, in_places, without_folders, without_paths

_MARKDOWN = re.compile(r"([\\`*_{}\[\]()<>#+\-.!|~$:&^=@\"'/%])")
_TOGETHER = re.compile(
    r"(?<=:)(?=//|[\w+-]+(?::|$))|(?<=www)(?=\.|$)|(?<=@)(?=[-\w])|(?<=[<>~-])(?=[>=-])", re.IGNORECASE
)
"""Inside what Streamlit replaces after it has read the Markdown: addresses, icons, emoji, arrows, signs such as >=."""
_PLAIN = re.compile(
    r"[^\W_]+(?:[ _-][^\W_]+)*"
    r"(?::(?!(?:small|shimmer|color|\w+-background|\w+-badge|primary|rainbow|red|orange|yellow|green|blue|violet|purple|"
    r"gr[ae]y)(?![\w-]))[^\W_]{2,}(?:[ _-][^\W_]+)*)?"
)
"""Text in which Markdown finds nothing, such as `tag:to_do`; after a colon, Streamlit replaces only these words."""
NOTHING = ":small[]"
"""An empty element in Markdown."""
MARK = "<mark class='sonde'>{}</mark>"


def escaped(text: str) -> str:
    """Return text as HTML that shows exactly it; a page break, which a browser shows as an unknown sign, is a space."""
    return html.escape(text.replace(PAGE_BREAK, " "))


def escape_markdown(text: str) -> str:
    """Return text on one line that Markdown shows as it is: for labels of widgets, which are Markdown.

    A backslash does not stop what Streamlit replaces in the text that Markdown yields, such as `:streamlit:` or an
    address. An empty element inside does: it divides the text, and neither half is replaced.

    Ordinary names are not escaped, because Streamlit puts a label, as it is given, into the `aria-label` too.
    """
    line = " ".join(text.split())
    if _PLAIN.fullmatch(line):
        return line
    pieces = _TOGETHER.split(line)
    return NOTHING.join(_MARKDOWN.sub(r"\\\1", piece) for piece in pieces)


def show_text(text: str, marks: Iterable[tuple[int, int]] = (), *, small: bool = False) -> None:
    """Show text as it is, line breaks included, with the spans [begin, end) of characters marked."""
    kind = "sonde-text sonde-small" if small else "sonde-text"
    st.html(f"<div class='{kind}' dir='auto'>{marked(text, marks)}</div>")


def marked(text: str, marks: Iterable[tuple[int, int]] = ()) -> str:
    """Return text as HTML that shows exactly it, with spans marked; spans that overlap become one."""
    parts, place = [], 0
    for begin, end in joined_markdown(marks, len(text)):
        parts += [escaped(text[place:begin]), MARK.format(escaped(text[begin:end]))]
        place = end
    return "".join([*parts, escaped(text[place:])])


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
    chip = "<span class='sonde-chip'><b dir='auto'>{}</b> <span dir='auto'>{}</span></span>"
    cells = (chip.format(html.escape(name), html.escape(str(value))) for name, value in pairs)
    st.html(f"<div class='sonde-chips'>{''.join(cells)}</div>")


log = logging.getLogger("sonde.ui")


def sentence_of(note: str) -> str:
    """Return a note of a result as a page says it, as Markdown."""
    return escape_markdown(in_places(f"{note[:1].upper()}{note[1:]}."))


def failure(error: SondeError) -> str:
    """Return an error as a page says it, as Markdown."""
    return escape_markdown(said_by_pages(error))


def said_by_pages(error: SondeError) -> str:
    """Return an error in the words of the pages, without the server's folders.

    Where others reach the server, no path is shown at all.
    """
    settings = UiSettings.load()
    said = without_folders(in_pages(Message(error.message.marked)), settings.jobs)
    return said if settings.local else without_paths(said)


@contextmanager
def sentences() -> Iterator[None]:
    """Show what fails inside the block as one sentence; what nobody foresaw goes to the server's log."""
    try:
        yield
    except WriterBusyError:
        st.warning("Another process is writing to this collection. You can still search it. Try again later.")
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
        st.header(f"{icon} {what}", anchor=False, text_alignment="center")
        st.markdown(way_on, text_alignment="center")


_DIGEST = re.compile(r"[0-9a-f]{32}(-\d+)?")


def is_digest(id: str) -> bool:
    """Return whether an id is one that Sonde made of a document's text: it tells a reader nothing."""
    return _DIGEST.fullmatch(id) is not None


def popover(label: str, name: str, **look: Any) -> DeltaGenerator:
    """Begin a popover that `shut_popovers` closes; the label is Markdown."""
    return st.popover(label, key=f"popover-{name}-{st.session_state.get(_SHUT, 0)}", **look)


def shut_popovers() -> None:
    """Close every popover when the page is drawn next: what was asked for in one has been done."""
    st.session_state[_SHUT] = st.session_state.get(_SHUT, 0) + 1  # under another key, the browser draws a new one


_SHUT = "_popovers"
PAGE = 6
SHORT = 280


@st.fragment
def show_members(collection: Collection, run: Run, items: list[Item], prompt: str, key: str) -> None:
    """Show a choice of the run's items, the largest first, and the documents of the one chosen, the surest first."""
    from .downloads import show_export  # they import this module
    from .drawer import show_opener

    with sentences():
        ranked = sorted(items, key=lambda item: -item.data.get("size", 0))
        names = {f"{item.number} {item.name}" if run.kind.numbered else item.name: item for item in ranked}
        if not names:
            return
        chosen = names[st.selectbox(prompt, list(names), key=key, bind="query-params")]
        pages = max(1, -(-chosen.data.get("size", 0) // PAGE))
        place = f"{key}_page {run.kind.column(run.name)} {run.created} {chosen.number}"  # others begin on page 1
        page = min(st.session_state.get(place, 1), pages)
        found = collection.members(run.name, chosen.number, kind=run.kind, k=PAGE, offset=(page - 1) * PAGE)
        corrected = {each.id for each in collection.corrections(run.name)} if run.kind is LABEL else set()
        for start in range(0, len(found), 2):
            for cell, member in zip(st.columns(2), found[start : start + 2], strict=False):
                with cell.container(border=True, height="stretch", gap="small"):
                    if member.title.strip():
                        show_text(member.title)
                    show_text(shortened(member.text, SHORT), small=True)
                    if reason := chosen.data.get("why", {}).get(member.id):
                        show_text(reason, small=True)
                    if member.score is not None:
                        given = member.score == 1 and member.id in corrected  # by a person: 1 is no probability
                        show_text(
                            "corrected" if given else f"{score_name(run)} {shown_score(member.score)}", small=True
                        )
                    show_opener(collection, member.id, key)
        if pages > 1:
            st.pagination(pages, key=place)
        show_export(collection, run, chosen, key)


def score_name(run: Run) -> str:
    """Return what the score of a run's members is; docs/labelling.md says which probabilities are not calibrated."""
    engine, several = run.parameters.get("engine"), run.parameters.get("multi_label")
    loose = run.kind is LABEL and (engine in ("ensemble", "reranker") or (engine == "similarity" and several))
    return f"{run.kind.score} (not calibrated)" if loose else run.kind.score


def shown_score(score: float) -> str:
    """Return a score with two decimals, and 0.00 for one that rounds to -0.00."""
    return f"{round(score, 2) + 0.0:.2f}"


def submitted(label: str, missing: str, **look: Any) -> bool:
    """Draw a button, and return whether it was clicked and nothing is missing.

    A browser sends what was typed when the text box is left. If the button were disabled until then, the click that
    leaves the box would do nothing.

    Args:
        label: Of the button, as Markdown.
        missing: What is to be done first, as Markdown, "" if nothing is. A click shows it.
        look: The button's other arguments.
    """
    if not st.button(label, **look):
        return False
    if missing:
        st.warning(missing)
    return not missing


def shortened(text: str, length: int) -> str:
    """Return a text, or its beginning and an ellipsis."""
    return text if len(text) <= length else text[:length] + " …"


def help_of(*measures: str) -> dict[str, Any]:
    """Return the settings of a table's columns that are measures: the heading of each explains it."""
    return {name: st.column_config.Column(help=explained(name)) for name in measures}


PAGES = {
    "search": ("Search", ":material/search:"),
    "map": ("Explore", ":material/scatter_plot:"),
    "clusters": ("Clusters and topics", ":material/bubble_chart:"),
    "labels": ("Labels", ":material/label:"),
    "explain": ("Explain", ":material/compare_arrows:"),
    "evaluate": ("Evaluate", ":material/bar_chart:"),
    "data": ("Data", ":material/database:"),
}
"""A page's address, which is also the name of its module, its title and its icon."""


MADE = "_made"
"""The name of the collection that this session is making: it is looked at as soon as it exists."""


BEGUN = "_begun"
"""Whether this session has chosen files on the first page, which disappears with the first collection."""


def collection_name() -> str | None:
    """Return the name of the collection that the session looks at."""
    return st.session_state.get("collection")


def link(page: str, label: str, **address: str) -> None:
    """Draw a link to another page of the same collection; the label is Markdown."""
    st.page_link(
        page_at(page), label=label, icon=PAGES[page][1],
        query_params={"collection": collection_name() or "", **address},
    )  # fmt: skip


def page_at(page: str) -> StreamlitPage:
    """Return a page as Streamlit links and switches to it: it knows a page by its address."""
    return st.Page(lambda: None, title=PAGES[page][0], url_path=page)


def go_to(page: str, **address: str) -> NoReturn:
    """Show another page under an address of its own.

    Streamlit refuses to switch without an address while a widget's value is in the present one.
    """
    st.switch_page(page_at(page), query_params=address)


def address(page: str, **more: str) -> str:
    """Return the address of another page of the same collection, for a link in Sonde's own words."""
    return f"/{page}?{urlencode({'collection': collection_name() or '', **more})}"


HEAT = {"light": [[0, "#f4f8fa"], [1, "#0f6e84"]], "dark": [[0, "#1f2226"], [1, "#4fb8d0"]]}
"""From nothing to much, in tables that are drawn as charts."""


def theme() -> str:
    """Return "light" or "dark"."""
    return "dark" if getattr(st.context.theme, "type", "light") == "dark" else "light"


_TOP = (
    """<script data-sonde="top">/* PLACE */ document.querySelector("[data-testid=stMain]")?.scrollTo(0, 0);</script>"""
)


def show_top(place: str) -> None:
    """Scroll to the top of the page when `place`, such as the number of a page of hits, is another than before."""
    with st.container(key="top"):
        st.html(_TOP.replace("PLACE", "".join(c for c in place if c.isalnum())), unsafe_allow_javascript=True)
