"""The workbench, a client in plain JavaScript: map, search, table and charts of a collection that narrow each other.

This file joins its modules into one script, and writes one HTML file that holds it with a table and its texts.
"""

import base64
import hashlib
import html
import json
import re
import zlib
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import IO, Any

MODULES = (
    "dom.js", "polygon.js", "table.js", "selection.js", "state.js", "view.js", "near.js", "points.js", "raster.js",
    "overlay.js", "hand.js", "map.js", "bars.js", "histogram.js", "legend.js", "parts.js", "order.js", "documents.js",
    "drawer.js", "workbench.js",
)  # fmt: skip
"""In an order in which each module comes after those that it imports."""
_IMPORT = re.compile(r"^import \{[^}]*\} from \"\./[a-z]+\.js\";\n", re.MULTILINE)
_EXPORT = re.compile(r"^export (?=class |function |const |async )", re.MULTILINE)

Document = tuple[str, str, str, dict[str, Any]]
"""Id, title, text, and metadata that the table does not hold."""
_FRAME = """
html, body { height: 100%; margin: 0; }
body { display: flex; flex-direction: column; box-sizing: border-box; padding: 8px 12px; gap: 6px;
  font: 14px/1.4 system-ui, sans-serif;
  background: var(--st-background-color, #fff); color: var(--st-text-color, #1f2430); }
h1 { font-size: 17px; margin: 0; overflow-wrap: anywhere; }
#root { flex: 1; min-height: 0; }
:root { color-scheme: light dark; }
@media (prefers-color-scheme: dark) { :root { --st-background-color: #14171c; --st-text-color: #e8eaee;
  --st-border-color: #3a404a; --st-secondary-background-color: #1d2127; } }
"""
_HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<h1>{title}</h1>
<div id="root">Loading …<noscript>This page needs JavaScript.</noscript></div>
"""
_DATA = '<script type="application/octet-stream" {0}>{1}</script>\n'


def write_html(stream: IO[bytes], title: str, table: bytes, blocks: Iterable[Sequence[Document]]) -> None:
    """Write the page.

    The page's policy allows no request at all and no script but its own. Texts are data: no part of them is markup.

    Args:
        stream: The file.
        title: What the page is called.
        table: The packed table.
        blocks: The documents in the order of the table's rows, in blocks that a reader loads one at a time.
    """
    code = f"{script()}\n{_host('offline.js')}"
    sheet = style() + _FRAME
    policy = (
        f"default-src 'none'; script-src {_digest(code)}; style-src {_digest(sheet)}; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )
    head = _HEAD.format(policy=policy, title=html.escape(title), style=sheet)
    stream.write(head.encode())
    stream.write(_DATA.format('id="table"', _packed(table)).encode())
    first = 0
    for block in blocks:
        content = json.dumps(block, ensure_ascii=False, separators=(",", ":")).encode()
        stream.write(_DATA.format(f'data-first="{first}"', _packed(content)).encode())
        first += len(block)
    stream.write(f'<script type="module">{code}</script>\n</body>\n</html>\n'.encode())


def notebook() -> str:
    """Return the client as the module that anywidget loads."""
    return f"{script()}\n{_host('notebook.js')}"


def _host(name: str) -> str:
    return (Path(__file__).parent / name).read_text("utf-8")


def _packed(content: bytes) -> str:
    return base64.b64encode(zlib.compress(content, 6)).decode()


def _digest(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


@cache
def script() -> str:
    """Return the client as one ES module without imports, which exports `mount`; every top-level name is unique."""
    folder = Path(__file__).parent
    parts = [_EXPORT.sub("", _IMPORT.sub("", (folder / name).read_text("utf-8"))) for name in MODULES]
    return "\n".join([*parts, "export { mount };\n"])


@cache
def style() -> str:
    """Return the style sheet; every rule lies below `.wb` or names a class that begins so."""
    return (Path(__file__).parent / "style.css").read_text("utf-8")
