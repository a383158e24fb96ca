"""Kinds of run: the columns, cells and filter operands of each; a new kind needs nothing else; names are checked."""

import copy
import json
import pickle
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import Command
from fake_encoder import FakeEncoder

from sonde.app.api import Collection, index
from sonde.indexer.errors import SondeError, UsageError
from sonde.indexer.store import kinds
from sonde.indexer.store.kinds import (
    CHECK,
    CLUSTER,
    COARSE,
    CORRECTION,
    EDIT,
    FINE,
    KINDS,
    LABEL,
    LEVELS,
    MAP,
    MIDDLE,
    TAG,
    TAXONOMY,
    TOPIC,
    WATCH,
    Column,
    RunKind,
    followers,
    group_kinds,
    kind_of,
)
from sonde.indexer.store.run_writing import NewRun, Snapshot, rename_item, write_run
from sonde.indexer.store.runs import Item, RunColumns, find_run, list_runs
from sonde.pipelines.map.stored import choices, coloring
from sonde.pipelines.search.facets import facets
from sonde.pipelines.search.filters import documents_where
from sonde.pipelines.search.filters.compile import run_operands

COLUMNS = {
    CLUSTER: [("cluster:r", "integer", "integer", 4), ("cluster:r name", "text", "text", "late")],
    TOPIC: [("topic:r", "integer", "integer", 4), ("topic:r name", "text", "text", "late")],
    **{kind: [(f"{kind}:r", "integer", "integer", 4), (f"{kind}:r name", "text", "text", "late")] for kind in LEVELS},
    LABEL: [("label:r", "text", "text", "late")],
    TAG: [("tag:r", "boolean", "boolean", True)],
    CORRECTION: [("correction:r", "text", "text", "late")],
    **{kind: [(f"{kind}:r", "texts", "list", ["late", "rude"])] for kind in (CHECK, WATCH)},
    TAXONOMY: [("taxonomy:r", "integer", "integer", 4), ("taxonomy:r name", "text", "text", "late")],
    EDIT: [],
}
SEVERAL: dict[str, object] = {"multi_label": True}


class Themes(RunKind):
    """A seventh kind."""

    __slots__ = ()
    name, item, items, heading = "theme", "theme", "themes", "Themes"
    colors = True

    def columns(self, main: str, parameters: Mapping[str, Any]) -> tuple[Column, ...]:
        """Return whether a document has a theme, and all themes that it has."""
        return Column(main, "member"), Column(f"{main} list", "names")


THEME = Themes()


@pytest.fixture
def fruit(tmp_path: Path) -> Collection:
    rows = [{"id": str(n), "text": text} for n, text in enumerate(("apple pie", "apple cake", "car fuel"))]
    return index(rows, tmp_path / "fruit.sonde", id="id", encoder=FakeEncoder())  # type: ignore[arg-type]


@pytest.fixture
def seventh(monkeypatch: pytest.MonkeyPatch) -> RunKind:
    monkeypatch.setattr(kinds, "KINDS", (*KINDS, THEME))
    return THEME


def write(collection: Collection, kind: RunKind, name: str, **more: Any) -> None:
    """Write a run that gives the first document the items 1 and 0, the second the item 0, the third nothing."""
    with collection.stored.view() as view:
        taken = Snapshot.of(view)
    assigned = (taken.docs[[0, 0, 1]], np.array([0, 1, 0]), np.array([0.2, 0.9, 0.5]))
    items = [Item(0, "sweet", {}), Item(1, "baked", {})]
    write_run(collection.stored, NewRun(kind, name, {}, items=items, assignments=assigned, **more), taken)


def test_the_kinds_are_in_order_and_each_is_its_name() -> None:
    assert KINDS == (CLUSTER, TOPIC, COARSE, MIDDLE, FINE, MAP, LABEL, TAG, CORRECTION, CHECK, WATCH, TAXONOMY, EDIT)
    assert KINDS == (
        "cluster",
        "topic",
        "coarse",
        "middle",
        "fine",
        "map",
        "label",
        "tag",
        "correction",
        "check",
        "watch",
        "taxonomy",
        "edit",
    )
    assert [kind_of(name) for name in ("cluster", "correction")] == [CLUSTER, CORRECTION]
    assert [kind_of(str(kind)) is kind for kind in KINDS] == [True] * 13
    assert {str(CLUSTER): 1}[CLUSTER] == 1
    assert CLUSTER != "topic" and CLUSTER != TOPIC
    assert json.dumps({"kind": TAG}) == '{"kind": "tag"}'
    assert f"{MAP!r} {MAP} {MAP:<5}|" == "'map' map map  |"


@pytest.mark.parametrize("kind", KINDS)
def test_a_copied_kind_is_the_same_object(kind: RunKind) -> None:
    assert pickle.loads(pickle.dumps(kind)) is kind
    assert copy.deepcopy(kind) is copy.copy(kind) is kind
    assert type(str(kind)) is str


