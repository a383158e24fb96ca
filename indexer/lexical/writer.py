"""Write a lexical index: entries and deletes become visible and durable together, exact after a kill at any moment."""

import glob
import json
import re
import shutil
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tantivy import Document, FieldType, Index, Query

from ..errors import SondeError
from ..files import CHECK_DISK, DISK_FAILED, DISK_FULL, share, write_durably
from ..languages import normalise
from ..small_files import LARGEST, read_json
from .analysis import UNKNOWN, analyzer

SCHEMA = 1
"""Version of the index's fields and of the analysis; another version is rebuilt."""


@dataclass(frozen=True, slots=True)
class LexicalState:
    """What the last commit holds: the catalog's rows below `through_row`.

    `settled` counts the tombstones that its statistics are known to be free of.
    """

    through_row: int = 0
    settled: int = 0


def read_state(folder: Path) -> LexicalState:
    """Return the state of the last commit.

    `announce` writes down the coming state before Tantivy commits, and `confirm` confirms it after. A kill in between
    leaves an unconfirmed state; Tantivy's own number of the last commit tells whether it holds.

    Raises:
        SondeError: The file is missing, damaged or of another version.
    """
    path = folder / "state.json"
    try:
        stored = read_json(path)
        schema, confirmed = stored["schema"], stored["opstamp"] == opstamp(folder)
        state = LexicalState(**stored["state" if confirmed else "next"])
        if any(type(value) is not int or value < 0 for value in (state.through_row, state.settled)):
            raise ValueError(f"its state is {state}")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise damaged_index(folder, f"{path.name}: {type(error).__name__}: {error}") from None
    if schema != SCHEMA:
        raise damaged_index(folder, f"it has version {schema!r}, and this Sonde reads version {SCHEMA}")
    return state


def announce(folder: Path, state: LexicalState, coming: LexicalState) -> None:
    """Write down the state of the last commit, and the one that the next commit will have."""
    stored = {"schema": SCHEMA, "opstamp": opstamp(folder), "state": asdict(state), "next": asdict(coming)}
    write_durably(folder / "state.json", lambda stream: stream.write(json.dumps(stored).encode()))


def confirm(folder: Path, state: LexicalState) -> None:
    """Write down the state of the commit that was just made."""
    announce(folder, state, state)


def opstamp(folder: Path) -> int:
    """Return Tantivy's number of the last commit; it grows with every one."""
    return read_json(folder / "meta.json")["opstamp"]


_OWN_FILE = re.compile(r"meta\.json|[0-9a-f]{32}(\.\d+)?\.[a-z]+")


def refuse_other_files(folder: Path) -> None:
    """Refuse an index whose list of files names any that are not its own: Tantivy deletes those that it does not use.

    Raises:
        SondeError: A name is none that Tantivy gives.
    """
    path = folder / ".managed.json"
    try:
        names = read_json(path) if path.exists() else []
        own = isinstance(names, list) and all(isinstance(name, str) and _OWN_FILE.fullmatch(name) for name in names)
    except (OSError, ValueError):
        own = False
    if not own:
        raise damaged_index(folder, f"{path.name} does not list its files")


def damaged_index(folder: Path, reason: object) -> SondeError:
    """Return the error for an index that cannot be read."""
    line = " ".join(str(reason).split())
    return SondeError(f"the lexical index in {folder} is damaged ({line}): `sonde repair` rebuilds it from the catalog")


def _share(folder: Path) -> None:
    """Let other users read the files that Tantivy makes for this one alone."""
    for path in (folder / "meta.json", folder / ".managed.json"):
        share(path)


@contextmanager
def tantivy_errors(folder: Path) -> Iterator[None]:
    """Raise what Tantivy raises inside as a `SondeError` that names the index and the remedy."""
    try:
        yield
    except (ValueError, OSError) as error:
        raise _explain(folder, str(error)) from None
    except BaseException as error:
        # PyO3 derives its panics from BaseException, and no module exports the class.
        if type(error).__name__ != "PanicException":
            raise
        raise damaged_index(folder, error) from None


def _explain(folder: Path, reason: str) -> SondeError:
    if "LockBusy" in reason or "LockFailure" in reason:
        return SondeError(f"another process is writing to the lexical index in {folder}: try again when it is done")
    if "index writer was killed" in reason or "No space left" in reason:
        # Tantivy does not tell why its writing thread died.
        there = next(path for path in (folder, *folder.parents) if path.exists())
        free = shutil.disk_usage(there).free / 1e6
        says = f"the lexical index in {folder} cannot be written; the disk has {free:,.1f} MB free"
        said = f"{says}: free some space and run the same command again; its last commit is intact"
        return SondeError(said, code=DISK_FULL)
    if "Input/output error" in reason:
        return SondeError(f"the disk of {folder} failed (Input/output error): {CHECK_DISK}", code=DISK_FAILED)
    if "Read-only" in reason or "ermission" in reason:
        return SondeError(f"{folder} cannot be written ({' '.join(reason.split())}): check the permissions")
    return damaged_index(folder, reason)


