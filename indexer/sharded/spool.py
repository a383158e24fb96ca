"""The documents of a run, sorted by shard: one file of JSON lines for each, read again by the shard's task."""

import hashlib
import json
import reprlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

from ..document import Document, Skipped, Value
from ..files import make_folder, replace_file
from ..ingest.plan import unfit
from ..ingest.report import Tally
from ..progress import Notify, Progress, silent
from ..store.catalog import Catalog
from ..store.documents import document_ids
from ..store.fields import stored_text, type_of, wider_type
from ..store.members import Seen
from ..store.writing import MAX_FIELDS, digest, too_many_fields
from ..wording import shown_id
from .layout import ShardedGeneration, Sharding, shard_folder, work_folder

STEP = 10_000
"""Documents between two reports of progress."""


@dataclass(slots=True)
class Spool:
    """What was read.

    Attributes:
        folder: Where the files are.
        counts: Number of documents for each shard.
        fields: Types of all metadata fields by name, those of earlier runs first.
        digest: Of all documents in their order, so that a repeated run is recognised.
        duplicate_ids: Documents whose id came more than once.
    """

    folder: Path
    counts: list[int]
    fields: dict[str, str]
    digest: str = ""
    duplicate_ids: int = 0

    @property
    def documents(self) -> int:
        """How many documents there are in all."""
        return sum(self.counts)

    def file(self, shard: int) -> Path:
        """Return the file of a shard's documents."""
        return spool_file(self.folder, shard)


def spools(folder: Path) -> Path:
    """Return where a collection has the documents of runs, a folder for each, which its digest names."""
    return work_folder(folder) / "spool"


def spool_file(folder: Path, shard: int) -> Path:
    """Return the file of a shard's documents in a folder."""
    return folder / f"{shard:02d}.jsonl"


def write_spool(
    documents: Iterable[Document | Skipped],
    folder: Path,
    sharding: Sharding,
    fields: dict[str, str],
    tally: Tally,
    notify: Notify = silent,
) -> Spool:
    """Sort a stream of documents by shard, each with its key and its place in the stream; memory stays flat.

    The files get their names when all is written: tasks of a command that died may still read those of the same run.

    Raises:
        TooManyFieldsError: There are more metadata fields than a collection can hold.
    """
    new = folder / "new"
    make_folder(new)
    spool = Spool(new, [0] * sharding.shards, dict(fields))
    seen, hashed, place = Seen(), hashlib.blake2b(digest_size=16), 0
    became: dict[str, str] = {}
    with ExitStack() as stack:
        paths = [spool.file(shard) for shard in range(sharding.shards)]
        files = [stack.enter_context(path.open("w", encoding="utf-8")) for path in paths]
        for document in documents:
            if isinstance(document, Skipped):
                tally.skip([document])
                continue
            if reason := unfit(document):
                tally.skip([Skipped(document.origin, reason)])
                continue
            key = _key(document, seen, spool)
            _widen(spool.fields, document, key, became)
            line = json.dumps(_stored(document, key, place), ensure_ascii=True)
            hashed.update(line.encode() + b"\n")
            shard = sharding.shard_of(key)
            files[shard].write(line + "\n")
            spool.counts[shard] += 1
            place += 1
            if place % STEP == 0:
                notify(Progress("reading", place, None, "documents"))
    for name, why in became.items():
        notify(f"note: {name} {why} does not fit: filters now compare it as text")
    tally.became_text = tuple(became)
    spool.digest = hashed.hexdigest()
    _name(spool, folder / spool.digest)
    return spool


def _name(spool: Spool, folder: Path) -> None:
    make_folder(folder)
    for shard in range(len(spool.counts)):
        replace_file(spool.file(shard), spool_file(folder, shard))
    spool.folder = folder


def _key(document: Document, seen: Seen, spool: Spool) -> str:
    """Return a document's key as one collection would choose it; see `Planner`."""
    if document.key is not None:
        spool.duplicate_ids += seen.count(document.key) > 1
        return document.key
    key = digest(document.title, document.text).hex()
    if (times := seen.count(key)) > 1:
        key = f"{key}-{times}"
        seen.count(key)
    return key


def _widen(fields: dict[str, str], document: Document, key: str, became: dict[str, str]) -> None:
    """Widen the types of fields so that a document's values fit; note which became text, and because of which value."""
    for name, value in document.metadata.items():
        before = fields.get(name)
        if (kind := wider_type(before, type_of(value))) is not None:
            fields[name] = kind
            if kind == "text" and before not in (None, "text"):
                why = f"{reprlib.repr(stored_text(value))} of document {shown_id(key)}"
                became[name] = f"changes from type {before} to text, because {why}"
    if len(fields) > MAX_FIELDS:
        raise too_many_fields(list(fields)[MAX_FIELDS])


def read_spool(path: Path) -> Iterator[Document]:
    """Yield a shard's documents in their order."""
    with path.open(encoding="utf-8") as stream:
        for line in stream:
            key, title, text, language, origin, metadata, _ = json.loads(line)
            values = {name: _value(value) for name, value in metadata.items()}
            yield Document(text, title, key, values, language, origin)


def first_places(path: Path) -> dict[str, int]:
    """Return each document's place in the whole stream by its key; the first one of a repeated key."""
    found: dict[str, int] = {}
    with path.open(encoding="utf-8") as stream:
        for line in map(json.loads, stream):
            found.setdefault(line[0], line[-1])
    return found


def last_places(path: Path) -> dict[str, int]:
    """Return each document's place in the whole stream by its key; the last one of a repeated key."""
    with path.open(encoding="utf-8") as stream:
        return {line[0]: line[-1] for line in map(json.loads, stream)}


def vanished(folder: Path, base: ShardedGeneration, spool: Spool) -> int:
    """Return how many documents of a generation of the collection the source does not hold."""
    count = 0
    for shard, state in enumerate(base.shards):
        if state:
            found = last_places(spool.file(shard))
            with closing(Catalog.open(shard_folder(folder, shard) / state.version / "catalog.db")) as catalog:
                count += sum(key not in found for _, key in document_ids(catalog))
    return count


def _stored(document: Document, key: str, place: int) -> list[Any]:
    metadata = {name: _json(value) for name, value in document.metadata.items()}
    return [key, document.title, document.text, document.language, document.origin, metadata, place]


def _json(value: Value) -> Any:
    """Return a value as JSON; a date becomes a dictionary, which no other value is."""
    if isinstance(value, datetime):
        return {"time": value.isoformat()}
    if isinstance(value, date):
        return {"date": value.isoformat()}
    return [_json(item) for item in value] if isinstance(value, list | tuple) else value


def _value(stored: Any) -> Value:
    if isinstance(stored, dict):
        [(kind, text)] = stored.items()
        return datetime.fromisoformat(text) if kind == "time" else date.fromisoformat(text)
    return [_value(item) for item in stored] if isinstance(stored, list) else stored  # type: ignore[misc]
