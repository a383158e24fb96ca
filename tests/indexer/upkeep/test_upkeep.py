"""Upkeep: every kind of damage is found, what can be derived is repaired, and what is exported comes back."""

import csv
import json
import math
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import date, datetime
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from command_line import contents, problems
from fake_encoder import DIMENSION, FakeEncoder
from kill_corpus import COUNT, documents
from thinned import thinned

from sonde.app.api import Collection
from sonde.indexer.ann import AnnSettings
from sonde.indexer.document import Document
from sonde.indexer.errors import SondeError, UsageError
from sonde.indexer.ingest import BuildSettings, index_documents
from sonde.indexer.store.export import write_export
from sonde.indexer.upkeep.delete import compact
from sonde.pipelines.search.settings import MODES

QUERIES = ("apple river cloud", "number 17 winter letter", "the same text again")


def opened(folder: Path) -> Collection:
    return Collection.open(folder, encoder=FakeEncoder())  # type: ignore[arg-type]


def found(folder: Path) -> list[list[tuple[str, float]]]:
    with closing(opened(folder)) as collection:
        return [
            sorted((hit.id, round(hit.score, 4)) for hit in collection.search(query, k=500, mode=mode))
            for query in QUERIES
            for mode in MODES
        ]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A collection of several segments with tombstones, long documents and an HNSW index."""
    folder = tmp_path_factory.mktemp("sound") / "c.sonde"
    settings = BuildSettings(batch=50, ann=AnnSettings(kind="hnsw"))
    index_documents(documents(), folder, settings=settings, encoder=FakeEncoder())  # type: ignore[arg-type]
    opened(folder).delete(["3", "14", "199"])
    assert problems(folder) == []
    return folder


@pytest.fixture(scope="module")
def expected(sound: Path) -> list[list[tuple[str, float]]]:
    """What is found in it."""
    return found(sound)


@pytest.fixture
def damaged(sound: Path, tmp_path: Path) -> Path:
    """A copy, to be damaged."""
    return Path(shutil.copytree(sound, tmp_path / "c.sonde"))


def flip(path: Path, place: float = 0.5) -> None:
    content = bytearray(path.read_bytes())
    content[int(len(content) * place)] ^= 0x10
    path.write_bytes(content)


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def only(folder: Path, pattern: str) -> Path:
    return max((path for path in folder.rglob(pattern) if path.is_file()), key=lambda path: path.stat().st_size)


def sql(folder: Path, statement: str) -> None:
    with closing(sqlite3.connect(folder / "catalog.db")) as connection:
        connection.execute(statement)
        connection.commit()


def other_vectors(folder: Path) -> None:
    """Every vector is another one, in a file that is whole."""
    path = folder / "vectors" / "000002.npy"
    np.save(path, np.load(path)[::-1])


DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "a byte of a segment": (
        lambda f: flip(f / "vectors" / "000002.npy"),
        "vectors: 000002.npy does not match its digest",
    ),
    "a segment's header": (lambda f: flip(f / "vectors" / "000001.npy", 0.001), "vectors: 000001.npy does not match"),
    "a segment cut short": (
        lambda f: truncate(f / "vectors" / "000003.npy"),
        "vectors: 000003.npy does not match its digest",
    ),
    "an empty segment": (lambda f: (f / "vectors" / "000001.npy").write_bytes(b""), "vectors: 000001.npy"),
    "a segment gone": (lambda f: (f / "vectors" / "000001.npy").unlink(), "vectors: 000001.npy is missing"),
    "all segments gone": (lambda f: shutil.rmtree(f / "vectors"), "vectors: 000001.npy is missing"),
    "vectors exchanged": (other_vectors, "vectors: 000002.npy does not match its digest"),
    "the FAISS index gone": (lambda f: shutil.rmtree(f / "ann"), "ann: the FAISS index is missing"),
    "a byte of the FAISS index": (lambda f: flip(only(f / "ann", "*.faiss")), "ann: "),
    "the FAISS index cut short": (lambda f: truncate(only(f / "ann", "*.faiss")), "ann: "),
    "the FAISS index's rows": (lambda f: flip(only(f / "ann", "*.npy")), "ann: "),
    "the FAISS index's description": (lambda f: only(f / "ann", "*.json").write_text("{}"), "ann: "),
    "the lexical index gone": (lambda f: shutil.rmtree(f / "lexical"), "lexical: the lexical index is missing"),
    "a byte of the lexical index": (lambda f: flip(only(f / "lexical", "*.idx")), "lexical: "),
    "the lexical index cut short": (lambda f: truncate(only(f / "lexical", "*.fast")), "lexical: "),
    "a file of the lexical index gone": (lambda f: only(f / "lexical", "*.term").unlink(), "lexical: "),
    "the lexical index's state": (lambda f: only(f / "lexical", "state.json").write_text(""), "lexical: "),
    "all passages of a document": (
        lambda f: sql(f, "DELETE FROM passages WHERE doc = (SELECT doc FROM documents WHERE key = '7')"),
        "passages: 1 document without passages",
    ),
    "one passage of a long document": (
        lambda f: sql(f, "DELETE FROM passages WHERE row = (SELECT max(row) FROM passages WHERE start > 0)"),
        "passages: 1 document with text that is in no passage",
    ),
    "passages of no document": (
        lambda f: sql(f, "UPDATE passages SET doc = 100000 WHERE row = 20"),
        "passages: 1 passage without a document",
    ),
    "a passage beyond the text": (
        lambda f: sql(f, "UPDATE passages SET end = end + 1000 WHERE row = 20"),
        "passages: 1 document with passages beyond the end of the text",
    ),
    "metadata of a document": (
        lambda f: sql(f, "DELETE FROM metadata WHERE doc = 9"),
        "catalog: 1 document without metadata",
    ),
    "metadata of no document": (
        lambda f: sql(f, "INSERT INTO metadata(doc) VALUES (100000)"),
        "passages: 1 metadata row without a document",
    ),
    "a passage of other offsets": (
        lambda f: sql(
            f, "UPDATE passages SET end = end - 3 WHERE row = (SELECT max(row) FROM passages WHERE start > 0)"
        ),
        "passages: 1 document with ",
    ),
    "a passage of another text": (
        lambda f: sql(f, "UPDATE passages SET digest = zeroblob(16) WHERE row = 20"),
        "passages: 1 document with passages of another text",
    ),
}
LOST = {"metadata of a document"}


@pytest.mark.parametrize("name", thinned([*DAMAGE]))
def test_damage_is_found_and_repaired(expected: list[list[tuple[str, float]]], damaged: Path, name: str) -> None:
    DAMAGE[name][0](damaged)
    told = problems(damaged)
    assert any(problem.startswith(DAMAGE[name][1]) for problem in told), told
    with closing(opened(damaged)) as collection:
        if name in LOST:
            with pytest.raises(SondeError, match="restore"):
                collection.repair()
            return
        assert collection.repair() != []
        assert collection.verify() == []
        assert collection.repair() == []
    assert found(damaged) == expected


@pytest.mark.parametrize("name", [name for name in DAMAGE if DAMAGE[name][1].startswith(("ann", "lexical", "vectors"))])
def test_damage_is_found_by_a_collection_that_is_open(damaged: Path, name: str) -> None:
    with closing(opened(damaged)) as collection:
        assert collection.verify() == []
        collection.search("apple", k=3)
        DAMAGE[name][0](damaged)
        assert any(f"{f.part}: {f.problem}".startswith(DAMAGE[name][1]) for f in collection.verify())


@pytest.mark.parametrize("name", [name for name in DAMAGE if DAMAGE[name][1].startswith(("ann", "lexical"))])
def test_searches_without_a_derived_index_say_so_or_scan(sound: Path, damaged: Path, name: str) -> None:
    DAMAGE[name][0](damaged)
    with closing(opened(damaged)) as collection, closing(opened(sound)) as whole:
        for query in QUERIES:
            dense = collection.search(query, k=20, mode="dense")
            assert [hit.id for hit in dense] == [hit.id for hit in whole.search(query, k=20, mode="dense")]
            if name.startswith("the lexical index gone"):
                assert collection.search(query, mode="lexical").notes == (
                    "the lexical index is missing: `sonde repair` rebuilds it",
                )
            collection.search(query)


def test_a_changed_text_is_found_and_not_repaired(damaged: Path) -> None:
    sql(damaged, "UPDATE documents SET text = 'forged' WHERE key = '7'")
    before = contents(damaged)
    assert problems(damaged)[0] == "catalog: 1 document with changed text"
    with pytest.raises(SondeError, match=r"restore .* from a backup"):
        opened(damaged).repair()
    assert contents(damaged) == before


def test_a_damaged_catalog_is_found_and_not_repaired(damaged: Path) -> None:
    sql(damaged, "PRAGMA wal_checkpoint(TRUNCATE)")
    content = bytearray((damaged / "catalog.db").read_bytes())
    for page in range(5, len(content) // 4096):
        content[page * 4096 : page * 4096 + 64] = os.urandom(64)
    (damaged / "catalog.db").write_bytes(content)
    with pytest.raises(SondeError, match=r"c.sonde is damaged: .* restore it from a backup"):
        opened(damaged)


def test_an_unnamed_segment_is_swept(damaged: Path) -> None:
    (damaged / "vectors" / "000099.npy").write_bytes(b"left by a killed writer")
    assert problems(damaged) == []
    assert opened(damaged).repair() == ["removed 000099.npy"]


def test_repair_embeds_only_what_was_lost(damaged: Path) -> None:
    flip(damaged / "vectors" / "000002.npy")
    encoder = FakeEncoder()
    rows = len(np.load(damaged / "vectors" / "000002.npy"))
    collection = Collection.open(damaged, encoder=encoder)  # type: ignore[arg-type]
    [done] = [line for line in collection.repair() if line.startswith("embedded")]
    assert done.endswith("passages of 000002.npy again")
    assert 0 < encoder.embedded <= rows


RECORDS: list[dict[str, object]] = [
    {"year": 1999, "price": 2.5, "fresh": True, "day": date(2024, 5, 6), "tags": ["a", "b"], "id": "own",
     "note": "x,\n\"y"},
    {"year": -3, "price": 1e300, "fresh": False, "day": datetime(2024, 5, 6, 7, 8, 9), "tags": [], "mixed": [1, "z"]},
    {"year": 2**62, "price": math.nan, "note": "", "vector": 3},
]  # fmt: skip


@pytest.fixture(scope="module")
def typed(tmp_path_factory: pytest.TempPathFactory) -> Collection:
    folder = tmp_path_factory.mktemp("typed") / "c.sonde"
    made = [
        Document(f"text {number}", f"title {number}" if number else "", key=f"k{number}", metadata=metadata)  # type: ignore[arg-type]
        for number, metadata in enumerate(RECORDS)
    ]
    index_documents(made, folder, encoder=FakeEncoder())  # type: ignore[arg-type]
    return opened(folder)


EXPECTED = [
    {"id": "k0", "title": "", "text": "text 0", "year": 1999, "price": 2.5, "fresh": True, "day": date(2024, 5, 6),
     "tags": ["a", "b"], "metadata.id": "own", "note": "x,\n\"y", "mixed": None, "metadata.vector": None},
    {"id": "k1", "title": "title 1", "text": "text 1", "year": -3, "price": 1e300, "fresh": False,
     "day": datetime(2024, 5, 6, 7, 8, 9), "tags": [], "metadata.id": None, "note": None, "mixed": [1, "z"],
     "metadata.vector": None},
    {"id": "k2", "title": "title 2", "text": "text 2", "year": 2**62, "price": None, "fresh": None, "day": None,
     "tags": None, "metadata.id": None, "note": "", "mixed": None, "metadata.vector": 3},
]  # fmt: skip


def test_rows_have_the_types_that_came_in(typed: Collection) -> None:
    assert list(typed.rows()) == EXPECTED


def unit_vectors() -> np.ndarray:
    texts = [f"{row['title']}\n{row['text']}".strip() for row in EXPECTED]
    return FakeEncoder().encode_texts(texts)


def test_vectors_are_those_of_the_texts(typed: Collection) -> None:
    vectors = np.array([row["vector"] for row in typed.rows(vectors=True)])
    assert vectors.dtype == np.float32 and vectors.shape == (3, DIMENSION)
    np.testing.assert_allclose(vectors, unit_vectors(), atol=1e-3)


def test_parquet_round_trip(typed: Collection, tmp_path: Path) -> None:
    assert write_export(typed.stored, tmp_path / "e.parquet", vectors=True) == 3
    table = pq.read_table(tmp_path / "e.parquet")
    names = ("year", "price", "fresh", "day", "tags", "mixed")
    assert {name: str(table.schema.field(name).type) for name in names} == {
        "year": "int64", "price": "double", "fresh": "bool", "day": "timestamp[us]", "tags": "list<element: string>",
        "mixed": "string",
    }  # fmt: skip
    back = table.to_pylist()
    np.testing.assert_allclose([row.pop("vector") for row in back], unit_vectors(), atol=1e-3)
    expected = [row | {"mixed": row["mixed"] and '[1, "z"]'} for row in EXPECTED]
    expected[0]["day"] = datetime(2024, 5, 6)
    assert back == expected


def test_csv_round_trip(typed: Collection, tmp_path: Path) -> None:
    assert write_export(typed.stored, tmp_path / "e.csv", vectors=True) == 3
    with (tmp_path / "e.csv").open(newline="", encoding="utf-8") as stream:
        back = list(csv.DictReader(stream))
    assert [row["id"] for row in back] == ["k0", "k1", "k2"]
    assert back[0]["note"] == 'x,\n"y' and back[0]["metadata.id"] == "own" and back[0]["day"] == "2024-05-06"
    assert json.loads(back[0]["tags"]) == ["a", "b"] and back[1]["day"] == "2024-05-06T07:08:09"
    np.testing.assert_allclose([json.loads(row["vector"]) for row in back], unit_vectors(), atol=1e-3)


def test_jsonl_round_trip_into_a_new_collection(typed: Collection, tmp_path: Path) -> None:
    from sonde.app.api import index

    assert write_export(typed.stored, tmp_path / "e.jsonl") == 3
    lines = [json.loads(line) for line in (tmp_path / "e.jsonl").read_text().splitlines()]
    assert lines == [json.loads(json.dumps(row, default=lambda day: day.isoformat())) for row in EXPECTED]
    columns: dict[str, str] = {"text": "text", "title": "title", "id": "id"}
    again = index(tmp_path / "e.jsonl", tmp_path / "again.sonde", **columns, encoder=FakeEncoder())  # type: ignore[arg-type]
    for row, expected in zip(again.rows(), EXPECTED, strict=True):
        assert {name: row.get(name) for name in ("id", "title", "text", "year", "price", "fresh", "tags")} == {
            name: expected[name] for name in ("id", "title", "text", "year", "price", "fresh", "tags")
        }


def test_export_refuses_what_it_cannot_write(typed: Collection, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"'e.xls': the name must end in .xlsx, .csv, .parquet, .jsonl or .ris"):
        write_export(typed.stored, tmp_path / "e.xls")
    with pytest.raises(SondeError, match=r"the folder .* does not exist"):
        write_export(typed.stored, tmp_path / "no" / "e.csv")
    assert list(tmp_path.iterdir()) == []


def test_pandas(typed: Collection) -> None:
    frame = typed.to_pandas(vectors=True)
    assert frame.columns.tolist() == [*EXPECTED[0], "vector"]
    assert frame["id"].tolist() == ["k0", "k1", "k2"]
    assert frame["year"].tolist() == [1999, -3, 2**62]
    assert frame["fresh"].tolist()[:2] == [True, False]
    assert frame["tags"].tolist()[:2] == [["a", "b"], []]


def test_pandas_of_an_empty_collection(tmp_path: Path) -> None:
    index_documents([Document("a", key="1")], tmp_path / "c.sonde", encoder=FakeEncoder())  # type: ignore[arg-type]
    collection = opened(tmp_path / "c.sonde")
    assert collection.delete(["1"]) == 1
    assert (len(collection), collection.to_pandas().columns.tolist()) == (0, ["id", "title", "text"])
    assert [len(collection.search("a", mode=mode)) for mode in MODES] == [0, 0, 0]
    assert collection.verify() == [] and collection.compact().removed == 1
    assert collection.verify() == [] and collection.repair() == []
    assert [len(collection.search("a", mode=mode)) for mode in MODES] == [0, 0, 0]
    assert write_export(collection.stored, tmp_path / "e.parquet", vectors=True) == 0


def test_info(sound: Path) -> None:
    info = opened(sound).info()
    with closing(sqlite3.connect(sound / "catalog.db")) as connection:
        passages, dead = connection.execute("SELECT sum(doc IS NOT NULL), sum(doc IS NULL) FROM passages").fetchone()
    assert (info.documents, info.passages, info.tombstones) == (COUNT - 3, passages, dead)
    assert dead > 0 and info.newer == 0
    assert (info.model, info.dimension, info.fields) == ("fake", DIMENSION, {"year": "integer"})
    assert info.ann is not None and info.ann["kind"] == "hnsw" and info.ann["recall"] >= 0.98
    assert info.lexical == passages
    assert info.bytes["vectors"] == sum(path.stat().st_size for path in (sound / "vectors").iterdir())


def test_compact_counts(sound: Path, damaged: Path) -> None:
    before = opened(damaged).info()
    report = compact(damaged)
    after = opened(damaged).info()
    assert (report.removed, report.segments) == (before.tombstones, 1) and report.segments_before == 4
    assert (after.passages, after.tombstones, after.documents) == (before.passages, 0, before.documents)
    assert report.bytes == after.bytes["vectors"] < report.bytes_before == before.bytes["vectors"]
    assert after.ann is not None and after.ann["kind"] == "hnsw"
    assert problems(damaged) == []
    assert found(damaged) == found(sound)
    again = compact(damaged)
    assert (again.removed, again.segments_before, again.segments) == (0, 1, 1)
    assert opened(damaged).info().generation == after.generation


def test_delete(damaged: Path) -> None:
    collection = opened(damaged)
    with pytest.raises(SondeError, match="no document with the id 'no'"):
        collection.delete(["5", "no"])
    assert len(collection) == COUNT - 3
    assert collection.delete(["5", "5"]) == 1
    with pytest.raises(UsageError, match="give ids or where, not both"):  # "6" and all of 2019 were deleted
        collection.delete(["6"], where="year = 2019")
    assert collection.delete(where="year = 2019") == sum(n % 20 == 19 for n in range(COUNT) if n != 199)
    assert all(hit.metadata["year"] != 2019 for hit in collection.search("apple", k=COUNT))
    assert problems(damaged) == []


def test_what_was_asked_of_the_faiss_index_stays_until_something_else_is_asked(tmp_path: Path) -> None:
    folder = tmp_path / "c.sonde"

    def index_with(**asked: object) -> tuple[str, float]:
        settings = BuildSettings(ann=AnnSettings(**asked))  # type: ignore[arg-type]
        index_documents(documents(), folder, settings=settings, encoder=FakeEncoder())  # type: ignore[arg-type]
        with closing(opened(folder)) as collection:
            found = collection.info().ann
            assert found
            return found["kind"], found["target"]

    assert index_with() == ("exact", 0.98)
    assert index_with(kind="hnsw", target_recall=0.9) == ("hnsw", 0.9)
    assert index_with() == ("hnsw", 0.9)
    assert index_with(target_recall=0.98) == ("hnsw", 0.98)
    assert index_with(kind="auto", target_recall=1.0) == ("exact", 1.0)