FIELDS = {"row": "u64", "language": "text", "text": "text"}
"""The fields of an index and their types, as Tantivy names them."""
MAGIC = 1337
TAIL = struct.Struct("<II")  # length of the JSON footer, magic number
PLACES = struct.Struct("<I")  # bytes of the table at the end of a file of several fields
CHUNK = 1 << 20


ATTEMPTS = 100
"""How often the files are checked again where a writer commits meanwhile, and removes what it has merged."""
_CHECKED: set[tuple[str, int, int, int]] = set()
"""Path, inode, time and size of the files whose checksums this process found right; Tantivy never changes a file."""


def refuse_damaged(folder: Path) -> None:
    """Check the files of the last commit that this process has not checked yet: Tantivy aborts on some damaged ones.

    Raises:
        SondeError: A file is missing or damaged.
    """
    for _ in range(ATTEMPTS):
        before = (folder / "meta.json").read_bytes()
        problems = check_files(folder, known=_CHECKED)
        if not problems:
            return
        if (folder / "meta.json").read_bytes() == before:
            raise damaged_index(folder, problems[0])


def check_files(folder: Path, known: set[tuple[str, int, int, int]] | None = None) -> list[str]:
    """Return one line for every damaged or missing file of the index's last commit.

    Args:
        folder: Of the index.
        known: Files that need no check; those that are found sound are added.
    """
    try:
        meta = read_json(folder / "meta.json")
        names = [str(segment["segment_id"]).replace("-", "") for segment in meta["segments"]]
        committed = _deletions(meta)
        fields = {field["name"]: field["type"] for field in meta["schema"]}
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return [f"{folder}: meta.json is unreadable"]
    if fields != FIELDS:
        return [f"{folder}: its fields are {', '.join(map(str, fields))}"]
    problems = []
    for name in names:
        found = sorted(folder.glob(f"{glob.escape(name)}.*"))
        # Other deletions are not committed: a writer may be writing them now.
        files = [file for file in found if file.suffix != ".del" or file.name in committed]
        problems += [problem for file in files if (problem := _problem_of(file, known))]
        problems += [] if files else [f"{folder}: segment {name} is missing"]
    problems = problems or [problem for segment in meta["segments"] if (problem := _miscounted(folder, segment))]
    problems += [f"{folder / name} is missing" for name in sorted(committed) if not (folder / name).exists()]
    return problems


def _miscounted(folder: Path, segment: Mapping[str, Any]) -> str | None:
    """Compare the numbers in meta.json with the files: Tantivy aborts the process where they differ."""
    count = _passages_in(folder / f"{str(segment['segment_id']).replace('-', '')}.fieldnorm")
    deletes = segment.get("deletes") or {"num_deleted_docs": 0}
    if segment.get("max_doc") == count and deletes.get("num_deleted_docs") in range(count + 1):
        return None
    return f"{folder}: meta.json has other numbers of passages than segment {segment['segment_id']}"


def _passages_in(path: Path) -> int:
    """Return the passages of a segment by its lengths of texts: a byte for each passage and text field."""
    if not path.exists():
        return 0
    size = path.stat().st_size
    with path.open("rb") as stream:
        stream.seek(size - TAIL.size)
        end = size - TAIL.size - TAIL.unpack(stream.read())[0] - PLACES.size
        stream.seek(max(0, end))
        (places,) = PLACES.unpack(stream.read(PLACES.size))  # where each field begins, after the lengths
    return (end - places) // list(FIELDS.values()).count("text")


def _problem_of(path: Path, known: set[tuple[str, int, int, int]] | None) -> str | None:
    try:
        found = path.stat()
        key = (str(path), found.st_ino, found.st_mtime_ns, found.st_size)
        if known is not None and key in known:
            return None
        problem = _problem(path)
    except FileNotFoundError:
        return f"{path} is missing"
    if known is not None and not problem:
        known.add(key)
    return problem


