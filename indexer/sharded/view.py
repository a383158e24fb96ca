"""One generation of a sharded collection, seen as one collection."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..encoder import ModelSpec
from ..errors import SondeError
from ..late import LateIndex
from ..store.derived import Loaded, lexical_folder
from ..store.joined import JoinedCatalog, JoinedLexicalIndex, Numbers
from ..store.segments import Segments
from ..store.view import Generation, View

if TYPE_CHECKING:
    from ..ann import AnnIndex
    from ..lexical import LexicalIndex
    from .collection import ShardedCollection


class JoinedSegments(Segments):
    """The embeddings of all shards under the rows of the whole."""

    def __init__(self, parts: Mapping[int, Segments], numbers: Numbers, dimension: int) -> None:
        self.parts = parts
        self.numbers = numbers
        self.dimension = dimension

    def __len__(self) -> int:
        return len(self.numbers)

    def read(self, rows: np.ndarray) -> np.ndarray:
        """Return the vectors of `rows` (int64 [n], in any order) as float32 [n, d]."""
        rows = np.asarray(rows, dtype=np.int64)
        if len(rows) and (rows.min() < 0 or rows.max() >= len(self)):
            raise SondeError(f"rows {rows.min():,} to {rows.max():,} are not all in the segments: run `sonde verify`")
        found = np.empty((len(rows), self.dimension), np.float32)
        shards, own = self.numbers.shard_of[rows], self.numbers.own_rows[rows]
        for shard, part in self.parts.items():
            mine = np.flatnonzero(shards == shard)
            if len(mine):
                found[mine] = part.read(own[mine])
        return found

    def chunks(self, size: int) -> Iterator[tuple[int, np.ndarray]]:
        """Yield (first row, float32 [m, d]) over all rows in order, at most `size` rows at a time."""
        for start in range(0, len(self), size):
            yield start, self.read(np.arange(start, min(start + size, len(self))))

    def raw(self) -> Iterator[np.ndarray]:
        """Yield the float16 [n, d] vectors in order."""
        return (vectors.astype(np.float16) for _, vectors in self.chunks(65_536))


class JoinedLate:
    """The late indexes of all shards that learned the same, under the rows of the whole.

    Attributes:
        parts: The index of each shard that has one, by its number.
        codec: What they have learned.
        info: What one of them says of itself.
    """

    def __init__(self, parts: Mapping[int, LateIndex], numbers: Numbers) -> None:
        first = next(iter(parts.values()))
        self.codec, self.info = first.codec, first.info
        same = (first.info.codec, first.info.rarity)
        self.parts = {n: each for n, each in parts.items() if (each.info.codec, each.info.rarity) == same}
        self.numbers = numbers

    def read(self, rows: np.ndarray, keys: np.ndarray) -> list[np.ndarray | None]:
        """Return the pooled tokens of passages; see `LateIndex.read`."""
        found: list[np.ndarray | None] = [None] * len(rows)
        shards, own = self.numbers.shard_of[rows], self.numbers.own_rows[rows]
        for shard, part in self.parts.items():
            mine = np.flatnonzero(shards == shard)
            for place, packed in zip(mine.tolist(), part.read(own[mine], keys[mine]), strict=True):
                found[place] = packed
        return found

    def covered(self, rows: int) -> np.ndarray:
        """Return bool [rows]: which rows have an entry."""
        found = np.zeros(rows, bool)
        for shard, part in self.parts.items():
            places = self.numbers.rows[shard]
            found[places] = part.covered(len(places))
        return found

    @property
    def bytes(self) -> int:
        """Size on disk."""
        return sum(path.stat().st_size for part in self.parts.values() for path in part.folder.glob("*"))

    @property
    def bytes_per_passage(self) -> int:
        """Mean bytes of an entry; 0 without entries."""
        counts = [sum(each.count for each in part.info.segments) for part in self.parts.values()]
        total = sum(n * part.bytes_per_passage for n, part in zip(counts, self.parts.values(), strict=True))
        return round(total / sum(counts)) if sum(counts) else 0


class JoinedGeneration(Generation):
    """One generation of all shards. Each shard keeps its own FAISS index; the lexical index is joined."""

    def __init__(
        self,
        number: int,
        spec: ModelSpec,
        numbers: Numbers,
        parts: Mapping[int, tuple[Path, Generation]],
        loaded: Loaded,
        elsewhere: bool = False,
    ) -> None:
        """Join the generations of shards, by shard with the folder of each.

        If embeddings are searched `elsewhere`, this process loads no FAISS index.
        """
        owners = np.full(len(numbers), -1, np.int64)
        for shard, (folder, part) in parts.items():
            if len(part.owners) != len(numbers.rows[shard]):
                said = f"{folder} has {len(part.owners):,} passages, but order.npy lists {len(numbers.rows[shard]):,}"
                raise SondeError(f"{said}: restore the collection from a backup")
            owners[numbers.rows[shard]] = part.owners
        segments = {shard: part.segments for shard, (_, part) in parts.items()}
        super().__init__(number, 1, spec, owners, JoinedSegments(segments, numbers, spec.dimension), loaded)
        self.numbers = numbers
        self.parts = parts
        self.elsewhere = elsewhere

    def owned_by(self, docs: np.ndarray) -> np.ndarray:
        """Return bool [rows]: whether each row is a passage of one of these documents (int64 [n], ascending)."""
        numbers, places = self._places
        return np.isin(numbers, docs, assume_unique=True)[places]

    @cached_property
    def _places(self) -> tuple[np.ndarray, np.ndarray]:
        """Return int64 [n], the documents, and int32 [rows], the place of each row's document among them.

        Numbers of documents are too far apart for a table of all of them.
        """
        numbers, places = np.unique(self.owners, return_inverse=True)
        return numbers, places.astype(np.int32)

    @cached_property
    def ann(self) -> "AnnIndex | None":
        """None: each shard has its own, which is loaded now if this process searches it."""
        for _, part in () if self.elsewhere else self.parts.values():
            _ = part.ann
        return None

    @cached_property
    def lexical(self) -> "LexicalIndex | None":
        """The lexical indexes of all shards as one, or None where one cannot be read."""
        if not self.parts or any(part.lexical is None for _, part in self.parts.values()):
            return None
        folders = [lexical_folder(folder, part.epoch) for folder, part in self.parts.values()]
        try:
            return JoinedLexicalIndex.join(folders, [self.numbers.rows[shard] for shard in self.parts])
        except (OSError, SondeError):
            return None


class JoinedView(View):
    """A generation together with the transactions of all shards."""

    def __init__(
        self, collection: "ShardedCollection", catalog: JoinedCatalog, generation: JoinedGeneration, parts: list[View]
    ) -> None:
        super().__init__(collection, catalog, generation)
        rows = (generation.numbers.rows[shard] for shard in generation.parts)
        self.parts = tuple(zip(parts, rows, strict=True))
        self.elsewhere = collection.elsewhere
        self.joined = generation

    @cached_property
    def late(self) -> JoinedLate | None:  # type: ignore[override]
        """The late indexes of the shards as one; None if no shard has one that can be read."""
        found = {int(part.collection.path.parent.name): part.late for part, _ in self.parts}
        known = {shard: index for shard, index in found.items() if index}
        return JoinedLate(known, self.joined.numbers) if known else None