@pytest.mark.parametrize(
    ("name", "hint"),
    [("clusters", " (did you mean 'cluster'?)"), ("Tag", " (did you mean 'tag'?)"), ("bogus", ""), ("", "")],
)
def test_an_unknown_name_is_refused_with_the_nearest_and_all(fruit: Collection, name: str, hint: str) -> None:
    message = (
        f"{name!r} is not a kind of run{hint}: use cluster, topic, coarse, middle, fine, map, label, tag, correction, "
        "check, watch, taxonomy or edit"
    )
    with pytest.raises(UsageError) as refused:
        kind_of(name)
    assert str(refused.value) == message
    with pytest.raises(UsageError) as refused:
        fruit.runs(name)
    assert str(refused.value) == message


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind is not MAP])
def test_one_description_of_a_column_serves_export_and_filter(kind: RunKind) -> None:
    found = kind.columns(kind.column("r"), {})
    assert [(each.name, each.type, each.operand, each.cell([4, 7], ["late", "rude"])) for each in found] == (
        COLUMNS[kind]
    )
    assert [each.absent for each in found] == [False if kind is TAG else None] * len(found)


@pytest.mark.parametrize("kind", [LABEL, CORRECTION])
def test_several_labels_are_a_list(kind: RunKind) -> None:
    [column] = kind.columns(f"{kind}:r", SEVERAL)
    assert (column.type, column.operand, column.absent) == ("texts", "list", None)
    assert column.cell([4, 7], ["late", "rude"]) == ["late", "rude"]


def test_a_map_has_two_coordinates_that_no_filter_uses() -> None:
    columns = MAP.columns("map:r", {})
    assert [(each.name, each.type, each.operand, each.absent) for each in columns] == [
        ("x", "real", None, None), ("y", "real", None, None),
    ]  # fmt: skip
    with pytest.raises(ValueError, match="the column 'x' holds a place: no item has one"):
        columns[0].cell([0], ["a"])


def test_what_each_kind_is_like() -> None:
    def those(attribute: str) -> list[RunKind]:
        return [kind for kind in whole if getattr(kind, attribute)]

    whole = [kind for kind in KINDS if not kind.part]
    assert those("groups") == those("numbered") == list(group_kinds()) == [CLUSTER, TOPIC, TAXONOMY]
    assert those("colors") == [CLUSTER, TOPIC, LABEL, TAG, TAXONOMY]
    assert [kind.update for kind in those("update")] == [
        ("cluster", "--update"), ("topics", "--update"), ("map", "--update"),
    ]  # fmt: skip
    assert [kind.payload for kind in whole] == ["run_documents"] * 2 + ["run_places"] + ["run_documents"] * 6
    assert [kind.score for kind in whole] == ["score"] * 3 + ["probability"] + ["score"] * 3 + ["similarity"] * 2
    words = ["cluster", "topic", "region", "label", "tag", "label", "finding", "change", "group"]
    assert [kind.item for kind in whole] == words
    assert [kind.items for kind in whole] == [f"{word}s" for word in words]
    headings = ["Clusters", "Topics", "Map", "Labels", "Tags", "Corrections", "Checks", "What is new", "Taxonomies"]
    assert [kind.heading for kind in whole] == headings
    assert [kind.color("late") for kind in whole] == ["late"] * 4 + ["tagged"] + ["late"] * 4
    assert {kind: followers(kind) for kind in those("colors")} == {
        CLUSTER: (), TOPIC: LEVELS, LABEL: (CORRECTION,), TAG: (), TAXONOMY: (EDIT,),
    }  # fmt: skip


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind is not MAP])
def test_every_kind_exports_what_a_filter_finds(fruit: Collection, kind: RunKind) -> None:
    write(fruit, kind, "r")
    cells = {
        f"{kind}:r": {"number": 1, "name": "baked", "member": True, "names": ["baked", "sweet"]},
        f"{kind}:r name": {"name": "baked"},
        f"{kind}:r path": {"path": "baked"},
        f"{kind}:r level 0": {"level": "baked"},
        f"{kind}:r probability": {"score": 0.9},
    }  # fmt: skip
    columns = (*kind.columns(f"{kind}:r", {}), *kind.further_columns(f"{kind}:r", {}, 1))
    expected = {column.name: cells[column.name][column.value] for column in columns}
    first, _, last = fruit.rows()
    assert {name: first[name] for name in expected} == expected
    assert [last[column.name] for column in columns] == [column.absent for column in columns]
    with fruit.stored.view() as view:
        docs = [view.document_number("0"), view.document_number("1")]
        assert RunColumns(view.catalog).types == {column.name: column.type for column in columns}
        assert {name: each.type for name, each in run_operands(view.catalog).items()} == {
            column.name: column.operand for column in columns
        }
        where = {
            "number": '"{}" IN (0, 1)', "name": "\"{}\" IN ('sweet', 'baked')", "member": '"{}" = TRUE',
            "names": "'sweet' IN \"{}\"",
        }  # fmt: skip
        where |= dict.fromkeys(("path", "level"), where["name"]) | {"score": '"{}" BETWEEN 0.5 AND 0.9'}
        for column in columns:
            assert documents_where(view.catalog, where[column.value].format(column.name)).tolist() == docs