def _problem(path: Path) -> str | None:
    size = path.stat().st_size
    with path.open("rb") as stream:
        stream.seek(max(0, size - TAIL.size))
        tail = stream.read()
        length, magic = TAIL.unpack(tail) if len(tail) == TAIL.size else (0, 0)
        body = size - TAIL.size - length
        if magic != MAGIC or body < 0 or length > LARGEST:
            return f"{path}: cut off"
        stream.seek(body)
        try:
            expected = json.loads(stream.read(length))["crc"]
        except (ValueError, KeyError, TypeError):
            return f"{path}: its footer is unreadable"
        stream.seek(0)
        checksum = 0
        while body > 0 and (chunk := stream.read(min(CHUNK, body))):
            checksum = zlib.crc32(chunk, checksum)
            body -= len(chunk)
    return None if checksum == expected else f"{path}: checksum {checksum:08x} instead of {expected:08x}"


def _deletions(meta: Mapping[str, Any]) -> set[str]:
    """Return the names of the files in which the deletions of the last commit are."""
    deletes = [
        (each["segment_id"].replace("-", ""), each["deletes"]) for each in meta["segments"] if each.get("deletes")
    ]
    return {f"{name}.{deleted['opstamp']}.del" for name, deleted in deletes}


def _drop_leftovers(folder: Path) -> None:
    """Remove deletions that a writer wrote down and did not commit: the next writer gives its own the same name."""
    named = _deletions(read_json(folder / "meta.json"))
    for path in folder.glob("*.del"):
        if path.name not in named:
            with suppress(PermissionError):  # a system that keeps files while they are open
                path.unlink()


# More threads or memory do not index faster here, because the analysis, not the index, takes the time.
THREADS, HEAP_BYTES = 1, 64_000_000
TITLE_WEIGHT = 2


@dataclass(frozen=True, slots=True)
class LexicalEntry:
    """One passage to be indexed, under its row; `language` in any form that `normalise` knows, or None."""

    row: int
    title: str
    text: str
    language: str | None = None


class LexicalWriter:
    """The one writer of an index; as a context, it drops what was not committed."""

    def __init__(self, index: Index, folder: Path, committed: Callable[[], None]) -> None:
        self._folder, self._committed = folder, committed
        with tantivy_errors(folder):
            self._writer = index.writer(HEAP_BYTES, THREADS)
            _drop_leftovers(folder)
        self._schema = index.schema
        self._state = read_state(folder)

    def add(self, entries: Iterable[LexicalEntry]) -> int:
        """Index entries and return how many there were; a title counts twice, as two words would.

        Raises:
            SondeError: The index cannot be written, a full disk among the reasons.
        """
        count = 0
        for entry in entries:
            document = self._document(entry)
            with tantivy_errors(self._folder):
                self._writer.add_document(document)
            count += 1
        return count

    def delete(self, rows: Iterable[int]) -> None:
        """Delete rows; one that is not there is no error. A row can be added again afterwards."""
        chosen = list(rows)
        if not chosen:
            return
        with tantivy_errors(self._folder):
            # The delete by term takes every number for a signed one, and so misses rows, which are unsigned.
            self._writer.delete_documents_by_query(Query.term_set_query(self._schema, "row", chosen))

    def delete_from(self, row: int) -> None:
        """Delete this row and every later one."""
        with tantivy_errors(self._folder):
            every = Query.range_query(self._schema, "row", FieldType.Unsigned, lower_bound=row)
            self._writer.delete_documents_by_query(every)

    def commit(self, through_row: int, settled: int = 0) -> LexicalState:
        """Make everything since the last commit durable and visible, and say what the index now holds.

        Args:
            through_row: Every living row below this one is in the index.
            settled: The caller's tombstones that the statistics no longer count.

        Raises:
            SondeError: The index cannot be written; the last commit stays as it was.
        """
        coming = LexicalState(through_row, settled)
        with tantivy_errors(self._folder):
            announce(self._folder, self._state, coming)
            self._writer.commit()
            _share(self._folder)
            confirm(self._folder, coming)
        self._state = coming
        self._committed()
        return coming

    def close(self) -> None:
        """Drop what was not committed, wait for merges, and let another writer in."""
        with tantivy_errors(self._folder):
            self._writer.rollback()
            self._writer.wait_merging_threads()
        _share(self._folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # After a failed write, closing fails for the same reason, and the first error tells it better.
        with suppress(SondeError) if error else nullcontext():
            self.close()

    def _document(self, entry: LexicalEntry) -> Document:
        language = normalise(entry.language) or UNKNOWN
        text = " ".join([entry.title] * TITLE_WEIGHT + [entry.text]) if entry.title else entry.text
        fields = {"row": entry.row, "language": language, "text": " ".join(analyzer(language).terms(text))}
        return Document.from_dict(fields, self._schema)
