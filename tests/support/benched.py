"""A table for the workbench whose answers numpy knows, and the workbench on a page of its own or in node."""

import base64
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sonde.app.workbench import script, style
from sonde.pipelines.facets import Column, Facets, Region
from sonde.pipelines.map.regions import inside

PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>t</title>
<meta name="viewport" content="width=device-width">
<style>html, body {{ margin: 0 }} #root {{ height: 780px }} {style}</style><div id="root"></div>
<script type="module">{script}
const table = Uint8Array.from(atob({table}), (each) => each.charCodeAt(0)).buffer;
window.changes = [];
window.packed = table;
window.acts = [];
const texts = {texts};
const document_of = (row) => {{
  const [title, text] = texts[row % texts.length];
  return {{ row, id: `d${{row}}`, title, text, metadata: {{ note: text }} }};
}};
const host = {{
  rows: async (rows) => rows.map(document_of),
  search: async (query, k) => {{
    if (query === "fail") throw new Error("No model is available.");
    return {{ rows: [5, 3, 8].slice(0, k), scores: [3, 2, 1] }};
  }},
  resolve: async (part) => ({{ rows: part.ids.map((id) => Number(id.slice(1))) }}),
  changed: (state, replace) => window.changes.push([state, replace]),
  act: (name, state) => window.acts.push([name, state.s]),
}};
window.made = mount(document.getElementById("root"), {{ table, host, options: {options} }});
</script></html>"""


def table(count: int = 2_000, names: tuple[str, ...] = ("red", "green", "blue"), seed: int = 0) -> Facets:
    """Return documents in a square of 10 by 10, the last three without a place; two classes, two numbers, a day."""
    random = np.random.default_rng(seed)
    places = random.uniform(0, 10, (count, 2)).astype(np.float32)
    places[-3:] = np.nan
    group = random.integers(-1, len(names), count).astype(np.int32)
    kind = random.integers(0, 30, count).astype(np.int32)
    stars = random.integers(1, 6, count).astype(np.float64)
    stars[random.random(count) < 0.1] = np.nan
    columns = [
        Column("cluster:k", "Clusters: k", "class", group, names),
        Column("kind", "kind", "class", kind, tuple(f"kind {n}" for n in range(30)), cut=True),
        Column("stars", "stars", "number", stars),
        Column("price", "price", "number", random.lognormal(3, 1, count)),
        Column("day", "day", "date", random.integers(19_000, 19_400, count).astype(np.float64)),
    ]
    regions = [Region(5, 5, "the middle", 1, count), Region(2, 2, "a corner", 2, 10)]
    return Facets("shop", "map", np.arange(count), places, columns, regions, ())


def passes(made: Facets, selection: dict[str, Any]) -> np.ndarray:
    """Return bool [n]: which documents a selection holds, by numpy alone."""
    parts = [part_passes(made, part) for part in selection["parts"]]
    if not parts:
        return np.ones(len(made), bool)
    return np.all(parts, axis=0) if selection["mode"] == "all" else np.any(parts, axis=0)


def part_passes(made: Facets, part: dict[str, Any]) -> np.ndarray:
    """Return bool [n]: which documents have what a part asks for, its "not" regarded."""
    column = next((each for each in made.columns if each.name == part.get("column")), None)
    if part["kind"] == "area":
        found = inside(made.places.astype(np.float64), part["outlines"])
    elif part["kind"] == "values":
        assert column is not None
        codes = [_code(column, value) for value in part["values"]]
        found = np.isin(column.values, codes)
    else:
        assert column is not None
        found = (column.values >= part["low"]) & (column.values <= part["high"])
    return ~found if part.get("not") else found


def _code(column: Column, value: str | dict[str, bool] | None) -> int:
    if value is None:
        return -1
    return len(column.names) - 1 if isinstance(value, dict) else column.names.index(value)


def write_page(folder: Path, made: Facets, texts: list[tuple[str, str]] | None = None, **options: Any) -> str:
    """Write the workbench as one file, and return its address."""
    given = {"actions": [{"name": "tag", "label": "Tag"}], **options}
    page = PAGE.format(
        style=style(), script=script(), table=json.dumps(base64.b64encode(made.pack()).decode()),
        texts=json.dumps(texts or [("A title", "a text")]).replace("</", "<\\/"), options=json.dumps(given),
    )  # fmt: skip
    path = folder / "workbench.html"
    path.write_text(page, "utf-8")
    return path.as_uri()


def in_node(folder: Path, program: str, **files: bytes) -> Any:
    """Run a program after the client's script in node, and return the JSON that it prints.

    The program reads files as `await file("name")`, an ArrayBuffer.
    """
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    for name, content in files.items():
        (folder / name).write_bytes(content)
    head = (
        'import { readFile } from "node:fs/promises";\n'
        "globalThis.ImageData = class { constructor(w, h) { this.data = new Uint8ClampedArray(4 * w * h); } };\n"
        "const file = async (name) => { const read = await readFile(new URL(name, import.meta.url)); "
        "return read.buffer.slice(read.byteOffset, read.byteOffset + read.length); };\n"
    )
    (folder / "program.mjs").write_text(head + script() + program, "utf-8")
    done = subprocess.run([node, str(folder / "program.mjs")], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)
