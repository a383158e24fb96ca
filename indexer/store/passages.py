"""Passages and segments in the catalog: read them in bulk, and change them inside a writer's transaction."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from .catalog import Catalog, in_slices
from .checksums import PASSAGES, change, passage_sum, passages_now, store
from .segments import Segment


class PassageRow(NamedTuple):
    """A row of the table of passages.

    Attributes:
        row: The embedding's row in the collection.
        doc: The document's number.
        start: Where the passage begins in the document's text, in characters.
        end: Where it ends.
        digest: Of the embedded text, 16 bytes.
    """

    row: int
    doc: int
    start: int
    end: int
    digest: bytes


class PassageText(NamedTuple):
    """A passage with its whole document: number, title and text, and the passage's character offsets in the text."""

    doc: int
    title: str
    text: str
    start: int
    end: int


def passages_in_order(catalog: Catalog) -> Iterator[PassageText]:
    """Yield the passages of all documents by document number, then in text order."""
    sql = (
        "SELECT d.doc, d.title, d.text, p.start, p.end FROM documents d JOIN passages p ON p.doc = d.doc "
        "ORDER BY d.doc, p.start"
    )
    return map(PassageText._make, catalog.ordered(sql))


def passage_texts(catalog: Catalog, rows: Sequence[int]) -> list[tuple[str, str]]:
    """Return the title of the document and the text of the passage for each row; ascending rows keep their order."""
    sql = (
        "SELECT p.row, d.title, substr(d.text, p.start + 1, p.end - p.start) FROM passages p JOIN documents d "
        "ON d.doc = p.doc WHERE p.row IN (?) ORDER BY p.row"
    )
    return [(title, text) for _, title, text in catalog.select_in(sql, rows)]


def passage_surroundings(catalog: Catalog, rows: Sequence[int], margin: int) -> list[tuple[int, str, str, str]]:
    """Return row, title, the passage, and the passage with up to `margin` characters before and after it."""
    sql = (
        "SELECT p.row, d.title, substr(d.text, p.start + 1, p.end - p.start), "
        f"substr(d.text, max(p.start - {margin:d}, 0) + 1, p.end - max(p.start - {margin:d}, 0) + {margin:d}) "
        "FROM passages p JOIN documents d ON d.doc = p.doc WHERE p.row IN (?)"
    )
    return list(catalog.select_in(sql, rows))


def rows_by_digest(catalog: Catalog, digests: Iterable[bytes]) -> dict[bytes, int]:
    """Return the first row, a tombstone or not, that holds the embedding of each digest; others are left out."""
    sql = "SELECT digest, min(row) FROM passages WHERE digest IN (?) GROUP BY digest"
    return dict(catalog.select_in(sql, sorted(set(digests))))


def digests_in_use(catalog: Catalog, digests: Iterable[bytes], before: int) -> set[bytes]:
    """Return which of the digests passages of present documents have, in the rows below `before`."""
    sql = "SELECT DISTINCT digest FROM passages WHERE digest IN (?) AND doc IS NOT NULL AND row < "
    return {found for (found,) in catalog.select_in(f"{sql}{int(before)}", sorted(set(digests)))}


def places_in(catalog: Catalog, segment: Segment) -> list[tuple[int, int, int, int]]:
    """Return row, document, start and end of the segment's passages by row, without tombstones."""
    sql = "SELECT row, doc, start, end FROM passages WHERE doc IS NOT NULL AND row >= ? AND row < ? ORDER BY row"
    return catalog.connection.execute(sql, (segment.start, segment.start + segment.count)).fetchall()


def add_passages(catalog: Catalog, passages: Sequence[PassageRow]) -> None:
    """Add passages; their rows must be free."""
    catalog.connection.executemany("INSERT INTO passages VALUES (?, ?, ?, ?, ?)", passages)
    change(catalog.connection, PASSAGES, added=passage_sum(passages))


def move_passages(catalog: Catalog, moved: Iterable[tuple[int, int]]) -> None:
    """Give passages new rows: (new, old) pairs, in an order in which each new row is free."""
    catalog.connection.executemany("UPDATE passages SET row = ? WHERE row = ?", moved)
    store(catalog.connection, PASSAGES, passages_now(catalog.connection))


def bury_passages(catalog: Catalog, docs: Sequence[int]) -> None:
    """Make tombstones of all passages of these documents."""
    for some in in_slices(docs):
        rows = list(catalog.select_in("SELECT row, doc, start, end, digest FROM passages WHERE doc IN (?)", some))
        catalog.connection.executemany("UPDATE passages SET doc = NULL WHERE doc = ?", [(doc,) for doc in some])
        buried = [(row, None, start, end, digest) for row, _, start, end, digest in rows]
        change(catalog.connection, PASSAGES, added=passage_sum(buried), removed=passage_sum(rows))


def remove_tombstones(catalog: Catalog, segment: Segment | None = None) -> None:
    """Remove the tombstones of a segment, or all; nothing can reuse their embeddings then."""
    where, values = "WHERE doc IS NULL", ()
    if segment is not None:
        where, values = f"{where} AND row >= ? AND row < ?", (segment.start, segment.start + segment.count)
    removed = passages_now(catalog.connection, where, values)
    catalog.connection.execute(f"DELETE FROM passages {where}", values)
    change(catalog.connection, PASSAGES, removed=removed)


def add_segment(catalog: Catalog, segment: Segment) -> None:
    """Name a segment whose file is written."""
    values = (segment.number, segment.start, segment.count, segment.sha256)
    catalog.connection.execute("INSERT INTO segments VALUES (?, ?, ?, ?)", values)


def remove_segments(catalog: Catalog, segments: Iterable[Segment]) -> None:
    """Forget segments; `sweep` deletes their files."""
    numbers = [(segment.number,) for segment in segments]
    catalog.connection.executemany("DELETE FROM segments WHERE number = ?", numbers)


def replace_segment(catalog: Catalog, old: Segment, new: Segment) -> None:
    """Name another file with the same rows in place of a segment's."""
    sql = "UPDATE segments SET number = ?, sha256 = ? WHERE number = ?"
    catalog.connection.execute(sql, (new.number, new.sha256, old.number))
