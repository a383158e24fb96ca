"""The catalogs of several collections, the shards of one, read as one catalog."""

import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

import numpy as np

from ..errors import SondeError
from .catalog import Catalog
from .fields import Field
from .numbers import Numbers
from .segments import Segment

_SELECT = re.compile(r"SELECT (?:DISTINCT )?(.*?) FROM ", re.DOTALL)
_WANTED = re.compile(r"(?:\w\.)?(doc|row|key) IN \(\?\)")


class JoinedCatalog(Catalog):
    """Look-ups over the catalogs of all shards; documents and passages have the numbers of the whole.

    Only look-ups by number or key are possible, and statements whose rows need no more than to be put together.
    """

    can_have_runs = False

    def __init__(
        self,
        parts: Mapping[int, Catalog],
        numbers: Numbers,
        shard_of: Callable[[str], int],
        properties: Mapping[str, Any],
    ) -> None:
        """Join open catalogs.

        Args:
            parts: The catalog of each shard that has documents, by its number.
            numbers: The numbers of the whole.
            shard_of: Returns the shard of a document's key.
            properties: Of the whole.
        """
        self.parts = parts
        self.numbers = numbers
        self._shard_of = shard_of
        self._properties = properties

    @property
    def connection(self) -> sqlite3.Connection:
        """Refused: no statement may see one shard alone."""
        raise SondeError("sharded collections do not support this yet")

    def close(self) -> None:
        """Nothing: each shard closes its own catalog."""

    def get(self, name: str, default: Any = None) -> Any:
        """Return a property of the whole."""
        return self._properties.get(name, default)

    def fields(self) -> dict[str, Field]:
        """Return the metadata fields, which are the same in all shards."""
        return next((part.fields() for part in self.parts.values()), {})

    def segments(self) -> list[Segment]:
        """Return the segments of all shards; their numbers and first rows are those of their shards."""
        return [segment for part in self.parts.values() for segment in part.segments()]

    def counts(self) -> tuple[int, int, int]:
        """Return how many documents, live passages and tombstones there are."""
        counts = [part.counts() for part in self.parts.values()]
        documents, passages, tombstones = (sum(each) for each in zip((0, 0, 0), *counts, strict=True))
        return documents, passages, tombstones

    def select(self, sql: str) -> Iterator[tuple[Any, ...]]:
        """Run `sql` in every shard and yield all rows; the columns `doc` and `row` get the numbers of the whole."""
        columns, _ = _read(sql)
        return chain.from_iterable(
            self._renumbered(shard, columns, part.select(sql)) for shard, part in self.parts.items()
        )

    def select_in(self, sql: str, values: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
        """Look values up, each in its own shard; rows that begin with a number are sorted by it."""
        columns, wanted = _read(sql)
        found = [
            row
            for shard, some in self._by_shard(wanted, values).items()
            for row in self._renumbered(shard, columns, self.parts[shard].select_in(sql, some))
        ]
        if len(values) > 1 and columns and columns[0][0] == 0:
            found.sort(key=lambda row: row[0])
        return iter(found)

    def documents_where(self, sql: str, parameters: Iterable[Any]) -> np.ndarray:
        """Return int64 numbers of the documents which a compiled filter accepts, ascending."""
        given = tuple(parameters)
        found = [self.numbers.documents(shard, part.documents_where(sql, given)) for shard, part in self.parts.items()]
        return np.sort(np.concatenate([np.empty(0, np.int64), *found]))

    def _by_shard(self, wanted: str, values: Sequence[Any]) -> dict[int, list[Any]]:
        """Return the values that each shard knows, with its own numbers."""
        found: dict[int, list[Any]] = {}
        for value in values:
            if wanted == "key":
                shard, own = self._shard_of(value), value
            else:
                shard, own = self.numbers.own(wanted, value)
            if shard in self.parts:
                found.setdefault(shard, []).append(own)
        return found

    def _renumbered(
        self, shard: int, columns: Sequence[tuple[int, str]], rows: Iterable[tuple[Any, ...]]
    ) -> Iterator[tuple[Any, ...]]:
        if not columns:
            yield from rows
            return
        for row in rows:
            values = list(row)
            for place, kind in columns:
                values[place] = self.numbers.whole(kind, shard, values[place])
            yield tuple(values)


@lru_cache(maxsize=64)
def _read(sql: str) -> tuple[tuple[tuple[int, str], ...], str]:
    """Return the places of the columns `doc` and `row` in a statement, and what it looks up: doc, row or key.

    Raises:
        SondeError: It looks up something else.
    """
    select, wanted = _SELECT.match(sql), _WANTED.search(sql)
    if select is None or ("(?)" in sql and wanted is None):
        raise SondeError("sharded collections do not support this yet")
    names = [column.strip().rpartition(".")[2] for column in _columns(select[1])]
    return tuple((place, name) for place, name in enumerate(names) if name in ("doc", "row")), wanted[
        1
    ] if wanted else ""


def _columns(listed: str) -> Iterator[str]:
    """Yield the columns of a SELECT; commas within brackets do not separate them."""
    depth, start = 0, 0
    for place, character in enumerate(listed):
        depth += (character == "(") - (character == ")")
        if character == "," and not depth:
            yield listed[start:place]
            start = place + 1
    yield listed[start:]
