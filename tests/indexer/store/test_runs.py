"""Runs in the catalog: written whole, found by name, forgotten with their documents, and exported as columns."""

import csv
import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from fake_encoder import FakeEncoder

from sonde.app.api import Collection, index
from sonde.indexer.errors import SondeError, UsageError
from sonde.indexer.store import runs, schema
from sonde.indexer.store.kinds import CLUSTER, LABEL, MAP, TAG
from sonde.indexer.store.run_writing import NewRun, Snapshot, delete_run, rename_item, rename_run, write_run
from sonde.indexer.store.runs import (
    Item,
    RunColumns,
    array_of,
    assignments_of,
    find_run,
    items_of,
    list_runs,
    places_of,
)
from sonde.indexer.store.view import document_vectors
from sonde.pipelines.search.facets import facets
from sonde.pipelines.search.filters import documents_where

TEXTS = ["apple pie", "apple cake", "car fuel", "car tyre"]


@pytest.fixture
def fruit(tmp_path: Path) -> Collection:
    rows = [{"id": str(n), "text": text, "x": n} for n, text in enumerate(TEXTS)]
    return index(rows, tmp_path / "fruit.sonde", id="id", encoder=FakeEncoder())  # type: ignore[arg-type]


def snapshot(collection: Collection) -> Snapshot:
    with collection.stored.view() as view:
        return Snapshot.of(view)


def clusters(taken: Snapshot, name: str = "two", **more: object) -> NewRun:
    return NewRun(
        CLUSTER,
        name,
        {"k": 2, "seed": 0},
        libraries=["numpy"],
        report={"silhouette": 0.5},
        items=[Item(0, "food", {"size": 2}), Item(1, "cars", {"size": 2})],
        assignments=(taken.docs, np.array([0, 0, 1, 1]), np.array([0.9, 0.8, 0.7, np.nan])),
        arrays={"centroids": np.eye(2, dtype=np.float32)},
        **more,  # type: ignore[arg-type]
    )


def write(collection: Collection, new: NewRun, replace: bool = False) -> int:
    return write_run(collection.stored, new, snapshot(collection), replace=replace)


def test_a_run_comes_back_as_it_was_written(fruit: Collection) -> None:
    taken = snapshot(fruit)
    assert write_run(fruit.stored, clusters(taken), taken) == 0
    with fruit.stored.view() as view:
        run = find_run(view.catalog, CLUSTER)
        assert (run.name, run.documents, run.complete) == ("two", 4, True)
        assert run.parameters == {"k": 2, "seed": 0}
        assert run.report == {"silhouette": 0.5}
        assert run.versions.keys() == {"sonde", "numpy"}
        assert items_of(view.catalog, run) == clusters(taken).items
        docs, items, scores = assignments_of(view.catalog, run)
        assert docs.tolist() == taken.docs.tolist()
        assert items.tolist() == [0, 0, 1, 1]
        np.testing.assert_array_equal(scores, [0.9, 0.8, 0.7, np.nan])
        np.testing.assert_array_equal(array_of(view.catalog, run, "centroids"), np.eye(2))
        with pytest.raises(SondeError, match="the cluster run 'two' has no stored tree: create the run again"):
            array_of(view.catalog, run, "tree")
    assert json.dumps(run.to_dict())


