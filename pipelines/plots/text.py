"""Text on plots: never markup, never too long."""

import html
import textwrap

HOVER = 240
LINE = 60


def plain(text: str, length: int) -> str:
    """Return text as one line of printable characters, shortened at a word."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text[: length * 4]).split())
    return line if len(line) <= length else line[: length - 1].rsplit(" ", 1)[0] + " …"


def escaped(text: str) -> str:
    """Return text that Plotly shows as it stands: it would take tags for markup."""
    return html.escape(text, quote=True)


def hover(title: str, text: str, more: str = "") -> str:
    """Return what is shown over a point: a title, the beginning of the text, in lines."""
    parts = [f"<b>{escaped(plain(title, LINE))}</b>"] if title.strip() else []
    parts += [escaped(line) for line in textwrap.wrap(plain(text, HOVER), LINE)]
    parts += [f"<i>{escaped(plain(more, LINE))}</i>"] if more else []
    return "<br>".join(parts)
