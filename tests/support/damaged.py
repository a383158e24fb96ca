"""Collections damaged in every way that bytes and SQL allow, and everything that a user may do with one."""

import io
import json
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from datetime import date
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any

import numpy as np
from fake_encoder import FakeEncoder
from other_encoder import loaded

from sonde.app.api.collection import Collection, index
from sonde.indexer.ann import AnnSettings
from sonde.indexer.document import Document
from sonde.indexer.errors import SondeError
from sonde.indexer.ingest import BuildSettings, index_documents
from sonde.indexer.store.kinds import CORRECTION, LABEL, MAP, TAG
from sonde.indexer.store.run_writing import NewRun, Snapshot, write_run
from sonde.indexer.store.runs import Item
from sonde.indexer.upkeep.delete import delete_chosen, numbers_of

WORDS = ["apple", "river", "cloud", "winter", "letter", "music"]


def documents(count: int = 24) -> list[Document]:
    """Documents with metadata of every type; the ids are a word and a number."""
    return [
        Document(
            f"{WORDS[number % 6]} {WORDS[number % 4]} number {number}",
            title=WORDS[number % 6].title(),
            key=f"{WORDS[number % 6]}{number}",
            language="en" if number % 2 else None,
            metadata={
                "stars": number, "price": number / 4, "sold": number % 3 == 0, "day": date(2020, 1, 1 + number % 28),
                "tags": [WORDS[number % 6], "all"], "note": None if number % 2 else f"note {number}",
            },
        )
        for number in range(count)
    ]  # fmt: skip


def add_runs(folder: Path) -> None:
    """Add a run of every kind but topics to a collection."""
    with closing(opened(folder)) as collection:
        collection.cluster("k", k=3)
    stored = opened(folder).stored
    with stored.view() as view:
        snapshot = Snapshot.of(view)
    docs = snapshot.docs
    items, scores = np.arange(len(docs)) % 3, np.linspace(0, 1, len(docs), dtype=np.float32)
    named = [Item(number, f"item {number}", {"size": 8, "terms": [["apple", 0.5]]}) for number in range(3)]
    few = (docs[:3], items[:3] * 0, scores[:3])
    for new in (
        NewRun(LABEL, "l", {}, items=named, assignments=(docs, items, scores * np.nan)),
        NewRun(TAG, "t", {}, items=named[:1], assignments=few),
        NewRun(MAP, "m", {}, places=(docs, np.stack([scores, -scores], axis=1))),
        NewRun(CORRECTION, "l", {}, items=named[:1], assignments=few),
    ):
        write_run(stored, new, snapshot)


