"""A collection that is open: what every part of the Python API has."""

from pathlib import Path
from types import FunctionType
from typing import Any, Self

from ...indexer.encoder import Encoder
from ...indexer.store.collection import LoadEncoder, StoredCollection
from .arguments import checked


class Opened:
    """A collection that is open.

    Attributes:
        stored: The collection as it lies on disk, which the pipelines read. It may change between versions; all other
            attributes and methods are kept stable.
    """

    def __init_subclass__(cls, **given: Any) -> None:
        """Have the arguments of every public method checked."""
        super().__init_subclass__(**given)
        for name, value in list(vars(cls).items()):
            if isinstance(value, FunctionType) and not name.startswith("_"):
                setattr(cls, name, checked(value))

    def __init__(self, stored: StoredCollection) -> None:
        self.stored = stored

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        device: str = "auto",
        encoder: Encoder | None = None,
        loader: LoadEncoder | None = None,
    ) -> Self:
        """Open an existing collection; its model is loaded when a search first needs it.

        Args:
            path: The folder, `NAME.sonde`.
            device: Where to encode queries: "auto", "cpu", "cuda", "cuda:1" …
            encoder: A bi-encoder of your own, which must be the collection's.
            loader: Loads the bi-encoder, in place of Sonde: collections of one model can share it that way.

        Raises:
            SondeError: There is no collection at `path`, or its format cannot be read.
        """
        return cls(StoredCollection.open(path, encoder=encoder, device=device, loader=loader))

    @property
    def path(self) -> Path:
        """The collection's folder."""
        return self.stored.path

    def close(self) -> None:
        """Close the files that this thread has open."""
        self.stored.close()

    def __len__(self) -> int:
        with self.stored.view() as view:
            return view.catalog.counts()[0]

    def __repr__(self) -> str:
        return f"Collection({str(self.path)!r}, {len(self):,} documents)"
