"""A sharded collection on disk: opening it, and reading one consistent generation of all shards."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Self

import numpy as np

from ..encoder import Encoder
from ..errors import SondeError
from ..files import NUMPY_HEADER
from ..store.collection import LoadEncoder, StoredCollection
from ..store.joined import JoinedCatalog
from ..store.lock import refuse_links
from ..store.numbers import Numbers
from .layout import ShardedGeneration, Sharding, generation_number, newest_generation, shard_folder
from .shard import ORDER
from .truth import LocalTruth
from .view import JoinedGeneration, JoinedView

ATTEMPTS = 5
"""How often a reader starts over when a run removes old versions between its look at a generation and their opening."""


class _Opened:
    """The shards of one generation, open for reading."""

    def __init__(self, collection: "ShardedCollection", stored: ShardedGeneration) -> None:
        self.stored = stored
        self.shards: dict[int, StoredCollection] = {}
        orders = {}
        for shard, state in enumerate(stored.shards):
            if state is not None:
                folder = shard_folder(collection.path, shard) / state.version
                self.shards[shard] = collection.opened_shard(folder)
                orders[shard] = _order(folder / ORDER)
        self.numbers = Numbers(collection.sharding.shards, orders)
        self.generation: JoinedGeneration | None = None


def _order(path: Path) -> np.ndarray:
    """Return int64 [rows]: when each passage of a shard came.

    Raises:
        FileNotFoundError: The version was removed.
        SondeError: The file is damaged.
    """
    try:
        with NUMPY_HEADER:
            found = np.load(path, allow_pickle=False)
        if found.dtype != np.int64 or found.ndim != 1:
            raise ValueError(f"it holds {found.dtype} {found.shape}")
        return found
    except FileNotFoundError:
        raise
    except (OSError, ValueError, EOFError, SyntaxError) as error:
        raise SondeError(f"{path} is damaged ({error}): restore the collection from a backup") from None


class ShardedCollection(StoredCollection):
    """Read access to a sharded collection: the same as to one collection of all its documents.

    One object may be used from several threads. Every `view()` sees one generation of all shards.
    """

    sharded = True
    sharding: Sharding

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        encoder: Encoder | None = None,
        device: str = "auto",
        loader: LoadEncoder | None = None,
    ) -> Self:
        """Open an existing sharded collection; the model is loaded when a search first needs it.

        Raises:
            SondeError: There is none at `path`, it is damaged, or its first run was stopped.
        """
        folder = Path(path)
        refuse_links(folder)
        sharding = Sharding.read(folder)
        if sharding is None:
            raise SondeError(f"{folder} is not a sharded collection", code="no-collection")
        collection = cls(folder, encoder, device, loader)
        collection.sharding = sharding
        collection._newest = None
        collection._current_shards()
        return collection

    _newest: _Opened | None

    def opened_shard(self, folder: Path) -> StoredCollection:
        """Return a version of a shard, the object of the generation before if it has the same version.

        Raises:
            FileNotFoundError: The version was removed, because newer ones exist.
        """
        known = self._newest.shards.values() if self._newest else ()
        found = next((shard for shard in known if shard.path == folder), None)
        if found is not None:
            return found
        if not (folder / "catalog.db").is_file():
            raise FileNotFoundError(2, "missing", str(folder))
        return StoredCollection(folder, device=self.device)

    @property
    def catalog_path(self) -> Path:
        """The file of the newest generation, which every commit replaces by another."""
        return self.path / self._current_shards().stored.name

    @contextmanager
    def view(self) -> Iterator[JoinedView]:
        """Open a consistent view of the newest generation of all shards.

        Raises:
            SondeError: A shard is damaged or missing.
        """
        outer = getattr(self._local, "view", None)
        if outer is not None:  # a view inside a view, in one thread, is the same view
            yield outer
            return
        opened = self._current_shards()
        with ExitStack() as stack:
            views = {shard: stack.enter_context(part.view()) for shard, part in opened.shards.items()}
            catalog = self._joined(opened)
            if opened.generation is None:
                parts = {shard: (view.collection.path, view.generation) for shard, view in views.items()}
                spec = self.sharding.spec
                number = opened.stored.number
                opened.generation = JoinedGeneration(number, spec, opened.numbers, parts, self._loaded)
            self._generation = opened.generation
            self._local.view = JoinedView(self, catalog, opened.generation, list(views.values()))
            try:
                yield self._local.view
            finally:
                self._local.view = None

    def open_catalog(self) -> JoinedCatalog:
        """Return the catalogs of all shards as one."""
        outer = getattr(self._local, "view", None)
        return outer.catalog if outer is not None else self._joined(self._current_shards())

    def close(self) -> None:
        """Close this thread's connections and forget what was loaded."""
        for shard in self._newest.shards.values() if self._newest else ():
            shard.close()
        self._generation = None
        self._newest = None

    @property
    def shards(self) -> dict[int, StoredCollection]:
        """The shards that have documents, by number, in the newest generation."""
        return dict(self._current_shards().shards)

    @property
    def stored_generation(self) -> ShardedGeneration:
        """What the newest generation's file says."""
        return self._current_shards().stored

    def _joined(self, opened: _Opened) -> JoinedCatalog:
        catalogs = {shard: part.open_catalog() for shard, part in opened.shards.items()}
        sharding, number = self.sharding, opened.stored.number
        properties = {"model": sharding.model, "language": sharding.language, "generation": number}
        return JoinedCatalog(catalogs, opened.numbers, sharding.shard_of, properties)

    def _current_shards(self) -> _Opened:
        """Return the newest generation's shards, opened again only if there is a newer generation."""
        with self._loading:
            newest = self._newest
            if newest is not None and newest.stored.number == generation_number(self.path):
                return newest
            missing = ""
            for _ in range(ATTEMPTS):
                stored = newest_generation(LocalTruth(self.path), self.path)
                if stored is None:
                    raise SondeError(f"{self.path} is empty: its first `sonde index` was stopped; run it again")
                try:
                    self._newest = _Opened(self, stored)
                    return self._newest
                except FileNotFoundError as error:
                    missing = error.filename
            raise SondeError(
                f"{missing} is missing: restore {self.path} from a backup, or index its sources into a new folder"
            )
