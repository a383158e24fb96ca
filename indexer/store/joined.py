"""The catalogs and lexical indexes of all shards, read as one catalog and one index with row numbers of their own."""

import json
import re
import sqlite3
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from heapq import merge
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from tantivy import DocAddress, Index, Query

from ..errors import SondeError
from ..lexical.index import LexicalIndex, within
from ..lexical.writer import LexicalState, confirm, read_state, refuse_damaged, refuse_other_files, tantivy_errors
from ..small_files import read_json
from .catalog import Catalog, in_slices
from .fields import Field
from .segments import Segment

_SELECT = re.compile(r"SELECT (?:DISTINCT )?(.*?) FROM ", re.DOTALL)
_WANTED = re.compile(r"(?:\w\.)?(doc|row|key) IN \(\?\)")


class Numbers:
    """Translates between the numbers of shards and those of the whole.

    A document has one number: its shard's is that of the whole. It tells the shard, by its remainder, and grows in the
    order in which documents first came. A row of the whole is the passage's place among all passages in the order in
    which they came. Both orders are those of one collection, so ties, samples and seeds have the same outcome.
    """

    def __init__(self, shards: int, orders: Mapping[int, np.ndarray]) -> None:
        """Number the passages.

        Args:
            shards: How many shards there are.
            orders: By shard, int64 [rows], ascending: when each passage came, as `order.npy` says.
        """
        self.shards = shards
        numbers = np.repeat(np.array(list(orders), np.int64), [len(order) for order in orders.values()])
        own = np.concatenate([np.empty(0, np.int64), *(np.arange(len(order)) for order in orders.values())])
        came = np.concatenate([np.empty(0, np.int64), *orders.values()])
        order = np.argsort(came, kind="stable")
        self.shard_of, self.own_rows = numbers[order].astype(np.int32), own[order]
        self.rows = {shard: np.flatnonzero(self.shard_of == shard) for shard in orders}
        """By shard, int64 [rows], ascending: the row of the whole that each of its rows is."""

    def __len__(self) -> int:
        return len(self.own_rows)

    def own(self, kind: str, number: int) -> tuple[int, int]:
        """Return the shard of a document ("doc") or passage ("row") of the whole, and its number there."""
        if kind == "doc":
            return number % self.shards, number
        if not 0 <= number < len(self):
            return -1, -1
        return int(self.shard_of[number]), int(self.own_rows[number])

    def row(self, shard: int, own: int | None) -> int | None:
        """Return the row of the whole that a shard's row is; None stays None."""
        return None if own is None else int(self.rows[shard][own])


class JoinedCatalog(Catalog):
    """Look-ups over the catalogs of all shards, and the catalog of their runs; passages have the rows of the whole.

    Only look-ups by number or key are possible, and statements whose rows need no more than to be put together.
    """

    def __init__(
        self,
        parts: Mapping[int, Catalog],
        numbers: Numbers,
        shard_of: Callable[[str], int],
        properties: Mapping[str, Any],
        runs: Catalog | None = None,
    ) -> None:
        """Join open catalogs.

        Args:
            parts: The catalog of each shard that has documents, by its number.
            numbers: The numbers of the whole.
            shard_of: Returns the shard of a document's key.
            properties: Of the whole.
            runs: The catalog that has the runs, and the properties that can be set; None if there is none yet.
        """
        self.parts = parts
        self.numbers = numbers
        self._shard_of = shard_of
        self._properties = properties
        self._runs = runs

    @property
    def connection(self) -> sqlite3.Connection:
        """Refused: no statement may see one shard alone."""
        raise SondeError("sharded collections do not support this yet")

    @property
    def runs(self) -> Catalog:
        """The catalog that holds the runs of the whole."""
        self._runs = self._runs or Catalog.empty()
        return self._runs

    @property
    def each(self) -> Sequence[Catalog]:
        """The catalogs that hold the documents: those of the shards."""
        return tuple(self.parts.values())

    def close(self) -> None:
        """Nothing: each shard closes its own catalog."""

    def get(self, name: str, default: Any = None) -> Any:
        """Return a property of the whole."""
        return self._properties[name] if name in self._properties else self.runs.get(name, default)

    def set(self, name: str, value: Any) -> None:
        """Set a property of the whole."""
        self.runs.set(name, value)

    def remove(self, name: str) -> None:
        """Remove a property of the whole, if there is one."""
        self.runs.remove(name)

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
        """Run `sql` in every shard and yield all rows; the column `row` gets the number of the whole."""
        rows = _read(sql).rows
        return chain.from_iterable(
            self._renumbered(shard, rows, part.select(sql)) for shard, part in self.parts.items()
        )

    def ordered(self, sql: str) -> Iterator[tuple[Any, ...]]:
        """Run `sql`, which orders its rows by documents, the first column, and yield them in this order."""
        rows = _read(sql).rows
        found = (self._renumbered(shard, rows, part.ordered(sql)) for shard, part in self.parts.items())
        return merge(*found, key=itemgetter(0))

    def select_in(self, sql: str, values: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
        """Look values up, each in its own shard; rows that begin with a number are sorted by it, slice by slice."""
        read = _read(sql)
        for some in in_slices(values):
            found = [
                row
                for shard, own in self._by_shard(read.wanted, some).items()
                for row in self._renumbered(shard, read.rows, self.parts[shard].select_in(sql, own))
            ]
            if read.numbered and len(some) > 1:
                found.sort(key=itemgetter(0))
            yield from found

    def documents_where(self, sql: str, parameters: Iterable[Any]) -> np.ndarray:
        """Return int64 numbers of the documents which a compiled filter accepts, ascending."""
        given = tuple(parameters)
        found = [part.documents_where(sql, given) for part in self.parts.values()]
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
        self, shard: int, columns: Sequence[int], rows: Iterable[tuple[Any, ...]]
    ) -> Iterator[tuple[Any, ...]]:
        if not columns:
            yield from rows
            return
        for row in rows:
            values = list(row)
            for place in columns:
                values[place] = self.numbers.row(shard, values[place])
            yield tuple(values)


