"""The documents of a run in one file of JSON lines for each shard; and lost shards, which are rebuilt from them."""

import hashlib
import json
import reprlib
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..document import Document, Skipped, Value
from ..errors import UsageError, arg
from ..files import make_folder, replace_file
from ..ingest.plan import unfit
from ..ingest.report import Tally
from ..progress import Notify, Progress, silent
from ..store.catalog import Catalog
from ..store.documents import document_ids
from ..store.fields import stored_text, type_of, wider_type
from ..store.members import Seen
from ..store.writing import MAX_FIELDS, digest, too_many_fields
from ..wording import counted, shown_id
from .generations import committed_generation, lost_folders, lost_shard
from .layout import RUNS, ShardedGeneration, Sharding, ShardState, shard_folder, work_folder

if TYPE_CHECKING:
    from .shard import ShardTask

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
                if document.key is not None:
                    line = json.dumps([document.key, place])
                    hashed.update(line.encode() + b"\n")
                    files[sharding.shard_of(document.key)].write(line + "\n")
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


def read_spool(path: Path) -> Iterator[Document | Skipped]:
    """Yield a shard's documents in their order, and the keys of those whose file cannot be read now."""
    with path.open(encoding="utf-8") as stream:
        for line in map(json.loads, stream):
            if len(line) == 2:
                yield Skipped("", "the file cannot be read", line[0])
                continue
            key, title, text, language, origin, metadata, _ = line
            values = {name: _value(value) for name, value in metadata.items()}
            yield Document(text, title, key, values, language, origin)


def first_places(path: Path) -> dict[str, int]:
    """Return each document's place in the whole stream by its key; the first one of a repeated key."""
    found: dict[str, int] = {}
    with path.open(encoding="utf-8") as stream:
        for line in map(json.loads, stream):
            if len(line) > 2:
                found.setdefault(line[0], line[-1])
    return found


def last_places(path: Path) -> dict[str, int]:
    """Return each document's place in the whole stream by its key; the last one of a repeated key.

    Documents whose file cannot be read now are among them.
    """
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


def without_lost_shards(folder: Path) -> tuple[ShardedGeneration, dict[int, ShardState]]:
    """Return the newest generation without its lost shards, and what these held, by number.

    Raises:
        UsageError: No shard is lost.
        SondeError: The catalog of runs is lost.
    """
    base = committed_generation(folder)
    missing = lost_folders(folder, base) if base else []
    if runs := next((path for path in missing if path.parent.name == RUNS), None):
        raise lost_shard(runs, folder)
    states = enumerate(base.shards if base else ())
    lost = {n: state for n, state in states if state and shard_folder(folder, n) / state.version in missing}
    if base is None or not lost:
        raise nothing_lost(folder)
    left = tuple(None if n in lost else state for n, state in enumerate(base.shards))
    return replace(base, shards=left), lost


def nothing_lost(folder: Path) -> UsageError:
    """Return the error for a collection, or a folder without one, that has lost no shard."""
    said = f"no shard of {folder} is lost, so there is nothing to rebuild: leave out {arg('rebuild')}"
    return UsageError(said, code="conflict", field="rebuild", value=True)


def refuse_other_source(lost: Mapping[int, ShardState], spool: Spool) -> None:
    """Refuse a source that has less than half of the documents that a lost shard held: others would be left out.

    Raises:
        UsageError: There are fewer.
    """
    for shard, state in lost.items():
        if (count := spool.counts[shard]) < state.documents / 2:
            raise UsageError(
                f"lost shard {shard:02d} had {counted(state.documents, 'document')}, but the given sources have only "
                f"{count:,} for it, so nothing was changed. Give all sources of the collection in one command. If "
                f"these are all sources, add {arg('delete_most')}",
                code="deletes-most", field="delete_most",
            )  # fmt: skip


def with_former_places(
    tasks: list["ShardTask"], base: ShardedGeneration | None, lost: Container[int], spool: Spool
) -> list["ShardTask"]:
    """Return the tasks, in which the documents of lost shards have the numbers that they had before.

    Args:
        tasks: Of an index run.
        base: The newest generation without its lost shards.
        lost: The numbers of these shards.
        spool: The documents of the run.
    """
    if base is None or not lost:
        return tasks
    place = _first_place(tasks[0].folder, base, tasks[0].sharding, spool)
    return [replace(task, read=place) if task.shard in lost else task for task in tasks]


def _first_place(folder: Path, base: ShardedGeneration, sharding: Sharding, spool: Spool) -> int:
    """Return the place of the source's first document among all that were ever read.

    Runs, such as tags, know documents by their numbers, and equal scores are ordered by them. The documents that are
    left tell at which place an earlier run began to read this source. If they do not agree, or if one of these places
    belongs to a document that the source lacks, the lost documents may have had other numbers: they then get new ones.
    """
    began, others = set[int](), list[np.ndarray]()
    for shard, state in enumerate(base.shards):
        if state is None:
            continue
        places, unknown = first_places(spool.file(shard)), list[int]()
        with closing(Catalog.open(shard_folder(folder, shard) / state.version / "catalog.db")) as catalog:
            for doc, key in document_ids(catalog):
                place = sharding.place(doc)
                began.add(place - places[key]) if key in places else unknown.append(place)
        others.append(np.array(unknown, np.int64))
    start = min(began, default=-1)
    end = start + spool.documents
    if len(began) != 1 or start < 0 or end > base.read:
        return base.read
    taken = any(((each >= start) & (each < end)).any() for each in others)
    return base.read if taken else start


def say_rebuilt(lost: Mapping[int, ShardState], base: ShardedGeneration | None, notify: Notify) -> None:
    """Report how many documents each rebuilt shard has."""
    for shard, before in lost.items():
        state = base.shards[shard] if base else None
        count = state.documents if state else 0
        rest = "" if count == before.documents else f"; it had {before.documents:,} before"
        notify(f"note: rebuilt lost shard {shard:02d} with {counted(count, 'document')}{rest}")