def sound_collection(folder: Path, count: int = 24) -> Path:
    """Make a collection with metadata of all types, tombstones, an HNSW index, and runs that lost documents."""
    settings = BuildSettings(batch=max(5, count // 4), ann=AnnSettings(kind="hnsw"))
    index_documents(documents(count), folder, settings=settings, encoder=FakeEncoder())  # type: ignore[arg-type]
    add_runs(folder)
    delete_chosen(folder, lambda catalog: numbers_of(catalog, ["apple0", "river1"]))
    with closing(opened(folder)) as collection:
        collection.judge("apple", ["apple6", "river7"])
    changed = [Document("another text", key="cloud2", metadata={"stars": "many", "new": 1.5})]
    index_documents(changed, folder, encoder=FakeEncoder())  # type: ignore[arg-type]
    with closing(sqlite3.connect(folder / "catalog.db")) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return folder


def opened(folder: Path) -> Collection:
    """Open a collection with the encoder of its model."""
    return Collection.open(folder, encoder=FakeEncoder(), loader=loaded)  # type: ignore[arg-type]


def seen(collection: Collection) -> str:
    """Return all that a user can see of a collection: documents with the columns of runs, the runs, and hits."""
    hits = [
        (hit.id, round(hit.score, 5), hit.title, hit.text)
        for mode in ("dense", "lexical", "hybrid")
        for query in ("apple river", "number 7")
        for hit in collection.search(query, k=5, mode=mode)  # type: ignore[arg-type]
    ]
    runs = [(run.to_dict(), collection.items(run)) for run in collection.runs()]
    facts, judged = collection.info(), collection.judgements()
    return repr(
        (list(collection.rows()), runs, hits, judged, facts.documents, facts.passages, facts.fields, facts.language)
    )


def uses(folder: Path) -> Iterator[tuple[str, Callable[[Collection], object]]]:
    """Yield the name of everything that is done with a collection, and a function that does it."""
    yield "info", lambda c: c.info()
    yield "see", seen
    yield "similar", lambda c: c.similar("apple6", k=3)
    yield "filter", lambda c: c.search("apple", where="price > 3 or day > '2020-01-05' or note like 'note%'")
    yield "vectors", lambda c: list(c.rows(vectors=True))
    yield "export", lambda c: c.export(folder.parent / "out.csv")
    yield "verify", lambda c: c.verify()
    yield "cluster", lambda c: c.cluster("again", k=2, replace=True)
    yield "update", lambda c: c.update_clusters("k")
    yield "tag", lambda c: c.tag("t2", ids=["letter4"])
    yield "put", lambda c: c.put([{"id": "put", "text": "put there"}])
    yield "delete", lambda c: c.delete("letter4")
    yield "index", lambda c: index(documents(8), folder, encoder=c.stored.encoder)  # type: ignore[arg-type]
    yield "compact", lambda c: c.compact()
    yield "undo", lambda c: c.undo_model()
    yield "repair", lambda c: c.repair()
    yield "repaired", seen


def problem_of(folder: Path, expected: str | None = None) -> str | None:
    """Use a damaged collection; return what went wrong, None if all was read or refused in one line.

    Args:
        folder: The collection; it is changed.
        expected: What `seen` says of the sound collection, where a change that a user can see must be noticed.
    """
    noticed, shown = True, expected
    with suppress(SondeError), closing(opened(folder)) as collection:
        if expected is not None:
            noticed = collection.verify() != []
            shown = expected if noticed else seen(collection)
    if not noticed and shown != expected:
        return "verify noticed nothing, and what a user sees has changed"
    for name, use in uses(folder):
        try:
            with closing(opened(folder)) as collection:
                use(collection)
        except SondeError as error:
            if "\n" in str(error):
                return f"{name}: a message of several lines: {error}"
        except Exception as error:
            return f"{name}: {type(error).__name__}: {error}"
    return None


HOSTILE: tuple[Any, ...] = (
    0, 1, -1, 2**31, 2**53, 2**63 - 1, -(2**63), 0.5, -1.5, 1e308, float("inf"), None, "", "x", "../../canary",
    "/etc/passwd", "a" * 100_000, "[" * 5_000, "{}", "[]", "null", '"text"', "1e999", "NaN", "\ud7ff", "é\u202e",
    b"", b"\xff\xfe", b"\x00" * 16, b"\x93NUMPY\x01\x00", "c0", "c0, text FROM documents; --", "2020-02-30",
)  # fmt: skip


def by_sql(folder: Path, chance: random.Random) -> str:
    """Change a value, a row or a definition of the catalog."""
    with closing(sqlite3.connect(folder / "catalog.db", isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        table = chance.choice([*tables, "sqlite_master"])
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        column, value = chance.choice(columns), chance.choice(HOSTILE)
        key = chance.choice(columns)
        rows = connection.execute(f'SELECT "{key}" FROM {table}').fetchall()
        where = (f'WHERE "{key}" IS ?', [chance.choice(rows)[0]]) if rows and chance.random() < 0.7 else ("", [])
        statement = chance.choice([f'UPDATE OR REPLACE {table} SET "{column}" = ?', f"DELETE FROM {table}"])
        values = [value] if "?" in statement else []
        with suppress(sqlite3.Error):
            connection.execute(f"{statement} {where[0]}", [*values, *where[1]])
        return f"{statement} {where} {value!r:.60}"


WAYS = ("flip", "flip", "flip", "repeat", "random", "zero", "number", "splice", "cut")


def bytes_changed(path: Path, chance: random.Random, ways: Sequence[str] = WAYS) -> str:
    """Flip, cut, repeat, overwrite or exchange bytes of a file."""
    content = bytearray(path.read_bytes())
    size = len(content)
    if not size:
        return f"{path.name} is empty"
    place, length = chance.randrange(size), min(size, 1 << chance.randrange(13))
    how = chance.choice(ways)
    if how == "flip":
        for _ in range(chance.choice([1, 1, 4, 32])):
            content[chance.randrange(size)] ^= 1 << chance.randrange(8)
    elif how == "cut":
        del content[place:]
    elif how == "repeat":
        content[place:place] = content[place : place + length]
    elif how in ("random", "zero"):
        content[place : place + length] = chance.randbytes(length) if how == "random" else bytes(length)
    elif how == "number":
        content[place : place + 8] = chance.choice([0, 1, 2**31, 2**40, 2**63]).to_bytes(8, "little")
    else:
        other = chance.randrange(size)
        content[place : place + length] = content[other : other + length]
    path.write_bytes(content)
    return f"{how} in {path.name} at {place}"


def json_changed(path: Path, chance: random.Random) -> str:
    """Change a value somewhere in a JSON file."""
    try:
        value = json.loads(path.read_text("utf-8"))
    except ValueError:
        return bytes_changed(path, chance)
    new = chance.choice([each for each in HOSTILE if not isinstance(each, bytes)])
    at: Any = value
    while isinstance(at, (dict, list)) and at:
        key = chance.choice(list(at) if isinstance(at, dict) else range(len(at)))
        if not isinstance(at[key], (dict, list)) or chance.random() < 0.3:
            at[key] = new
            break
        at = at[key]
    path.write_text(json.dumps(value), "utf-8")
    return f"{new!r:.60} in {path.name}"


def faiss_resealed(folder: Path, chance: random.Random) -> str:
    """Change the FAISS index or its rows, and store the digest of what it now is, as a stranger could."""
    (info,) = folder.glob("ann/*/info.json")
    (generation,) = (path for path in info.parent.iterdir() if path.is_dir())
    said = bytes_changed(chance.choice(sorted(generation.iterdir())), chance)
    whole = sha256()
    for name in ("index.faiss", "rows.npy"):
        whole.update(file_digest(io.BytesIO((generation / name).read_bytes()), "sha256").digest())
    info.write_text(json.dumps(json.loads(info.read_text()) | {"digest": whole.hexdigest()}))
    generation.rename(generation.with_name(whole.hexdigest()[:16]))
    return f"{said}, with its digest"


def any_of(*patterns: str) -> Callable[[Path, random.Random], str]:
    """Return a mutation of the bytes of one of the files that match."""

    def change(folder: Path, chance: random.Random) -> str:
        files = sorted({path for pattern in patterns for path in folder.glob(pattern) if path.is_file()})
        return bytes_changed(chance.choice(files), chance)

    return change


def any_json(folder: Path, chance: random.Random) -> str:
    """Change a value of one of the JSON files."""
    files = sorted(path for path in (*folder.rglob("*.json"), *folder.rglob(".*.json")) if path.is_file())
    return json_changed(chance.choice(files), chance)


MUTATIONS: dict[str, Callable[[Path, random.Random], str]] = {
    "sql": by_sql,
    "catalog": any_of("catalog.db"),
    "vectors": any_of("vectors/*.npy"),
    "faiss": any_of("ann/*/*/*", "ann/*/info.json"),
    "faiss-resealed": faiss_resealed,
    "tantivy": any_of("lexical/*/*", "lexical/*/.*"),
    "json": any_json,
    # Judgements that are cut off at the end cannot be told from one that a kill cut off.
    "judgements": lambda folder, chance: bytes_changed(folder / "judgements.jsonl", chance, WAYS[:-1]),
}


def mutated(
    sound: Path,
    place: Path,
    name: str,
    seed: int,
    number: int,
    ways: Mapping[str, Callable[[Path, random.Random], str]] = MUTATIONS,
) -> tuple[Path, str]:
    """Return a fresh copy of a collection with one mutation, the same for a seed and a number, and what it is."""
    folder = place / "c.sonde"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(sound, folder)
    return folder, ways[name](folder, random.Random(f"{name} {seed} {number}"))
