"""Lines of JSON that are appended to a file, each with a checksum of its own."""

import json
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

from ..files import write_durably

JUDGEMENTS = "judgements.jsonl"
"""The file of judgements in a collection's folder."""

LONGEST = 1 << 20
"""Bytes of a line; a longer one is damaged."""
CHECKSUM = "checksum"


def sealed_line(values: Mapping[str, Any]) -> bytes:
    """Return the values as a line of JSON that ends with their checksum."""
    return json.dumps(dict(values) | {CHECKSUM: _checksum(values)}, ensure_ascii=False).encode() + b"\n"


def sealed_lines(path: Path) -> Iterator[dict[str, Any] | None]:
    """Yield the values of each line, None for one that is damaged or cut off; none if the file does not exist.

    Raises:
        OSError: The file cannot be read.
    """
    if not path.exists():
        return
    with path.open("rb") as stream:
        while line := stream.readline(LONGEST):
            yield _values(line) if line.endswith(b"\n") else None


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


def _values(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    return found if found.pop(CHECKSUM, None) == _checksum(found) else None


def _checksum(values: Mapping[str, Any]) -> str:
    return blake2b(json.dumps(dict(values), sort_keys=True).encode(), digest_size=8).hexdigest()
