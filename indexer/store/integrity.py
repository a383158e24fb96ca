"""Integrity and housekeeping: what is damaged or left over in a collection, and its removal by the writer."""

import json
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from ..document import Document
from ..encoder import ModelSpec
from ..files import remove
from ..late.writer import due
from .catalog import Catalog
from .checksums import (
    PASSAGES,
    documents,
    passages_now,
    results_now,
    results_part,
    run_checksum,
    run_part,
    small,
    stored,
)
from .derived import DERIVED
from .late import is_wanted
from .models import is_leftover, models_folder
from .passages import add_segment, bury_passages, remove_segments
from .schema import broken_rules
from .segments import Segments, write_parts
from .writing import Identity

Span = tuple[int, int, bytes]
"""Start and end of a passage in its document's text, in characters, and the digest of what was embedded."""

_OF_A_RUN = re.compile(r"(?:run|results) (\d{1,18})")
_NO_DOCUMENT = "doc NOT IN (SELECT doc FROM documents)"


def damage(catalog: Catalog) -> list[str]:
    """Return problems that SQLite finds in the file, up to 5, or else values that cannot be right."""
    try:
        found = [
            " ".join(problem.split())
            for (problem,) in catalog.connection.execute("PRAGMA integrity_check(5)")
            if problem != "ok"
        ]
        return found or list(broken_rules(catalog.connection))
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        return [str(error)]


def documents_with_spans(catalog: Catalog) -> Iterator[tuple[int, str, str, list[Span]]]:
    """Yield number, title and text of every document with its passages in text order."""
    sql = (
        "SELECT doc, title, text, (SELECT json_group_array(json_array(start, end, hex(digest))) "
        "FROM passages p WHERE p.doc = d.doc) FROM documents d"
    )
    for doc, title, text, spans in catalog.connection.execute(sql):
        yield doc, title, text, sorted((start, end, bytes.fromhex(digest)) for start, end, digest in json.loads(spans))


def changed_documents(catalog: Catalog) -> int:
    """Return how many documents differ from the digest or the length that was stored with them."""
    changed = 0
    rows = catalog.connection.execute("SELECT title, text, language, length, content FROM documents")
    for title, text, language, length, content in rows:
        identity = Identity.of(Document(text, title, language=language))
        changed += identity.content != content or len(text) != length
    return changed


def documents_of_another_checksum(catalog: Catalog) -> int:
    """Return how many documents have another id or other metadata than when they were written."""
    fields = [(field.name, field.column, field.type) for field in catalog.fields().values()]
    return sum(stored != now for _, stored, now in documents(catalog.connection, fields))


def changed_tables(catalog: Catalog) -> list[str]:
    """Return the tables, but for those of runs, that have another checksum than when they were written."""
    known = stored(catalog.connection)
    now = small(catalog.connection) | {PASSAGES: passages_now(catalog.connection)}
    return [table for table, checksum in now.items() if known.get(table) != checksum]


def changed_runs(catalog: Catalog) -> Iterator[str]:
    """Yield each run whose description or results have another checksum than when they were written."""
    known = stored(catalog.connection)
    for number, kind, name in catalog.connection.execute("SELECT run, kind, name FROM runs ORDER BY run").fetchall():
        results, facts = results_now(catalog.connection, number), run_checksum(catalog.connection, number)
        if results != known.get(results_part(number), 0) or facts != known.get(run_part(number)):
            yield f"the {kind} run {name!r}"


def lost_runs(catalog: Catalog) -> list[int]:
    """Return the numbers of runs whose description is lost, and which something is left of."""
    numbers = {number for (number,) in catalog.connection.execute("SELECT run FROM runs")}
    found = (_OF_A_RUN.fullmatch(part) for part in stored(catalog.connection))
    return sorted({int(part[1]) for part in found if part} - numbers)


def passage_rows(catalog: Catalog) -> int:
    """Return how many rows of embeddings the passages need, tombstones included: the last row plus one."""
    return catalog.connection.execute("SELECT coalesce(max(row) + 1, 0) FROM passages").fetchone()[0]


def orphaned_passages(catalog: Catalog) -> int:
    """Return how many passages, without tombstones, belong to a document that does not exist."""
    return _count(catalog, "passages p LEFT JOIN documents d USING (doc) WHERE p.doc IS NOT NULL AND d.doc IS NULL")


def orphaned_metadata(catalog: Catalog) -> int:
    """Return how many rows of metadata belong to a document that does not exist."""
    return _count(catalog, "metadata LEFT JOIN documents d USING (doc) WHERE d.doc IS NULL")


def documents_without_metadata(catalog: Catalog) -> int:
    """Return how many documents have lost their row of metadata; one without a single value has a row too."""
    return _count(catalog, "documents LEFT JOIN metadata m USING (doc) WHERE m.doc IS NULL")


def bury_orphans(catalog: Catalog) -> int:
    """Make tombstones of the passages of documents that do not exist; return how many."""
    found = catalog.connection.execute(f"SELECT doc FROM passages WHERE doc IS NOT NULL AND {_NO_DOCUMENT}").fetchall()
    bury_passages(catalog, sorted({doc for (doc,) in found}))
    return len(found)


def remove_orphaned_metadata(catalog: Catalog) -> int:
    """Remove the metadata of documents that do not exist; return how many rows."""
    return catalog.connection.execute(f"DELETE FROM metadata WHERE {_NO_DOCUMENT}").rowcount


def _count(catalog: Catalog, source: str) -> int:
    return catalog.connection.execute(f"SELECT count(*) FROM {source}").fetchone()[0]


def merge_segments(folder: Path, catalog: Catalog) -> None:
    """Merge the newest segments for as long as FAN of them are of one tier; rows keep their numbers.

    The merged segment is written beside the others, and one transaction puts it in their place.
    """
    while count := due([segment.count for segment in catalog.segments()]):
        tail = catalog.segments()[-count:]
        dimension = ModelSpec.from_dict(catalog.get("model")).dimension
        vectors = Segments(folder / "vectors", tail, dimension)
        number = 1 + max(segment.number for segment in catalog.segments())
        merged = write_parts(folder / "vectors", number, tail[0].start, list(vectors.raw()))
        with catalog.transaction(write=True):
            remove_segments(catalog, tail)
            add_segment(catalog, merged)
            catalog.advance()
        for segment in tail:
            segment.path(folder / "vectors").unlink(missing_ok=True)


def sweep(folder: Path, catalog: Catalog) -> list[Path]:
    """Delete unnamed segments, temporary files, indexes of an earlier epoch and what a change of model left.

    Return what was deleted. Embeddings of other models stay: another process may be writing them.

    The caller holds the writer lock.
    """
    vectors = folder / "vectors"
    named = {segment.path(vectors) for segment in catalog.segments()}
    epoch = str(catalog.epoch())
    orphans = [path for path in vectors.glob("*") if path not in named]
    orphans += [path for kind in DERIVED for path in (folder / kind).glob("*") if path.name != epoch]
    if not is_wanted(catalog):
        orphans += list((folder / "late").glob(epoch))
    others = models_folder(folder)
    orphans += [path for path in folder.rglob("*.tmp") if others not in path.parents]
    orphans += [path for path in others.glob("*") if path.is_dir() and is_leftover(path, catalog)]
    return [path for path in orphans if remove(path)]
