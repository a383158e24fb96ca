"""A collection that is open: what every part of the Python API has."""

from pathlib import Path
from typing import TYPE_CHECKING, Self

from ...indexer.arguments import Texts, as_texts
from ...indexer.encoder import Encoder
from ...indexer.store.collection import LoadEncoder, StoredCollection

if TYPE_CHECKING:
    import numpy as np


class Opened:
    """A collection that is open.

    Attributes:
        stored: The collection as it lies on disk, which the pipelines read. It may change between versions; all other
            attributes and methods are kept stable.
    """

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

    def embed(self, texts: Texts, *, query: bool = False) -> "np.ndarray":
        """Return float32 [n, d]: embeddings of texts by the collection's bi-encoder.

        Args:
            texts: One text or several; one that is longer than the model's window counts by its beginning.
            query: Whether they are queries, for models that have a prompt for those.

        Raises:
            UsageError: A text is not a string.
            SondeError: The collection's model is not available.
        """
        return self.stored.encoder.encode_texts(as_texts(texts, "text"), query)

    def close(self) -> None:
        """Close the files that this thread has open."""
        self.stored.close()

    def __len__(self) -> int:
        with self.stored.view() as view:
            return view.catalog.counts()[0]

    def __repr__(self) -> str:
        return f"Collection({str(self.path)!r}, {len(self):,} documents)"
