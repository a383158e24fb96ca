"""Looking after a collection: report, delete, compact, verify, repair, read out."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ...indexer.arguments import Ids
from ...indexer.errors import UsageError
from ...indexer.progress import Notify, silent
from ...indexer.store import export as exporting
from ...indexer.upkeep.delete import CompactReport, compact
from ...indexer.upkeep.info import Info, info
from ...indexer.upkeep.repair import repair
from ...indexer.upkeep.verify import Finding, verify
from ...pipelines.analysis.selection import delete
from .opened import Opened

if TYPE_CHECKING:
    import pandas as pd


class Upkeep(Opened):
    """The methods that look after a collection.

    Example:
        >>> texts = ["Apples are red.", "Bananas are yellow.", "Cars need fuel."]
        >>> fruit = sonde.index(texts, to=folder / "fruit.sonde")
    """

    def info(self) -> Info:
        """Return what the collection holds: counts, model, index with its measured recall and latency, sizes.

        Example:
            >>> fruit.info().documents
            3
        """
        return info(self.stored)

    def delete(self, ids: Ids = (), *, where: str | None = None, progress: Notify = silent) -> int:
        """Delete documents by id (one or several) or by filter; return how many were deleted.

        Raises:
            SondeError: An id does not exist (nothing is deleted then), or another process is writing.
            UsageError: The filter cannot be right, or neither ids nor a filter were given.

        Example:
            >>> fruit.delete(where="title = 'no such title'")
            0
        """
        return delete(self.stored, ids, where, progress)

    def compact(self, *, progress: Notify = silent) -> CompactReport:
        """Rewrite the collection without tombstones and with its segments merged.

        Raises:
            SondeError: Another process is writing, or the disk is full; the collection is then as it was.

        Example:
            >>> fruit.compact().removed
            0
        """
        return compact(self.path, notify=progress)

    def verify(self) -> list[Finding]:
        """Check every digest and count, and both derived indexes against the truth; no findings means all is well.

        Example:
            >>> fruit.verify()
            []
        """
        return verify(self.stored)

    def repair(self, *, progress: Notify = silent) -> list[str]:
        """Rebuild what `verify` finds broken, as far as it can be derived; return what was done.

        Raises:
            SondeError: Vectors are lost whose texts must be embedded anew and whose model cannot be had.

        Example:
            >>> fruit.repair()
            []
        """
        return repair(self.stored, progress)

    def rows(self, *, vectors: bool = False, start: int = 0, count: int | None = None) -> Iterator[dict[str, Any]]:
        """Yield documents as dictionaries: id, title, text, metadata, what runs say and, if asked, the embedding.

        Args:
            vectors: Whether each document's embedding is there too, under "vector".
            start: Place of the first document, 0 for the oldest.
            count: Documents to yield, all from `start` on where None.

        Raises:
            UsageError: `start` or `count` is below 0.

        Example:
            >>> [row["text"] for row in fruit.rows()][:1]
            ['Apples are red.']
        """
        if start < 0 or (count is not None and count < 0):
            raise UsageError(f"start is {start} and count {count}: neither may be below 0")
        every = start == 0 and count is None
        part = None if every else exporting.part_of(start, count)
        return exporting.rows(self.stored, vectors=vectors, choose=part)

    def to_pandas(self, *, vectors: bool = False) -> "pd.DataFrame":
        """Return all documents with their metadata as a DataFrame.

        Raises:
            MissingExtraError: pandas is not installed.

        Example:
            >>> fruit.to_pandas().columns.tolist()[:3]
            ['id', 'title', 'text']
        """
        return exporting.to_pandas(self.stored, vectors=vectors)
