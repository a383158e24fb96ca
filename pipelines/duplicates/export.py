"""An export without the duplicates."""

import csv
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from ...indexer.collection import Collection
from ...indexer.errors import SondeError, UsageError
from ...indexer.export import rows
from ...indexer.fields import plain
from ...indexer.files import write_durably
from .finding import Duplicates

SUFFIXES = (".jsonl", ".csv")


def check_target(path: Path) -> None:
    """Check where an export is to go, before the work is done.

    Raises:
        UsageError: Its suffix is none that can be written.
        SondeError: Its folder does not exist.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise UsageError(f"cannot write {path.name!r}: the name must end in {', '.join(SUFFIXES)}")
    if not path.absolute().parent.is_dir():
        raise SondeError(f"cannot write {path}: the folder {path.absolute().parent} does not exist")


def write_without(collection: Collection, found: Duplicates, path: Path) -> int:
    """Write all documents but the redundant ones to a JSONL or CSV file; return how many. It appears when whole.

    Raises:
        UsageError: The suffix is none of these.
        SondeError: The file cannot be written.
    """
    check_target(path)
    redundant, count = found.redundant, 0

    def kept() -> Iterator[dict[str, Any]]:
        nonlocal count
        for row in rows(collection):
            if row["id"] not in redundant:
                count += 1
                yield {name: plain(value) for name, value in row.items()}

    write_durably(path, lambda stream: (_csv if path.suffix.lower() == ".csv" else _jsonl)(kept(), stream))
    return count


def _jsonl(documents: Iterator[dict[str, Any]], stream: IO[bytes]) -> None:
    for row in documents:
        stream.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")


def _csv(documents: Iterator[dict[str, Any]], stream: IO[bytes]) -> None:
    import io

    text = io.TextIOWrapper(stream, encoding="utf-8", newline="", write_through=True)
    first = next(documents, None)
    if first is not None:
        writer = csv.DictWriter(text, list(first))
        writer.writeheader()
        for row in itertools.chain([first], documents):
            writer.writerow(
                {n: json.dumps(v, ensure_ascii=False) if isinstance(v, list) else v for n, v in row.items()}
            )
    text.detach()