def test_a_run_shows_its_kind_as_a_string(fruit: Collection, sonde: Command) -> None:
    write(fruit, CLUSTER, "r")
    [run] = fruit.runs(kind="cluster")
    assert run.kind == "cluster" and run.kind is CLUSTER
    assert fruit.runs(kind=CLUSTER) == [run] and fruit.runs(kind="topic") == []
    assert type(run.to_dict()["kind"]) is str
    assert list(run.to_dict())[:4] == ["kind", "name", "documents", "complete"]
    assert json.loads(sonde("runs", fruit.path, "--kind", "cluster", "--json").out)["kind"] == "cluster"


def test_a_seventh_kind_is_exported_filtered_by_drawn_and_listed(
    fruit: Collection, seventh: RunKind, sonde: Command
) -> None:
    write(fruit, seventh, "r")
    assert [(row["theme:r"], row["theme:r list"]) for row in fruit.rows()] == [
        (True, ["baked", "sweet"]), (True, ["sweet"]), (False, None),
    ]  # fmt: skip
    with fruit.stored.view() as view:
        first, second, third = (view.document_number(key) for key in "012")
        assert documents_where(view.catalog, '"theme:r"').tolist() == [first, second]
        assert documents_where(view.catalog, "'baked' IN \"theme:r list\"").tolist() == [first]
        assert [(each.name, each.type, each.choices) for each in facets(view)] == [
            ("theme:r", "boolean", ((True, 2), (False, 1)))
        ]
        assert choices(view.catalog) == ["theme:r"]
        assert coloring(view.catalog, np.array([first, second, third]), "theme:r")[0].names == ("baked", "sweet")
        run = find_run(view.catalog, seventh)
    assert sonde("runs", fruit.path).out == f"theme    r {'2 documents':>43}  {run.created[:16]}\n"
    assert json.loads(sonde("runs", fruit.path, "--kind", "theme", "--json").out)["kind"] == "theme"
    with pytest.raises(SondeError, match="the theme run 'r' has no theme 7"):
        rename_item(fruit.stored, run, 7, "x")
    with pytest.raises(
        UsageError,
        match="use cluster, topic, coarse, middle, fine, map, label, tag, correction, check, watch, taxonomy, edit or "
        "theme",
    ):
        fruit.runs("bogus")


def test_a_seventh_kind_with_places_is_exported_beside_the_map(
    fruit: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Globes(RunKind):
        __slots__ = ()
        name, item, items, heading = "globe", "region", "regions", "Globe"
        payload = "run_places"

        def columns(self, main: str, parameters: Mapping[str, Any]) -> tuple[Column, ...]:
            return Column("east", "place"), Column("north", "place")

    globe = Globes()
    monkeypatch.setattr(kinds, "KINDS", (*KINDS, globe))
    with fruit.stored.view() as view:
        taken = Snapshot.of(view)
    for kind, name, start in ((MAP, "old", 0.0), (MAP, "new", 10.0), (globe, "g", 20.0)):
        places = np.arange(start, start + 4).reshape(2, 2)
        write_run(fruit.stored, NewRun(kind, name, {}, places=(taken.docs[:2], places)), taken)
    names = ("x", "y", "east", "north")
    assert [tuple(row[name] for name in names) for row in fruit.rows()] == [
        (10.0, 11.0, 20.0, 21.0), (12.0, 13.0, 22.0, 23.0), (None,) * 4,
    ]  # fmt: skip
    assert [(run.kind, run.documents) for run in fruit.runs()] == [("map", 2), ("map", 2), ("globe", 2)]


def test_a_kind_that_is_not_known_is_named(fruit: Collection) -> None:
    write(fruit, CLUSTER, "r")
    with closing(sqlite3.connect(fruit.path / "catalog.db")) as connection:
        connection.execute("UPDATE runs SET kind = 'theme'")
        connection.commit()
    message = "this collection has a 'theme' run, which this version of Sonde cannot read"
    with fruit.stored.view() as view, pytest.raises(SondeError, match=message):
        list_runs(view.catalog)


def test_levels_are_parts_of_a_topic_run() -> None:
    assert LEVELS == (COARSE, MIDDLE, FINE) == followers(TOPIC)
    assert [kind for kind in KINDS if kind.part] == [*LEVELS, EDIT]
    for level in LEVELS:
        same = ("item", "items", "score", "payload", "numbered", "groups", "colors", "embedded", "update")
        assert [getattr(level, name) for name in same] == [getattr(TOPIC, name) for name in same]