@dataclass(frozen=True, slots=True)
class _Read:
    """A statement: the places of its columns `row`, whether the first one is a number, and what it looks up."""

    rows: tuple[int, ...]
    numbered: bool
    wanted: str


@lru_cache(maxsize=64)
def _read(sql: str) -> _Read:
    """Read a statement.

    Raises:
        SondeError: It looks up something else than doc, row or key.
    """
    select, wanted = _SELECT.match(sql), _WANTED.search(sql)
    if select is None or ("(?)" in sql and wanted is None):
        raise SondeError("sharded collections do not support this yet")
    names = [column.strip().rpartition(".")[2] for column in _columns(select[1])]
    rows = tuple(place for place, name in enumerate(names) if name == "row")
    return _Read(rows, names[0] in ("doc", "row"), wanted[1] if wanted else "")


def _columns(listed: str) -> Iterator[str]:
    """Yield the columns of a SELECT; commas within brackets do not separate them."""
    depth, start = 0, 0
    for place, character in enumerate(listed):
        depth += (character == "(") - (character == ")")
        if character == "," and not depth:
            yield listed[start:place]
            start = place + 1
    yield listed[start:]


class JoinedLexicalIndex(LexicalIndex):
    """The indexes of several shards as one index that is only read.

    Tantivy keeps an index in segments, and computes document frequencies and the average length over all of them. A
    temporary folder with links to the segments of all shards is therefore an index with the statistics of all shards.
    """

    def __init__(self, index: Index, folder: Path, shards: np.ndarray, rows: Sequence[np.ndarray]) -> None:
        """Read a folder that `join` made.

        Args:
            index: The joined index.
            folder: Where its links are.
            shards: int64 [segments], the shard of each segment.
            rows: For each shard, int64 [rows], the row of the whole that each of its rows is, ascending.
        """
        self._shards = shards
        self._starts = np.cumsum([0, *(len(each) for each in rows)])
        self._rows = np.concatenate(rows) if rows else np.empty(0, np.int64)
        self._own = np.empty(len(self._rows), np.int64)
        for each in rows:
            self._own[each] = np.arange(len(each))
        super().__init__(index, folder)

    @classmethod
    def join(cls, folders: Sequence[Path], rows: Sequence[np.ndarray]) -> "JoinedLexicalIndex":
        """Join the indexes in these folders; `rows` is as for the class.

        Raises:
            SondeError: One is missing, damaged, or of another version of Sonde.
        """
        links = tempfile.TemporaryDirectory(prefix="sonde-", ignore_cleanup_errors=True)
        there, metas = Path(links.name), [_meta(folder, Path(links.name)) for folder in folders]
        segments = [segment for meta in metas for segment in meta["segments"]]
        joined = metas[0] | {"segments": segments, "opstamp": max(meta["opstamp"] for meta in metas)}
        (there / "meta.json").write_text(json.dumps(joined))
        confirm(there, LexicalState())
        shards = np.repeat(np.arange(len(metas)), [len(meta["segments"]) for meta in metas])
        with tantivy_errors(there):
            found = cls(Index.open(str(there)), there, shards, rows)
        found._links = links
        return found

    _links: tempfile.TemporaryDirectory[str]

    def _numbered(self, rows: np.ndarray, addresses: Sequence[DocAddress]) -> np.ndarray:
        shards = self._shards[np.array([address.segment_ord for address in addresses], np.int64)]
        return self._rows[self._starts[shards] + rows]

    def _among(self, query: Query, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        # A row of the whole has the same number within its shard as rows of other shards, which are found as well.
        own = np.unique(self._own[rows])
        limit = min(self.rows, len(own) * (len(self._starts) - 1))
        scores, found = self._hits(within(self._schema, query, own.tolist()), max(limit, 1))
        wanted = np.isin(found, rows)
        return scores[wanted], found[wanted]


def _meta(folder: Path, links: Path) -> dict:
    """Check one index, link to its files, and return its list of segments."""
    read_state(folder)
    refuse_other_files(folder)
    refuse_damaged(folder)
    meta = read_json(folder / "meta.json")
    own = {str(segment["segment_id"]).replace("-", "") for segment in meta["segments"]}
    for path in folder.iterdir():
        if path.name.partition(".")[0] in own:
            (links / path.name).symlink_to(path.absolute())
    return meta
