"""Selections: documents named by their numbers, as maps name them, and what can be done with them."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ...indexer.errors import Ids, as_texts
from ...indexer.store.documents import DocumentText, document_texts, numbers_by_id
from ...indexer.store.export import write_export
from ...indexer.store.runs import Run, assignments_of
from ...indexer.store.view import StoredDocument
from ...pipelines.analysis.corpus import Change, Tagged, tag
from ...pipelines.compare import SAMPLE, against_rest
from ...pipelines.map.stored import choices, coloring
from ...pipelines.plots.colors import Coloring
from .opened import Opened


class Selecting(Opened):
    """The methods that work on documents by number; a number stays with its document until the document changes.

    Example:
        >>> rows = [{"id": n, "text": f"{word} {n}", "stars": n} for n, word in enumerate(["parcel", "battery"] * 4)]
        >>> shop = sonde.index(rows, to=folder / "shop.sonde", id="id")
    """

    def numbers(self, ids: Ids) -> dict[str, int]:
        """Return the numbers of documents by id; unknown ids are left out.

        Raises:
            SondeError: The collection cannot be read.

        Example:
            >>> sorted(shop.numbers(["3", "0", "nobody"]))
            ['0', '3']
        """
        with self.stored.view() as view:
            return numbers_by_id(view.catalog, as_texts(ids, "id"))

    def numbered(self, docs: Sequence[int]) -> list[StoredDocument]:
        """Return the documents with these numbers, in ascending order; numbers that no document has are left out.

        Raises:
            SondeError: The collection cannot be read.

        Example:
            >>> docs = sorted(shop.numbers(["0", "2", "4", "6"]).values())
            >>> [document.text for document in shop.numbered(docs[:2])]
            ['parcel 0', 'parcel 2']
        """
        with self.stored.view() as view:
            return list(view.documents(docs).values())

    def beginnings(self, docs: Sequence[int], length: int) -> dict[int, DocumentText]:
        """Return documents by number, with the first `length` characters of their texts, in one pass over all texts.

        Raises:
            SondeError: The collection cannot be read.

        Example:
            >>> [found.text for found in shop.beginnings(docs[:2], 3).values()]
            ['par', 'par']
        """
        wanted = set(docs)
        with self.stored.view() as view:
            return {each.doc: each for each in document_texts(view.catalog, length) if each.doc in wanted}

    def documents_of(self, run: Run) -> np.ndarray:
        """Return the numbers of a run's documents, int64, ascending; a document with two labels is there twice.

        Example:
            >>> shop.tag("few", where="stars < 3").documents
            3
            >>> len(shop.documents_of(shop.run("few").run))
            3
        """
        with self.stored.view() as view:
            return assignments_of(view.catalog, run)[0]

    def colorings(self) -> list[str]:
        """Return everything that a map can be coloured by: runs as KIND:NAME, the newest first, then metadata fields.

        Raises:
            SondeError: The collection cannot be read.

        Example:
            >>> shop.colorings()
            ['tag:few', 'stars']
        """
        with self.stored.view() as view:
            return choices(view.catalog)

    def coloring(self, docs: np.ndarray, color: str) -> tuple[Coloring, bool]:
        """Return the colours of documents, and whether their numbers are days since the year 1.

        Args:
            docs: int64 [n] document numbers, ascending.
            color: One of `colorings`.

        Raises:
            UsageError: There is no such coloring.

        Example:
            >>> shop.coloring(np.array(docs), "stars")[0].names
            ('0', '2', '4', '6')
        """
        with self.stored.view() as view:
            return coloring(view.catalog, docs, color)

    def contrast_with_rest(self, docs: np.ndarray, sample: int = SAMPLE) -> tuple[tuple[str, float], ...]:
        """Return the terms that tell some documents from all others, with their z-scores, best first.

        Args:
            docs: int64, their numbers; those that no longer exist are left out.
            sample: Documents of each side in which terms are counted, at most.

        Raises:
            SondeError: The collection cannot be read.

        Example:
            >>> [term for term, _ in shop.contrast_with_rest(np.array(docs))]
            ['parcel']
        """
        with self.stored.view() as view:
            return against_rest(view, docs, sample)

    def tag_numbered(self, name: str, docs: np.ndarray, change: Change = "new") -> Tagged:
        """Put documents together under a name; `tag` does it by id or by filter.

        Args:
            name: The tag's.
            docs: int64, their numbers; those that no longer exist are left out.
            change: What becomes of a tag that already has this name: "new" refuses, "add" and "remove" change it,
                "replace" forgets it.

        Raises:
            UsageError: The name is not valid, the tag already exists, or no document would have it.
            SondeError: Another process is writing.

        Example:
            >>> shop.tag_numbered("few", np.array(docs), "add").documents
            5
        """
        return tag(self.stored, name, docs=docs, change=change)

    def export_numbered(self, docs: np.ndarray, path: str | Path, *, vectors: bool = False) -> int:
        """Write documents to a Parquet, CSV or JSONL file by its suffix; return how many.

        Args:
            docs: int64, their numbers; those that no longer exist are left out.
            path: The file.
            vectors: Whether each document's embedding is written too.

        Raises:
            UsageError: The suffix is none of these.
            SondeError: The file cannot be written.

        Example:
            >>> shop.export_numbered(np.array(docs), folder / "parcels.csv")
            4
        """
        return write_export(self.stored, Path(path), vectors=vectors, choose=lambda _: docs)
