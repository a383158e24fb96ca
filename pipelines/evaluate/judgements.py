"""Judgements of hits: which documents answer which queries, kept in the collection and used to measure search.

They lie in `judgements.jsonl` in the collection's folder, one flushed line each: a hit can be judged while the
collection is being written, and a kill costs at most the line in hand. Of a query and a document the last word counts.
"""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from operator import index
from pathlib import Path
from typing import IO, Any, SupportsIndex

from filelock import FileLock

from ...indexer.errors import Ids, SondeError, UsageError, as_text, as_texts
from ...indexer.files import check_different, check_file, disk_error, sync_folder, write_output
from ...indexer.progress import Notify, silent
from ...indexer.sharded.bucket import bucket_of
from ...indexer.small_files import JUDGEMENTS, sealed_line, sealed_lines
from ...indexer.store.collection import StoredCollection
from ...indexer.store.documents import contents_by_id
from ...indexer.wording import shown_id
from .trec import Qrels, Query, note_unknown_queries, own_ids, trec_ids, with_text_ids

FILE = JUDGEMENTS
GRADES = range(11)
"""0: not relevant; 1 and up: relevant, more so with higher grades. In nDCG, a document counts as much as its grade."""
_GRADES = f"0 is not relevant, {GRADES[1]} to {GRADES[-1]} are relevant"
LONGEST = 20_000
"""Characters of a query that can be judged."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """The judgement of one document as an answer to one query.

    Attributes:
        query: The query's text.
        id: The document's id.
        grade: 0: not relevant; 1 and up: relevant.
        at: When it was judged, ISO 8601 in UTC.
    """

    query: str
    id: str
    grade: int
    at: str

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values, under the stable names of `--json`."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Judgements:
    """All judgements that count, in the order of their queries' first judgement.

    Attributes:
        kept: One for each query and document.
        stale: How many do not count: their document was deleted, or its text changed since.
    """

    kept: tuple[Judgement, ...]
    stale: int

    def __len__(self) -> int:
        return len(self.kept)

    @property
    def queries(self) -> list[Query]:
        """Ids, "q1" and up, and texts of the queries that have judgements."""
        texts = dict.fromkeys(judgement.query for judgement in self.kept)
        return [(f"q{number}", text) for number, text in enumerate(texts, 1)]

    @property
    def qrels(self) -> Qrels:
        """Grades by query id and document id."""
        ids = {text: key for key, text in self.queries}
        found: Qrels = {}
        for judgement in self.kept:
            found.setdefault(ids[judgement.query], {})[judgement.id] = judgement.grade
        return found

    @property
    def answered(self) -> list[Query]:
        """The queries with a relevant document; the others cannot tell a good order from a bad one."""
        qrels = self.qrels
        return [(key, text) for key, text in self.queries if any(qrels[key].values())]

    def of(self, query: str) -> dict[str, int]:
        """Return the grades of one query by document id."""
        wanted = normalised_query(query)
        return {judgement.id: judgement.grade for judgement in self.kept if judgement.query == wanted}

    def write(self, qrels: str | Path, queries: str | Path | None = None) -> None:
        """Write TREC qrels (tabs between the cells) and, if a file is named, the queries as JSONL with _id and text.

        Raises:
            UsageError: Both are one file, or one is a folder.
            SondeError: There are none, two document ids would be written as one, or a file cannot be written.
        """
        qrels, queries = Path(qrels), None if queries is None else Path(queries)
        check_different(qrels=qrels, queries=queries)
        for path in (qrels, queries):
            if path is not None:
                check_file(path)
        if not self.kept:
            raise SondeError("nothing has been judged in this collection: judge hits first, with `sonde judge`")
        ids = trec_ids((judgement.id for judgement in self.kept), "document")
        rows = [(key, id, grade) for key, grades in self.qrels.items() for id, grade in grades.items()]
        text = "".join(f"{key}\t0\t{ids[id]}\t{grade}\n" for key, id, grade in rows)
        asked = "".join(json.dumps({"_id": k, "text": t}, ensure_ascii=False) + "\n" for k, t in self.queries)
        for path, content in ((qrels, text), (queries, asked)):
            if path is not None:
                _write(path, content.encode())


def judgements(collection: StoredCollection) -> Judgements:
    """Return the judgements that a collection keeps; those of deleted or changed documents do not count.

    Raises:
        SondeError: The file cannot be read.
    """
    said = _last(collection.path / FILE)
    standing = [line for line in said.values() if line["grade"] is not None]
    with collection.view() as view:
        now = contents_by_id(view.catalog, {line["id"] for line in standing})
    kept = [line for line in standing if now.get(line["id"]) == line["content"]]
    order = {query: place for place, query in enumerate(dict.fromkeys(query for query, _ in said))}
    kept.sort(key=lambda line: order[line["query"]])
    found = tuple(Judgement(line["query"], line["id"], line["grade"], line["at"]) for line in kept)
    return Judgements(found, len(standing) - len(kept))


def _last(file: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the last line about each query and document."""
    return {(line["query"], line["id"]): line for line in _lines(file)}


