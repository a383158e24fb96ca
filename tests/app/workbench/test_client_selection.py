"""What the client computes, in node: the same as numpy and the server, on random selections."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
from benched import in_node, part_passes, passes, table
from linked import linked

from sonde.app import workbench
from sonde.pipelines.facets import Column, Facets

SELECT = """
const table = unpack(await file("table")), selections = JSON.parse(new TextDecoder().decode(await file("selections")));
const selector = new Selector(table, table.map, () => null, () => {});
console.log(JSON.stringify(selections.map((selection) => {
  const { lit, count, counts } = selector.select(readSelection(JSON.stringify(selection)));
  const all = Object.fromEntries([...counts].map(([name, each]) => [name, [...each]]));
  return { rows: [...lit.keys()].filter((row) => lit[row]), count, counts: all };
})));
"""


def random_part(random: np.random.Generator) -> dict[str, Any]:
    kind = random.integers(5)
    if kind == 0:
        corners = random.uniform(-1, 11, (random.integers(3, 9), 2)).round(3).tolist()
        outlines = [corners, corners[::-1][:3]] if random.random() < 0.3 else [corners]
        part: dict[str, Any] = {"kind": "area", "map": "map", "outlines": outlines}
    elif kind == 1:
        chosen = random.choice(4, random.integers(1, 4), replace=False)
        part = {
            "kind": "values",
            "column": "cluster:k",
            "values": [["red", "green", "blue", None][at] for at in chosen],
        }
    elif kind == 2:
        part = {"kind": "values", "column": "kind", "values": [f"kind {random.integers(29)}", {"other": True}]}
    else:
        column, low, high = [("stars", 1, 5), ("price", 1, 90), ("day", 19_000, 19_400)][random.integers(3)]
        ends = sorted(random.uniform(low, high, 2).round(2 if column == "price" else 0).tolist())
        part = {"kind": "range", "column": column, "low": ends[0], "high": ends[1]}
    return part | ({"not": True} if random.random() < 0.25 else {})


def test_random_selections_and_all_counts_are_those_of_numpy(tmp_path: Path) -> None:
    made, random = table(3_000), np.random.default_rng(3)
    selections = [
        {"mode": ["all", "any"][turn % 2], "parts": [random_part(random) for _ in range(random.integers(0, 5))]}
        for turn in range(120)
    ]
    found = in_node(tmp_path, SELECT, table=made.pack(), selections=json.dumps(selections).encode())
    sizes = set()
    for selection, answer in zip(selections, found, strict=True):
        expected = passes(made, selection)
        assert answer["rows"] == np.flatnonzero(expected).tolist(), selection
        assert answer["count"] == expected.sum()
        sizes.add(answer["count"])
        for column in made.columns:
            if column.kind != "class":
                continue
            others = [part for part in selection["parts"] if part.get("column") != column.name]
            among = passes(made, {"mode": "all", "parts": others}) if selection["mode"] == "all" else expected
            counts = np.bincount(column.values[among] + 1, minlength=len(column.names) + 1)
            assert answer["counts"][column.name] == counts.tolist(), (selection, column.name)
    assert len(sizes) > 60, "selections of many sizes were compared"


def nested() -> Facets:
    """Return 7 documents in a tree: animals (cats (lions), dogs), plants; the last one is in no group."""
    names, above = ("animals", "cats", "plants", "lions", "dogs"), (-1, 0, -1, 1, 0)
    own = np.array([3, 3, 1, 4, 2, 2, -1], np.int32)
    column = Column("taxonomy:t", "Taxonomy: t", "class", own, names, above=above)
    stars = Column("stars", "stars", "number", np.arange(7.0))
    return Facets("zoo", None, np.arange(7), np.full((7, 2), np.nan, np.float32), [column, stars], [], ())


def test_a_group_has_the_documents_of_the_groups_under_it(tmp_path: Path) -> None:
    def part(*values: str | None) -> dict[str, Any]:
        return {"kind": "values", "column": "taxonomy:t", "values": list(values)}

    few = {"kind": "range", "column": "stars", "low": 1, "high": 4}
    asked = [[], [part("animals")], [part("cats")], [part("animals") | {"not": True}], [part(None)], [few]]
    selections = [{"mode": "all", "parts": each} for each in asked]
    made = nested()
    found = in_node(tmp_path, SELECT, table=made.pack(), selections=json.dumps(selections).encode())
    assert [answer["rows"] for answer in found] == [
        [0, 1, 2, 3, 4, 5, 6], [0, 1, 2, 3], [0, 1, 2], [4, 5, 6], [6], [1, 2, 3, 4]
    ]  # fmt: skip
    assert made.columns[0].counts == [4, 3, 2, 2, 1]
    for answer in found[:5]:
        assert answer["counts"]["taxonomy:t"] == [1, 4, 3, 2, 2, 1]
    assert found[5]["counts"]["taxonomy:t"] == [0, 3, 2, 1, 1, 1]


def test_bins_of_numbers_and_days_count_every_document(tmp_path: Path) -> None:
    made = table(3_000)
    program = """
    const table = unpack(await file("table"));
    const bins = ({ name, low, width, bars, totals }) => [name, { low, width, bars, totals: [...totals] }];
    console.log(JSON.stringify(Object.fromEntries(table.columns.map(bins))));
    """
    found = in_node(tmp_path, program, table=made.pack())
    stars, price, day = (found[name] for name in ("stars", "price", "day"))
    values = {column.name: column.values for column in made.columns}
    known = values["stars"][~np.isnan(values["stars"])]
    assert stars["totals"] == [3_000 - len(known), *np.bincount(known.astype(int))[1:].tolist()], (
        "a bar for each whole number"
    )
    for name, bins in (("price", price), ("day", day)):
        edges = bins["low"] + bins["width"] * np.arange(bins["bars"] + 1.0)
        edges[-1] = np.inf
        assert bins["totals"] == [0, *np.histogram(values[name], edges)[0].tolist()], name


def test_the_client_selects_what_the_server_selects(tmp_path: Path) -> None:
    made = linked(tmp_path / "c.sonde", 90)
    facets = made.table("first")

    def values(column: str, *wanted: str | None) -> dict[str, Any]:
        return {"kind": "values", "column": column, "values": list(wanted)}

    def between(column: str, low: float, high: float) -> dict[str, Any]:
        return {"kind": "range", "column": column, "low": low, "high": high}

    outline = [[-1, -1], [1.5, -0.5], [0.2, 1.1]]
    selections: list[dict[str, Any]] = [
        {"mode": "all", "parts": []},
        {"mode": "all", "parts": [{"kind": "area", "map": "first", "outlines": [outline]}]},
        {"mode": "any", "parts": [between("stars", 2, 3), values("shop", None)]},
        {"mode": "all", "parts": [values("cluster:four", "parcels", "batteries") | {"not": True}]},
        {"mode": "all", "parts": [between("day", 19_800, 19_900.5), values("tag:few", "tagged")]},
    ]
    found = in_node(tmp_path, SELECT, table=facets.pack(), selections=json.dumps(selections).encode())
    for selection, answer in zip(selections, found, strict=True):
        assert facets.docs[answer["rows"]].tolist() == made.select(selection).tolist(), selection
    assert len({answer["count"] for answer in found}) >= 4


def test_a_lasso_with_a_thousand_corners_is_cut_to_what_the_address_holds(tmp_path: Path) -> None:
    turn = np.linspace(0, 2 * np.pi, 1_500, endpoint=False)
    outline = np.stack([5 + 3 * np.cos(turn) * (1 + 0.2 * np.sin(7 * turn)), 5 + 3 * np.sin(turn)], axis=1)
    program = """
    const table = unpack(await file("table")), outline = JSON.parse(new TextDecoder().decode(await file("outline")));
    const made = withOutline({ mode: "all", parts: [] }, outline, "new", "map");
    const selector = new Selector(table, "map", () => null, () => {});
    console.log(JSON.stringify([made.parts[0], selector.select(made).count]));
    """
    made = table(5_000)
    part, count = in_node(tmp_path, program, table=made.pack(), outline=json.dumps(outline.tolist()).encode())
    assert len(part["outlines"][0]) <= 200
    assert all(len(re.sub(r"\D", "", f"{value:.12g}")) <= 7 for corner in part["outlines"][0] for value in corner)
    assert count == part_passes(made, part).sum() > 500


def test_pixels_are_those_of_each_point(tmp_path: Path) -> None:
    """The image by sums against each point drawn by itself."""
    program = """
    const xs = Float32Array.from([1, 1, 3, 6.9, 9.5, -4]), ys = Float32Array.from([1, 1, 3, 5, 9.5, 2]);
    const codes = Uint16Array.from([0, 1, 1, 0, 0, 0]);
    const raster = new Raster(), to = { scale: 1, across: 0, down: 10 };
    raster.resize(10, 10);
    raster.clear();
    raster.light({ xs, ys, codes }, paletteOf(["#ff0000", "#0000ff"]), to, stampOf(1, 10), 0, 3);
    raster.dim({ xs, ys }, to, stampOf(1, 10), 3, 6);
    const image = raster.develop(0.5, [128, 128, 128], 0.25);
    const at = (x, y) => [...image.data.slice(4 * (10 * y + x), 4 * (10 * y + x) + 4)];
    const pixels = { both: at(1, 9), one: at(3, 7), dim: at(6, 5), none: at(0, 0) };
    console.log(JSON.stringify({ ...pixels, lit: raster.litIn(2, 6, 4, 8), dark: raster.litIn(5, 4, 8, 6) }));
    """
    found = in_node(tmp_path, program)
    red, green, blue, alpha = found["both"]
    assert abs(red - 127) <= 1 and abs(blue - 127) <= 1 and green == 0, "where two lie, their mean colour"
    assert found["one"][:3] == [0, 0, 255] and alpha > found["one"][3] > 100, "and stronger than one"
    assert found["dim"][:3] == [128, 128, 128] and 0 < found["dim"][3] < 100
    assert found["none"] == [0, 0, 0, 0]
    assert (found["lit"], found["dark"]) == (True, False), "only lit points keep names away"


def test_the_script_is_one_module_whose_names_are_unique() -> None:
    made = workbench.script()
    assert re.findall(r"^(?:import|export)\b.*", made, re.MULTILINE) == ["export { mount };"]
    names = re.findall(r"^(?:async )?(?:function|class|const) (\w+)", made, re.MULTILINE)
    assert len(names) == len(set(names)) > 50
    folder = Path(workbench.__file__).parent
    hosts = {"notebook.js", "offline.js"}  # what a notebook and a file append
    assert {path.name for path in folder.glob("*.js")} == set(workbench.MODULES) | hosts
    assert "http" not in made and "innerHTML" not in made, "no network, and no text is read as markup"
