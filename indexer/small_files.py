"""Files of a collection or a model that may be damaged: small ones of JSON, lines of JSON, and headers of arrays.

A collection may come from a stranger, or lie on a failing disk. A sparse file of 3 GB takes no space on the disk, but
fills the memory when it is read. So a file of JSON is read only if it is small.
"""

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tokenize import TokenError
from typing import Any

from .files import write_durably

LARGEST = 1 << 24
"""Bytes of a file that is read. The largest that Sonde writes, of 1,000 shards, has 0.3 MB."""
LARGEST_OF_MODEL = 1 << 27
"""The same of a model's file; the largest known tokenizer has 35 MB."""
MOST_VALUES = 4_000_000
"""Values in a file. One takes 50 to 100 bytes of memory, and 3 in the file. 262,144 tokens and 515,000 merges have 1.8
million."""
DIGEST = "sha256"
"""The entry that holds the digest of all others."""

_HEADER = threading.Lock()
"""NumPy reads headers with `ast.parse`, which fails in Python 3.11 if two threads call it at the same time
(SystemError: AST constructor recursion depth mismatch)."""


def read_small(path: Path, most: int = LARGEST) -> bytes:
    """Return the content of a file.

    Raises:
        OSError: It cannot be read.
        ValueError: It has more than `most` bytes, or is no regular file, such as a pipe that never ends.
    """
    if not path.is_file() and path.exists():
        raise ValueError("it is not a regular file")
    with path.open("rb") as stream:
        content = stream.read(most + 1)
    if len(content) > most:
        raise ValueError(f"it is larger than {most:,} bytes")
    return content


def parsed(content: bytes | str) -> Any:
    """Return what JSON stands for.

    Raises:
        ValueError: It is not JSON, is nested too deeply, or has more than `MOST_VALUES` values.
    """
    marks = (",", "[", "{") if isinstance(content, str) else (b",", b"[", b"{")
    if sum(map(content.count, marks)) > MOST_VALUES:  # type: ignore[arg-type]
        raise ValueError(f"it has more than {MOST_VALUES:,} values")
    try:
        return json.loads(content)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def read_json(path: Path, most: int = LARGEST) -> Any:
    """Return what a file of JSON stands for.

    Raises:
        OSError: It cannot be read.
        ValueError: It is not JSON, is nested too deeply, or has more than `most` bytes.
    """
    return parsed(read_small(path, most))


def sealed(values: Mapping[str, Any]) -> bytes:
    """Return values as JSON, with the digest of all of them."""
    return json.dumps({**values, DIGEST: _digest(values)}, indent=1).encode()


def unsealed(content: bytes) -> dict[str, Any]:
    """Return the values in a file that `sealed` made; one of an earlier Sonde has no digest.

    Raises:
        ValueError: It is not a JSON object, or a value has changed since.
    """
    stored = parsed(content)
    if not isinstance(stored, dict):
        raise ValueError("it is not a JSON object")
    digest = stored.pop(DIGEST, None)
    if digest is not None and digest != _digest(stored):
        raise ValueError("its content does not match its digest")
    return stored


def _digest(values: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(dict(values), sort_keys=True).encode()).hexdigest()


@contextmanager
def reading_array() -> Iterator[None]:
    """Read the header of one .npy file at a time, with `np.load` or what it uses.

    Raises:
        ValueError: The bytes are no array. NumPy raises other errors too; an `OSError` stays one.
    """
    try:
        with _HEADER:
            yield
    except (EOFError, TypeError, SyntaxError, LookupError, OverflowError, MemoryError, TokenError) as error:
        reason = (str(error).splitlines() or [""])[0]
        raise ValueError(reason or type(error).__name__) from None


JUDGEMENTS = "judgements.jsonl"
"""The file of judgements in a collection's folder."""

LONGEST_LINE = 1 << 20
"""Bytes of a line; a longer one is damaged."""
_CHECKSUM = "checksum"


def sealed_line(values: Mapping[str, Any]) -> bytes:
    """Return the values as a line of JSON that ends with their checksum."""
    return json.dumps(dict(values) | {_CHECKSUM: _checksum(values)}, ensure_ascii=False).encode() + b"\n"


def sealed_lines(path: Path) -> Iterator[dict[str, Any] | None]:
    """Yield the values of each line, None for one that is damaged or cut off; none if the file does not exist.

    Raises:
        OSError: The file cannot be read.
    """
    if not path.exists():
        return
    with path.open("rb") as stream:
        while line := stream.readline(LONGEST_LINE):
            yield _unsealed_line(line) if line.endswith(b"\n") else None


def damaged_lines(path: Path) -> int:
    """Return how many lines of a file are damaged.

    Raises:
        OSError: The file cannot be read.
    """
    return sum(line is None for line in sealed_lines(path))


def drop_damaged(path: Path) -> int:
    """Remove the damaged lines of a file; return how many there were.

    Raises:
        OSError: The file cannot be read or written.
    """
    from filelock import FileLock

    with FileLock(path.with_name(path.name + ".lock")):
        lines = list(sealed_lines(path))
        sound = [sealed_line(line) for line in lines if line is not None]
        if len(sound) < len(lines):
            write_durably(path, lambda stream: stream.write(b"".join(sound)))
    return len(lines) - len(sound)


def _unsealed_line(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    return found if found.pop(_CHECKSUM, None) == _checksum(found) else None


def _checksum(values: Mapping[str, Any]) -> str:
    return hashlib.blake2b(json.dumps(dict(values), sort_keys=True).encode(), digest_size=8).hexdigest()
