"""Training data for a reranker: queries with passages that answer them, perhaps with ones that do not."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...indexer.errors import SondeError, UsageError
from .pairs import read_lines


@dataclass(frozen=True, slots=True)
class Query:
    """A query, the passages that answer it, and passages known not to."""

    text: str
    right: tuple[str, ...]
    wrong: tuple[str, ...] = ()


def read_queries(path: Path) -> list[Query]:
    """Read queries; lines of the same query, wherever they stand, become one `Query`.

    Args:
        path: JSONL, perhaps gzipped, with "query" and "passage" in each line and, if wanted, "negatives", a list.

    Raises:
        UsageError: There is no such file, or no query in it.
        SondeError: A line cannot be used; the message has its number.
    """
    right: dict[str, dict[str, None]] = {}
    wrong: dict[str, dict[str, None]] = {}
    for number, row in read_lines(path):
        where = f"{path}, line {number}"
        query, passage = (_text(row.get(name), name, where) for name in ("query", "passage"))
        negatives = row.get("negatives") or []
        if not isinstance(negatives, list):
            raise SondeError(f"{where}: 'negatives' must be a list of texts, not {negatives!r}")
        right.setdefault(query, {})[passage] = None
        wrong.setdefault(query, {}).update((_text(each, "negatives", where), None) for each in negatives)
    if not right:
        raise UsageError(f"{path} holds no queries: give lines of JSON with query and passage")
    return [
        Query(query, tuple(passages), tuple(text for text in wrong[query] if text not in passages))
        for query, passages in right.items()
    ]


def _text(value: Any, name: str, where: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise SondeError(f"{where}: {name!r} must be a text, not {value!r}")
    return value
