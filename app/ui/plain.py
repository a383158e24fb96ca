"""Text of documents as text: whatever it holds, no browser and no Markdown reads it as markup."""

import html
import re
from collections.abc import Iterable

import streamlit as st

_MARKDOWN = re.compile(r"([\\`*_{}\[\]()<>#+\-.!|~$:&^=@\"'/%])")
MARK = "<mark class='sonde'>{}</mark>"


def escape_markdown(text: str) -> str:
    """Return text on one line that Markdown shows as it is: for labels of widgets, which are Markdown."""
    return _MARKDOWN.sub(r"\\\1", " ".join(text.split()))


def show_text(text: str, marks: Iterable[tuple[int, int]] = (), *, small: bool = False) -> None:
    """Show text as it is, line breaks included, with the spans [begin, end) of characters marked."""
    kind = "sonde-text sonde-small" if small else "sonde-text"
    st.html(f"<div class='{kind}'>{marked(text, marks)}</div>")


def marked(text: str, marks: Iterable[tuple[int, int]] = ()) -> str:
    """Return text as HTML that shows exactly it, with spans marked; spans that overlap become one."""
    parts, place = [], 0
    for begin, end in joined(marks, len(text)):
        parts += [html.escape(text[place:begin]), MARK.format(html.escape(text[begin:end]))]
        place = end
    return "".join([*parts, html.escape(text[place:])])


def joined(marks: Iterable[tuple[int, int]], length: int) -> list[tuple[int, int]]:
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
