"""Training data for a model of pairs: JSONL lines with premise, hypothesis and label."""

import gzip
import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...indexer.errors import SondeError, UsageError

LABELS = ("entailment", "neutral", "contradiction")


@dataclass(frozen=True, slots=True)
class Premise:
    """A text and its hypotheses, each with "entailment", "neutral" or "contradiction"."""

    text: str
    pairs: tuple[tuple[str, str], ...]


def read_pairs(path: Path) -> list[Premise]:
    """Read pairs; neighbouring lines of one premise become one `Premise`.

    Args:
        path: JSONL, perhaps gzipped, with "premise", "hypothesis" and "label" in each line.

    Raises:
        UsageError: There is no such file, or no pair in it.
        SondeError: A line cannot be used; the message has its number.
    """
    found: list[tuple[str, list[tuple[str, str]]]] = []
    for number, row in read_lines(path):
        premise, hypothesis, label = (_text(row, name, path, number) for name in ("premise", "hypothesis", "label"))
        if label not in LABELS:
            raise SondeError(f"{path}, line {number}: the label is {label!r}: give one of {', '.join(LABELS)}")
        if not found or found[-1][0] != premise:
            found.append((premise, []))
        found[-1][1].append((hypothesis, label))
    if not found:
        raise UsageError(f"{path} holds no pairs: give lines of JSON with premise, hypothesis and label")
    return [Premise(text, tuple(pairs)) for text, pairs in found]


def write_pairs(path: Path, pairs: Iterable[tuple[str, str, str]]) -> None:
    """Write (premise, hypothesis, label) as `read_pairs` reads them, without compression."""
    with path.open("w", encoding="utf-8") as file:
        for premise, hypothesis, label in pairs:
            row = {"premise": premise, "hypothesis": hypothesis, "label": label}
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


def read_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the objects of a JSONL file with their line numbers, from 1; empty lines are passed over.

    Raises:
        UsageError: There is no such file.
        SondeError: A line is no JSON object, or the file is damaged.
    """
    if not path.is_file():
        raise UsageError(f"there is no file {path}")
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield number, _object(line, path, number)
    except (OSError, UnicodeDecodeError, EOFError) as error:
        raise SondeError(f"{path} cannot be read: {error}") from error


def digest_of(*parts: object) -> str:
    """Return a digest of data and settings, to tell one training run from another."""
    return hashlib.sha256("\x1f".join(map(repr, parts)).encode()).hexdigest()


def _object(line: str, path: Path, number: int) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise SondeError(f"{path}, line {number} is no JSON: {error}") from error
    if not isinstance(row, dict):
        raise SondeError(f"{path}, line {number} is no JSON object")
    return row


def _text(row: dict[str, Any], name: str, path: Path, number: int) -> str:
    value = row.get(name)
    if not isinstance(value, str) or not value.strip():
        raise SondeError(f"{path}, line {number}: {name!r} must be a text, not {value!r}")
    return value