@pytest.mark.parametrize("data", [b"", b"nonsense", b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'shape': (9**99,)}"])
def test_an_array_that_is_none_is_one_line(fruit: Collection, data: bytes) -> None:
    write(fruit, clusters(snapshot(fruit)))
    with closing(sqlite3.connect(fruit.path / "catalog.db")) as connection, connection:
        connection.execute("UPDATE run_arrays SET data = ?", (data,))
    with fruit.stored.view() as view:
        run = find_run(view.catalog, CLUSTER)
        with pytest.raises(SondeError, match=r"the stored centroids of .* are damaged \(.*\): create the run again"):
            array_of(view.catalog, run, "centroids")


def test_a_taken_name_is_refused_unless_it_is_to_be_replaced(fruit: Collection) -> None:
    write(fruit, clusters(snapshot(fruit)))
    with pytest.raises(UsageError, match="the cluster run 'two' already exists: choose another name, or replace it"):
        write(fruit, clusters(snapshot(fruit)))
    write(fruit, clusters(snapshot(fruit)), replace=True)
    with fruit.stored.view() as view:
        assert [run.name for run in list_runs(view.catalog)] == ["two"]


@pytest.mark.parametrize("name", ["", " ", "a\nb", " two"])
def test_a_name_must_be_one(fruit: Collection, name: str) -> None:
    with pytest.raises(UsageError, match="is not a valid run name"):
        write(fruit, clusters(snapshot(fruit), name))


@pytest.mark.parametrize("name", ["7", "2025", "-1"])
def test_a_name_is_not_a_number(fruit: Collection, name: str) -> None:
    said = f"the name '{name}' would be read as the number of a group: add a word, such as 'cluster {name}'"
    with pytest.raises(UsageError, match=said):
        write(fruit, clusters(snapshot(fruit), name))
    write(fruit, clusters(snapshot(fruit)))
    with pytest.raises(UsageError, match=said):
        rename_run(fruit.stored, CLUSTER, "two", name)
    with pytest.raises(UsageError, match=f"such as 'tag {name}'"):
        fruit.tag(name, ids=["1"])


def test_an_incomplete_run_is_replaced_without_asking_and_not_found_by_default(fruit: Collection) -> None:
    write(fruit, clusters(snapshot(fruit), complete=False))
    with (
        fruit.stored.view() as view,
        pytest.raises(SondeError, match="no cluster run in this collection: there is only two"),
    ):
        find_run(view.catalog, CLUSTER)
    write(fruit, clusters(snapshot(fruit)))
    with fruit.stored.view() as view:
        assert find_run(view.catalog, CLUSTER).complete


def test_runs_are_renamed_and_deleted(fruit: Collection) -> None:
    for name in ("one", "two"):
        write(fruit, clusters(snapshot(fruit), name))
    rename_run(fruit.stored, CLUSTER, "one", "first")
    with pytest.raises(UsageError, match="the cluster run 'first' already exists"):
        rename_run(fruit.stored, CLUSTER, "two", "first")
    delete_run(fruit.stored, CLUSTER, "two")
    with pytest.raises(SondeError, match="there is no cluster run 'two' in this collection: there is only first"):
        delete_run(fruit.stored, CLUSTER, "two")
    with fruit.stored.view() as view:
        [run] = list_runs(view.catalog)
        assert run.name == "first"
        tables = [view.catalog.connection.execute(f"SELECT count(*) FROM {t}").fetchone()[0] for t in
                  ("run_items", "run_documents", "run_arrays")]  # fmt: skip
    assert tables == [2, 4, 1]
    rename_item(fruit.stored, run, 1, "vehicles")
    with pytest.raises(SondeError, match="the cluster run 'first' has no cluster 7"):
        rename_item(fruit.stored, run, 7, "x")
    with fruit.stored.view() as view:
        assert [item.name for item in items_of(view.catalog, run)] == ["food", "vehicles"]


def test_what_a_run_says_goes_with_the_document_or_its_text(fruit: Collection) -> None:
    taken = snapshot(fruit)
    write_run(fruit.stored, clusters(taken), taken)
    write_run(fruit.stored, NewRun(MAP, "m", {}, places=(taken.docs, np.arange(8.0).reshape(4, 2))), taken)
    fruit.delete(["0"])
    changed = [{"id": "1", "text": "apple cake", "x": 9}, {"id": "2", "text": "another text", "x": 2}]
    index(changed, fruit.path, id="id", encoder=FakeEncoder())  # type: ignore[arg-type]
    with fruit.stored.view() as view:
        left = [view.document_number(key) for key in ("1", "3")]
        assert assignments_of(view.catalog, find_run(view.catalog, CLUSTER))[0].tolist() == left
        docs, places = places_of(view.catalog, find_run(view.catalog, MAP))
        assert (docs.tolist(), places.tolist()) == (left, [[2.0, 3.0], [6.0, 7.0]])


def test_documents_that_change_while_a_run_is_computed_are_left_out(fruit: Collection) -> None:
    taken = snapshot(fruit)
    fruit.delete(["3"])
    index([{"id": "9", "text": "new"}, {"id": "0", "text": "changed"}], fruit.path, id="id", encoder=FakeEncoder())  # type: ignore[arg-type]
    assert write_run(fruit.stored, clusters(taken), taken) == 2
    with fruit.stored.view() as view:
        docs = assignments_of(view.catalog, find_run(view.catalog, CLUSTER))[0]
        assert docs.tolist() == [view.document_number("1"), view.document_number("2")]


def test_documents_are_counted_only_for_the_run_that_is_wanted(
    fruit: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each count reads all of what a run says of documents."""
    taken = snapshot(fruit)
    for name in ("one", "two", "three"):
        write_run(fruit.stored, clusters(taken, name), taken)
    counted, real = list[int](), runs._documents  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(runs, "_documents", lambda c, number, kind: counted.append(number) or real(c, number, kind))
    with fruit.stored.view() as view:
        found = find_run(view.catalog, CLUSTER, "two")
        with pytest.raises(SondeError, match=r"^there is no cluster run 'four' in this collection: there are one, two"):
            find_run(view.catalog, CLUSTER, "four")
    assert (found.documents, counted) == (4, [found.number])
    with pytest.raises(UsageError, match=r"^the cluster run 'two' already exists"):
        write_run(fruit.stored, clusters(taken), taken)
    write_run(fruit.stored, clusters(taken), taken, replace=True)
    assert len(counted) == 1


def test_runs_outlive_compact(fruit: Collection) -> None:
    taken = snapshot(fruit)
    write_run(fruit.stored, clusters(taken), taken)
    fruit.delete(["0"])
    assert fruit.compact().removed == 1
    with fruit.stored.view() as view:
        assert assignments_of(view.catalog, find_run(view.catalog, CLUSTER))[0].tolist() == taken.docs[1:].tolist()


def test_export_has_a_column_for_every_run(fruit: Collection, tmp_path: Path) -> None:
    taken = snapshot(fruit)
    write_run(fruit.stored, clusters(taken), taken)
    labels = [Item(0, "sweet", {}), Item(1, "fast", {})]
    several = (np.array([1, 1, 2]), np.array([0, 1, 1]), np.array([0.2, 0.9, 0.5]))
    write_run(fruit.stored, NewRun(LABEL, "many", {"multi_label": True}, items=labels, assignments=several), taken)
    one = (np.array([2]), np.array([1]), np.array([0.5]))
    write_run(fruit.stored, NewRun(LABEL, "one", {}, items=labels, assignments=one), taken)
    write_run(fruit.stored, NewRun(MAP, "m", {}, places=(taken.docs[:1], np.array([[0.5, 1.5]]))), taken)
    first = {"id": "0", "title": "", "text": "apple pie", "metadata.x": 0, "cluster:two": 0, "cluster:two name": "food",
             "label:many": ["fast", "sweet"], "label:many probability": 0.9, "label:one": None,
             "label:one probability": None, "x": 0.5, "y": 1.5}  # fmt: skip
    assert next(iter(fruit.rows())) == first
    exporting = [tmp_path / f"out{suffix}" for suffix in (".parquet", ".csv", ".jsonl")]
    from sonde.indexer.store.export import write_export as export

    for path in exporting:
        assert export(fruit.stored, path) == 4
    table = pq.read_table(exporting[0])
    assert table.to_pylist()[0] == first
    assert table.column("label:many").to_pylist() == [["fast", "sweet"], ["fast"], None, None]
    with exporting[1].open(newline="") as stream:
        assert [row["cluster:two name"] for row in csv.DictReader(stream)] == ["food", "food", "cars", "cars"]
    assert json.loads(exporting[2].read_text().splitlines()[2])["label:one"] is None


def test_a_collection_of_the_first_format_is_upgraded_when_it_is_opened(fruit: Collection) -> None:
    fruit.close()
    with closing(sqlite3.connect(fruit.path / "catalog.db")) as connection:
        for table in ("runs", "run_items", "run_documents", "run_places", "run_arrays"):
            connection.execute(f"DROP TABLE {table}")
        connection.execute("DROP TABLE checksums")
        connection.execute("ALTER TABLE metadata DROP COLUMN checksum")
        connection.execute("PRAGMA user_version = 1")
    reopened = Collection.open(fruit.path, encoder=FakeEncoder())  # type: ignore[arg-type]
    assert reopened.stored.open_catalog().connection.execute("PRAGMA user_version").fetchone()[0] == schema.FORMAT == 3
    assert list_runs(reopened.stored.open_catalog()) == []
    assert len(reopened) == 4
    assert reopened.verify() == []


def test_document_vectors_are_the_means_of_the_passages(tmp_path: Path) -> None:
    rows = [
        {"id": str(n), "text": " ".join(f"Word{n} number {m} here." for m in range(1 + 30 * (n % 3)))}
        for n in range(60)
    ]
    collection = index(rows, tmp_path / "long.sonde", id="id", encoder=FakeEncoder())  # type: ignore[arg-type]
    collection.delete(["7"])
    with collection.stored.view() as view:
        docs = Snapshot.of(view).docs
        naive = [view.generation.segments.read(np.array(view.rows_of(doc))).mean(axis=0) for doc in docs.tolist()]
        naive = [mean / np.linalg.norm(mean) for mean in naive]
        assert max(len(view.rows_of(doc)) for doc in docs.tolist()) > 3
        for some in (docs, docs[::-1], docs[5:7]):
            places = np.searchsorted(docs, some)
            np.testing.assert_allclose(document_vectors(view, some), np.array(naive)[places], atol=1e-6)


@pytest.mark.parametrize(
    ("first", "second", "free"), [("two", "two name", "two 2"), ("two name", "two", "two 2"), ("a name", "a", "a 2")]
)
def test_a_run_cannot_share_a_column_with_another(fruit: Collection, first: str, second: str, free: str) -> None:
    taken = snapshot(fruit)
    write(fruit, clusters(taken, first))
    message = f"a cluster run '{second}' would share the column 'cluster:{max(first, second, key=len)}' "
    with pytest.raises(UsageError, match=re.escape(f"{message}with the run '{first}': name it '{free}'")):
        write(fruit, clusters(taken, second))
    write(fruit, clusters(taken, "other"))
    with pytest.raises(UsageError, match=re.escape(message)):
        rename_run(fruit.stored, CLUSTER, "other", second)
    rename_run(fruit.stored, CLUSTER, first, second)  # no run is left that it could clash with
    for kind in (LABEL, TAG):  # these have one column
        assigned = (taken.docs, np.zeros(4), np.zeros(4))
        write(fruit, NewRun(kind, f"{second} name", {}, items=[Item(0, "a", {})], assignments=assigned))


def test_older_runs_with_a_common_column_lose_nothing(fruit: Collection) -> None:
    taken = snapshot(fruit)
    for name in ("two", "other"):
        write(fruit, clusters(taken, name))
    with closing(sqlite3.connect(fruit.path / "catalog.db")) as connection:
        connection.execute("UPDATE runs SET name = 'two name' WHERE name = 'other'")
        connection.execute("UPDATE run_items SET name = upper(name) WHERE run = 2")
        connection.commit()
    first = next(fruit.rows())
    assert {name: value for name, value in first.items() if ":" in name} == {
        "cluster:two": 0, "cluster:two name": "food",
        "cluster:two name (2)": 0, "cluster:two name (2) name": "FOOD",
    }  # fmt: skip
    with fruit.stored.view() as view:
        assert documents_where(view.catalog, "\"cluster:two name\" = 'cars'").tolist() == taken.docs[2:].tolist()
        assert documents_where(view.catalog, '"cluster:two name (2)" = 0').tolist() == taken.docs[:2].tolist()
        assert RunColumns(view.catalog).notes == [
            "the cluster run 'two name' has the column 'cluster:two name (2)': rename the run to change that"
        ]
        assert [facet.name for facet in facets(view) if facet.run] == ["cluster:two name (2) name", "cluster:two name"]
    write(fruit, clusters(taken, "two name"), replace=True)
    assert next(fruit.rows())["cluster:two name"] == "food"
