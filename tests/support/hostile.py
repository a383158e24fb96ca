"""Texts that a stranger may write, and a collection in which every string that a stranger chooses is one of them."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from fake_encoder import FakeEncoder
from themes import rows
from ui_overview import mapped, topics

from sonde.app.api import Collection, index

MARKUP = (
    "<script>owned=1</script> <img src=x onerror=owned=1> [x](javascript:owned=1) ![y](http://evil.example/y.png) "
    "# h **zqbold** _zqem_ ~~zqdel~~ `zqcode` $x^2$ :red[zqred] :material/home: :material_home: :streamlit: :smile: "
    "&lt;b&gt; &amp; https://evil.example/z www.evil.example a@evil.example a -> b <- c -- d >= e \u202eRTL <b>zqb</b> "
    "%{x} {0} @import 'x'"
)
"""What some reader on a page takes for markup. It has one space between words, as a page shows them."""
CONTROLS = "a\x1b]0;owned\x07b\x1b[2Jc\x9b31md\u202ee\u2066f\x08g\rh\ni\tj\x7fk\u2028l"
"""What some terminal obeys."""


def hostile(folder: Path, text: str, documents: int = 12) -> Collection:
    """Make a collection whose ids, titles, texts, values, columns, runs, labels and groups all hold `text`.

    Documents beyond the first `documents` are those of themes.py, so that there is something to group.
    """
    made = [row | {"title": ""} for row in rows()]
    for number, row in enumerate(made[:documents]):
        row |= {"id": f"{number} {text}", "title": f"title {text}", "text": f"{row['text']} {text} {number}"}
    for number, row in enumerate(made):
        row |= {f"column {text}": f"{('one' if number % 3 else 'two') if number else 'battery'} {text}"}
    encoder: Any = FakeEncoder()
    found = index(made, folder, text="text", id="id", title="title", encoder=encoder)
    found.cluster("clusters", k=4, refits=0)
    topics(found)
    found.label(["parcel", "battery"], name="labels")
    mapped(found)
    found.tag("tag", where="theme = 'parcel'")
    found.correct({f"0 {text}": "battery"}, run="labels")
    found.judge(f"query {text}", [f"0 {text}"], 1)
    with closing(sqlite3.connect(found.path / "catalog.db")) as catalog, catalog:  # as another program may write it
        catalog.execute("UPDATE runs SET name = name || ' ' || ?", (text,))
        catalog.execute("UPDATE run_items SET name = name || ' ' || ?", (text,))
    return found
