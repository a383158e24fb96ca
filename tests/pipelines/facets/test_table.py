"""The table of a collection: its columns beside what the catalog says of each document, how it is packed and kept."""

import json
import math
import struct
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_encoder import FakeEncoder
from linked import linked, rows

from sonde.app.api import Collection, index
from sonde.indexer.errors import SondeError
from sonde.indexer.store.kinds import COARSE, FINE, TOPIC
from sonde.indexer.store.run_writing import NewRun, Snapshot, write_run
from sonde.indexer.store.runs import Item
from sonde.pipelines.facets import Facets, stored
from sonde.pipelines.facets.table import pack_arrays, unpack_arrays


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Collection:
    return linked(tmp_path_factory.mktemp("linked") / "shop.sonde")


def values(table: Facets, name: str) -> list[Any]:
    """Return a column as names or numbers, None for none."""
    column = next(each for each in table.columns if each.name == name)
    if column.kind == "class":
        return [column.names[code] if code >= 0 else None for code in column.values.tolist()]
    return [None if math.isnan(number) else number for number in column.values.tolist()]


def days(moment: date | datetime) -> float:
    if isinstance(moment, datetime):
        return (moment - datetime(1970, 1, 1)).total_seconds() / 86_400
    return (moment - date(1970, 1, 1)).days


def test_columns_are_what_the_documents_have(shop: Collection) -> None:
    table = shop.table()
    documents = {each.doc: each for each in shop.numbered(table.docs.tolist())}
    assert [documents[doc].id for doc in table.docs.tolist()] == [row["id"] for row in rows()]
    given = [documents[doc].metadata for doc in table.docs.tolist()]
    assert values(table, "stars") == [each.get("stars") for each in given]
    assert values(table, "price") == [
        price if (price := each.get("price", math.inf)) < math.inf else None  # type: ignore[operator]
        for each in given
    ]
    assert values(table, "shop") == [each.get("shop") for each in given]
    assert values(table, "day") == [days(each["day"]) for each in given]  # type: ignore[arg-type]
    assert values(table, "open") == [str(each["open"]).lower() for each in given]
    assert values(table, "parts") == [(each["parts"] or [None])[0] for each in given]  # type: ignore[index]


def test_runs_are_columns_the_newest_first(shop: Collection) -> None:
    table = shop.table()
    described = [(column.name, column.title, column.kind) for column in table.columns]
    assert described == [
        ("tag:few", "Tags: few", "class"),
        ("label:kinds", "Labels: kinds", "class"),
        ("cluster:four", "Clusters: four", "class"),
        *((name, name, kind) for name, kind in [("day", "date"), ("open", "class"), ("parts", "class")]),
        *((name, name, kind) for name, kind in [("stars", "number"), ("price", "number"), ("shop", "class")]),
    ]
    assert values(table, "cluster:four")[:4] == ["parcels", "batteries", "2 screens", "3 screens"]
    assert values(table, "label:kinds")[:4] == ["broken", None, "late", None], "of two labels the likelier counts"
    tagged = [row.get("stars", 9) <= 2 for row in rows()]
    assert values(table, "tag:few") == ["tagged" if each else None for each in tagged]
    shops = next(column for column in table.columns if column.name == "shop")
    assert dict(zip(shops.names, shops.counts, strict=True)) == {"north": 16, "south": 16, "none": 16}
    assert shops.names == ("none", "north", "south"), "the most frequent first, then by name"


def test_a_level_names_the_run_that_has_the_same_groups(tmp_path: Path) -> None:
    encoder: Any = FakeEncoder()
    made = index(rows(), tmp_path / "leveled.sonde", id="id", title="title", text="text", encoder=encoder)
    with made.stored.view() as view:
        snapshot = Snapshot.of(view)
    count = len(snapshot.docs)
    for kind, groups in ((TOPIC, 2), (COARSE, 2), (FINE, 4)):
        items = [Item(number, f"group {number}", {}) for number in range(groups)]
        found = (snapshot.docs, np.arange(count) % groups, np.ones(count))
        write_run(made.stored, NewRun(kind, "t", {}, items=items, assignments=found), snapshot)
    told = {column.name: (column.part, column.same) for column in made.table().columns}
    assert list(told)[:3] == ["topic:t", "coarse:t", "fine:t"], "a run, then its levels, the coarsest first"
    assert told["topic:t"] == (False, "")
    assert told["coarse:t"] == (True, "topic:t")
    assert told["fine:t"] == (True, "")


def test_places_are_those_of_the_chosen_map(shop: Collection) -> None:
    table, other = shop.table(), shop.table("first")
    assert (table.map, other.map) == ("second", "first")
    found = shop.map_run("second")
    assert np.isnan(table.places[:3]).all()
    assert table.docs[3:].tolist() == found.docs.tolist()
    assert table.places[3:].tolist() == found.places.astype(np.float32).tolist()
    assert table.bounds == (*table.places[3:].min(axis=0).tolist(), *table.places[3:].max(axis=0).tolist())
    assert [(each.level, each.name, each.size) for each in table.regions] == [(1, "all sorts", 60), (2, "left", 30)]
    with pytest.raises(SondeError, match="there is no map run 'third' in this collection: there are first, second"):
        shop.table("third")


