"""The client as one script and one style sheet, for a page of Streamlit, an HTML file or a notebook."""

import re
from functools import cache
from pathlib import Path

MODULES = (
    "dom.js", "polygon.js", "table.js", "selection.js", "state.js", "view.js", "near.js", "points.js", "raster.js",
    "overlay.js", "hand.js", "map.js", "bars.js", "histogram.js", "legend.js", "parts.js", "order.js", "documents.js",
    "drawer.js", "workbench.js",
)  # fmt: skip
"""In an order in which each module comes after those that it imports."""
_IMPORT = re.compile(r"^import \{[^}]*\} from \"\./[a-z]+\.js\";\n", re.MULTILINE)
_EXPORT = re.compile(r"^export (?=class |function |const |async )", re.MULTILINE)


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