def judge(collection: StoredCollection, query: str, ids: Ids, grade: int | None) -> int:
    """Keep judgements of documents as answers to a query; return how many were judged, or forgotten.

    Args:
        collection: The collection; another process may be writing to it.
        query: The query's text; spaces at its ends and repeated ones do not tell queries apart.
        ids: Ids of documents.
        grade: 0: not relevant; 1 to 10: relevant; None takes the judgement back.

    Raises:
        UsageError: The query is empty or too long, no document was named, or the grade cannot be.
        SondeError: A document does not exist (nothing is kept then), or the file cannot be written.
    """
    query, ids = as_text(query, "query"), as_texts(ids, "id")
    _check(query, ids, grade)
    _refuse_bucket(collection)
    with collection.view() as view:
        known = contents_by_id(view.catalog, ids)
    missing = next((id for id in ids if id not in known), None)
    if missing is not None:
        raise SondeError(f"there is no document with the id {shown_id(missing)} in {collection.named}")
    if grade is None:
        query = normalised_query(query)
        said = _last(collection.path / FILE)
        ids = [id for id in ids if said.get((query, id), {}).get("grade") is not None]
        if not ids:
            return 0
    found = dict.fromkeys(ids)
    _append(collection.path / FILE, _lines_of(query, dict.fromkeys(found, grade), known, _now()))
    return len(found)


def import_judgements(
    collection: StoredCollection, queries: Sequence[Query], qrels: Qrels, notify: Notify = silent
) -> int:
    """Keep the judgements of many queries at once; return how many judgements.

    Args:
        collection: The collection; another process may be writing to it.
        queries: Ids and texts.
        qrels: Grades by query id and document id; one below 0 counts as 0.
        notify: Receives a note if a query or a document is not there, and is left out.

    Raises:
        UsageError: A query or a grade is not valid.
        SondeError: Nothing is left to keep, or the file cannot be written. Nothing is kept then.
    """
    _refuse_bucket(collection)
    queries, qrels = with_text_ids(queries, qrels)
    asked = {key: text for key, text in queries if key in qrels}
    graded = {key: {id: _whole_grade(grade) for id, grade in qrels[key].items()} for key in asked}
    for key, text in asked.items():
        _check(text, [*graded[key]], max(graded[key].values(), default=None))
    own = own_ids(collection, (id for grades in graded.values() for id in grades), notify)
    if not own:
        said = f"none of the judged documents is in {collection.named}" if asked else "no query has a judgement"
        raise SondeError(f"{said}: do the ids match?", code="not-found", field="qrels")
    note_unknown_queries(queries, qrels, notify)
    with collection.view() as view:
        known = contents_by_id(view.catalog, own.values())
    at, lines = _now(), list[dict[str, Any]]()
    for key, text in asked.items():
        grades = {own[id]: grade for id, grade in graded[key].items() if own.get(id) in known}
        lines += _lines_of(text, grades, known, at)
    _append(collection.path / FILE, lines)
    return len(lines)


def _whole_grade(given: object) -> int:
    """Return a grade of qrels, where -1 and below mean not relevant too."""
    if isinstance(given, bool) or not isinstance(given, SupportsIndex):
        raise UsageError(f"{given!r} is not a valid grade: {_GRADES}", code="invalid", field="qrels")
    return max(index(given), 0)


def _refuse_bucket(collection: StoredCollection) -> None:
    if bucket := bucket_of(collection.path):
        said = f"{bucket.address} cannot keep judgements yet: use a collection on this machine"
        raise UsageError(said, code="sharded")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _lines_of(
    query: str, grades: Mapping[str, int | None], contents: Mapping[str, str], at: str
) -> list[dict[str, Any]]:
    """Return the lines that keep the grades of one query's documents, None for one that is taken back."""
    shared = {"query": normalised_query(query), "at": at}
    return [shared | {"id": id, "grade": grade, "content": contents[id]} for id, grade in grades.items()]


def normalised_query(query: str) -> str:
    """Return a query's text as judgements know it: without spaces at its ends and repeated ones."""
    return " ".join(query.split())


def _check(query: str, ids: Sequence[str], grade: int | None) -> None:
    if not query.strip():
        raise UsageError("the query is empty: give the query that the documents answer")
    if len(normalised_query(query)) > LONGEST:
        raise UsageError(f"the query has {len(normalised_query(query)):,} characters; the maximum is {LONGEST:,}")
    if not ids:
        raise UsageError("no documents given: give the ids of the documents to judge")
    if grade is not None and grade not in GRADES:
        raise UsageError(f"{grade} is not a valid grade: {_GRADES}")


def _append(path: Path, lines: Iterable[dict[str, Any]]) -> None:
    """Append lines and flush them to the disk; what a kill left of a line is cut off first."""
    text = b"".join(sealed_line(line) for line in lines)
    try:
        with FileLock(path.with_name(path.name + ".lock")), path.open("a+b") as stream:
            stream.truncate(_whole(stream))
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        sync_folder(path.parent)
    except OSError as error:
        raise disk_error(error, path) from None


def _whole(stream: IO[bytes]) -> int:
    """Return the length of the file up to the end of its last whole line."""
    end = stream.seek(0, os.SEEK_END)
    while end:
        size = min(end, 65_536)
        stream.seek(end - size)
        found = stream.read(size).rfind(b"\n")
        if found >= 0:
            return end - size + found + 1
        end -= size
    return 0


def _lines(path: Path) -> list[dict[str, Any]]:
    """Return the whole lines of the file; one that is damaged is left out, and `verify` counts it."""
    try:
        return [line for line in sealed_lines(path) if line is not None and _fits(line)]
    except OSError as error:
        raise SondeError(f"the judgements in {path} cannot be read ({error.strerror or error})") from None


def _fits(line: Mapping[str, Any]) -> bool:
    texts = all(isinstance(line.get(name), str) for name in ("query", "id", "at", "content"))
    grade = line.get("grade", "missing")
    return texts and (grade is None or (type(grade) is int and grade in GRADES))


def _write(path: Path, content: bytes) -> None:
    write_output(path, lambda stream: stream.write(content))
