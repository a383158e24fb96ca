"""A watch as one HTML page: what changed, how sure that is, and examples."""

from html import escape
from typing import TYPE_CHECKING

from ...indexer.wording import counted

if TYPE_CHECKING:
    from .watch import GroupChange, Watched

SHOWN = 10
"""Examples of a change."""
STYLE = """
body{font:16px/1.5 system-ui,sans-serif;max-width:50rem;margin:2rem auto;padding:0 1rem;color:#1b1b1f;background:#fff}
section{border-top:1px solid #ccc;margin-top:1.5rem}h2{font-size:1.15rem;overflow-wrap:anywhere}
li{overflow-wrap:anywhere}small,p.note{color:#555}
@media(prefers-color-scheme:dark){body{color:#eee;background:#1b1b1f}small,p.note{color:#bbb}section{border-color:#555}}
"""


def page(watched: "Watched") -> str:
    """Return an HTML page that needs nothing else; texts of documents are escaped."""
    title = escape(f"{watched.name}: what is new since {watched.since}")
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">',
        f"<title>{title}</title><style>{STYLE}</style></head><body><h1>{title}</h1>",
        f"<p>{counted(watched.new, 'new document')}, {watched.old:,} old.</p>",
        *(f'<p class="note">Note: {escape(note)}.</p>' for note in watched.notes),
        *(_section(change) for change in watched.changes),
        "" if watched.changes or not watched.new else "<p>No significant change.</p>",
        "</body></html>",
    ]
    return "\n".join(part for part in parts if part) + "\n"


def _section(change: "GroupChange") -> str:
    items = "".join(
        f"<li>{escape(example.text)} <small>{escape(example.id)}</small></li>" for example in change.examples[:SHOWN]
    )
    return f"<section><h2>{escape(change.title)}</h2><p>{change.figures}</p><ul>{items}</ul></section>"