def test_a_collection_without_runs_or_documents_has_a_table(tmp_path: Path) -> None:
    encoder: Any = FakeEncoder()
    bare = index([{"id": "1", "text": "one"}], tmp_path / "bare.sonde", id="id", encoder=encoder)
    table = bare.table()
    assert (len(table), table.map, table.columns, table.regions) == (1, None, [], ())
    assert (np.isnan(table.places).all(), table.bounds) == (True, (0.0, 0.0, 1.0, 1.0))
    bare.delete("1")
    assert (len(bare.table()), bare.select({"parts": []}).tolist()) == (0, [])


def test_many_values_are_cut_and_texts_of_their_own_are_no_column(tmp_path: Path) -> None:
    given = [{"id": str(n), "text": f"text {n}", "key": f"k{n}", "city": f"c{n % 300:03}"} for n in range(601)]
    encoder: Any = FakeEncoder()
    table = index(given, tmp_path / "many.sonde", id="id", text="text", encoder=encoder).table()
    (city,) = table.columns
    assert (city.name, len(city.names), city.cut) == ("city", 256, True)
    assert city.names[:3] == ("c000", "c001", "c002"), "c000 is the most frequent"
    assert city.names[-1] == "other"
    assert city.counts == [3, *[2] * 254, 2 * 45]
    assert city.colors("light")[-1] == "#c8c8c8"
    assert len({*city.colors("dark")}) > 200


def test_the_buffer_is_what_the_contract_says(shop: Collection) -> None:
    table = shop.table()
    packed = table.pack({"mark": "</script>"})
    (length,) = struct.unpack_from("<I", packed)
    header = json.loads(packed[4 : 4 + length])
    assert (header["version"], header["rows"], header["collection"], header["map"]) == (1, 60, "shop", "second")
    assert (header["mark"], header["bounds"]) == ("</script>", list(table.bounds))
    assert header["regions"][0] == {"x": 0.0, "y": 0.0, "name": "all sorts", "level": 1, "size": 60}
    by_name = {each["name"]: each for each in header["columns"]}
    assert by_name["stars"] == {
        "name": "stars", "title": "stars", "kind": "number", "array": "c6", "low": 1.0, "high": 5.0,
    }  # fmt: skip
    assert by_name["tag:few"]["colors"] == {"light": ["#1f77b4"], "dark": ["#4c9fd8"]}
    assert by_name["tag:few"]["names"] == ["tagged"]
    assert all(each["offset"] % 8 == 0 for each in header["arrays"])
    _, arrays = unpack_arrays(packed)
    assert list(arrays) == ["x", "y", *(f"c{number}" for number in range(9))]
    assert (arrays["x"].dtype, arrays["c0"].dtype, arrays["c6"].dtype) == ("float32", "int32", "float64")
    for number, column in enumerate(table.columns):
        np.testing.assert_array_equal(arrays[f"c{number}"], column.values)
    np.testing.assert_array_equal(np.stack([arrays["x"], arrays["y"]], 1), table.places)


@pytest.mark.parametrize("rows", [0, 1, 7, 9_999, 100_000])
def test_any_length_of_header_is_packed(rows: int) -> None:
    given = {"a": np.arange(rows, dtype=np.int32), "b": np.arange(rows, dtype=np.uint8)}
    header, arrays = unpack_arrays(pack_arrays({"say": "é" * (rows % 11)}, given))
    assert header["say"] == "é" * (rows % 11)
    assert all((arrays[name] == given[name]).all() for name in given)
    with pytest.raises(TypeError, match="the array a is int64: use float32"):
        pack_arrays({}, {"a": np.arange(3)})


def test_each_part_is_computed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shop = linked(tmp_path / "shop.sonde", 20)
    made: list[str] = []
    run, field = stored.run_column, stored.field_column
    monkeypatch.setattr(stored, "run_column", lambda *given: (made.append(given[-1]), run(*given))[1])
    monkeypatch.setattr(stored, "field_column", lambda *given: (made.append(given[-1]), field(*given))[1])

    def after() -> list[str]:
        shop.table()
        found = made[:]
        made.clear()
        return found

    first = shop.table()
    assert len(made) == 9
    made.clear()
    assert after() == []
    assert shop.table().stamp == first.stamp
    shop.tag("few", where="stars = 5", change="add")
    assert after() == ["tag:few"], "only what changed is read again"
    assert shop.table().stamp != first.stamp
    shop.tag("new", where="stars = 5")
    assert after() == ["tag:new"]
    shop.rename_run("four", "parcels and more", item=0)
    assert after() == ["cluster:four"]
    assert "parcels and more" in values(shop.table(), "cluster:four")
    shop.delete_run("new")
    assert [column.name for column in shop.table().columns][:2] == ["tag:few", "label:kinds"]
    made.clear()
    shop.delete("d0")
    assert len(after()) == 9
    assert len(shop.table()) == 19
