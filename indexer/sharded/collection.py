"""A sharded collection on disk: opening it, and reading one consistent generation of all shards."""

from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Self, TypeVar

from ..encoder import Encoder
from ..errors import SondeError
from ..store.catalog import ID_COLUMN, Catalog
from ..store.collection import LoadEncoder, StoredCollection
from ..store.elsewhere import Elsewhere
from ..store.export import ORIGIN
from ..store.joined import JoinedCatalog, Numbers
from ..store.lock import no_collection, refuse_links, unfinished, writer_lock
from ..store.view import View
from . import COLLECTION
from .bucket import bucket_of, commit
from .generations import committed_generation, generation_number, lost_shard, remove_old_versions
from .layout import ORDER, RUNS, ShardedGeneration, Sharding, read_order
from .runs import changed_runs
from .view import JoinedGeneration, JoinedView

ATTEMPTS = 5
"""How often a reader starts over when a run removes old versions between its look at a generation and their opening."""

Read = TypeVar("Read")


class _Opened:
    """One generation, open for reading: its shards, and the catalog of its runs."""

    def __init__(self, folder: Path, stored: ShardedGeneration, before: "_Opened | None", device: str) -> None:
        """Open a generation; what is the same as in the generation before is not opened again.

        Raises:
            FileNotFoundError: A version was removed, because newer ones exist.
            SondeError: A file is damaged.
        """
        self.stored = stored
        known = {part.path: part for part in before.parts} if before else {}
        opened = {
            name: known.get(path := folder / name / state.version) or _opened(path, device)
            for name, state in stored.folders.items()
        }
        self.runs = opened.pop(RUNS, None)
        self.shards = {shard: opened[f"shards/{shard:02d}"] for shard, state in enumerate(stored.shards) if state}
        if before and before.stored.shards == stored.shards:
            self.numbers, self.generation = before.numbers, before.generation
            return
        orders = {
            shard: read_order(part.path / ORDER, part.open_catalog().rows()) for shard, part in self.shards.items()
        }
        self.numbers, self.generation = Numbers(len(stored.shards), orders), None

    numbers: Numbers
    generation: JoinedGeneration | None

    @property
    def parts(self) -> list[StoredCollection]:
        """Everything that is open."""
        return [*self.shards.values(), *([self.runs] if self.runs else [])]


def _opened(folder: Path, device: str) -> StoredCollection:
    if not (folder / "catalog.db").is_file():
        raise FileNotFoundError(2, "missing", str(folder))
    return StoredCollection(folder, device=device)


class ShardedCollection(StoredCollection):
    """Read access to a sharded collection: the same as to one collection of all its documents.

    One object may be used from several threads. Every `view()` sees one generation of all shards.
    """

    sharded = True
    _sharding: Sharding
    elsewhere: Elsewhere | None = None
    """What searches the embeddings in other processes, if set before the first view; None: this process does."""
    left_out: Container[int] = ()
    """Numbers of shards that are not opened."""

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        encoder: Encoder | None = None,
        device: str = "auto",
        loader: LoadEncoder | None = None,
        left_out: Container[int] = (),
    ) -> Self:
        """Open an existing sharded collection; the model is loaded when a search first needs it.

        Shards that are `left_out` seem to have no documents: a verification checks the others without them.

        Raises:
            SondeError: There is none at `path`, it is damaged, or its first run was stopped.
        """
        folder = Path(path)
        refuse_links(folder)
        sharding = Sharding.read(folder)
        if sharding is None:
            raise SondeError(f"{folder} is not a sharded collection", code="no-collection")
        collection = cls(folder, encoder, device, loader)
        collection._sharding, collection.left_out = sharding, left_out
        collection._newest = None
        collection._current_shards()
        return collection

    _newest: _Opened | None

    @property
    def sharding(self) -> Sharding:
        """What `collection.json` says, with the model of the newest generation."""
        return self._sharding.with_model_of(self.stored_generation)

    @property
    def catalog_path(self) -> Path:
        """The file of the newest generation, which every commit replaces by another."""
        return self.path / self._current_shards().stored.name

    @property
    def lasting_path(self) -> Path:
        """The file that never changes."""
        return self.path / COLLECTION

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
        with ExitStack() as stack:
            opened, catalog, views = self._on_newest(lambda opened: self._entered(opened, stack))
            if opened.generation is None:
                parts = {shard: (view.collection.path, view.generation) for shard, view in views.items()}
                spec = self._sharding.with_model_of(opened.stored).spec
                number = opened.stored.indexed
                opened.generation = JoinedGeneration(
                    number, spec, opened.numbers, parts, self._loaded, elsewhere=self.elsewhere is not None
                )
            self._generation = opened.generation
            self._local.view = JoinedView(self, catalog, opened.generation, list(views.values()))
            try:
                yield self._local.view
            finally:
                self._local.view = None

    def open_catalog(self) -> JoinedCatalog:
        """Return the catalogs of all shards as one."""
        outer = getattr(self._local, "view", None)
        return outer.catalog if outer is not None else self._on_newest(self._joined)

    def _on_newest(self, read: Callable[[_Opened], Read]) -> Read:
        """Read the newest generation, and a newer one if a run has removed files of it meanwhile."""
        while True:
            opened = self._current_shards()
            try:
                return read(opened)
            except SondeError:
                if generation_number(self.path) == opened.stored.number:
                    raise

    def _entered(self, opened: _Opened, stack: ExitStack) -> tuple[_Opened, JoinedCatalog, dict[int, View]]:
        """Open the catalogs of a generation and a view of each shard, which end with the stack."""
        with ExitStack() as attempt:
            catalog = self._joined(opened)
            views = {shard: attempt.enter_context(part.view()) for shard, part in opened.shards.items()}
            stack.push(attempt.pop_all())
        return opened, catalog, views

    @contextmanager
    def locked(self) -> Iterator[ShardedGeneration]:
        """Hold the writer lock, and give the newest generation; a copy is first brought up to its object store's.

        Raises:
            SondeError: Another process is writing, or the object store does not answer.
        """
        with writer_lock(self.path):
            if bucket := bucket_of(self.path):
                bucket.pull()
            yield self.stored_generation

    @contextmanager
    def writing(self) -> Iterator[JoinedCatalog]:
        """Hold the writer lock and one transaction, in which runs and properties are written; then commit it.

        Nothing is committed if nothing was changed.

        Raises:
            SondeError: Another process is writing, another run committed first, the collection cannot be written, or
                its folder holds another one since it was read.
        """
        with self._still_this(), self.locked() as base:
            opened = self._current_shards()
            with changed_runs(self.path, base) as writing, ExitStack() as stack:
                # Connections of their own: a view of this thread may be open, and of another generation.
                catalogs = {
                    shard: stack.enter_context(closing(Catalog.open(part.catalog_path)))
                    for shard, part in opened.shards.items()
                }
                yield self._joined(opened, catalogs, writing.catalog)
            if writing.state != base.runs:
                commit(self.path, replace(base, number=base.number + 1, runs=writing.state))
                remove_old_versions(self.path, RUNS)

    def close(self) -> None:
        """Close this thread's connections and forget what was loaded."""
        for part in self._newest.parts if self._newest else ():
            part.close()
        self._generation = None
        self._newest = None

    @property
    def shards(self) -> dict[int, StoredCollection]:
        """The shards that have documents, by number, in the newest generation."""
        return dict(self._current_shards().shards)

    @property
    def runs(self) -> StoredCollection | None:
        """What holds the catalog of runs in the newest generation; None if there is none."""
        return self._current_shards().runs

    @property
    def stored_generation(self) -> ShardedGeneration:
        """What the newest generation's file says."""
        return self._current_shards().stored

    def _joined(
        self, opened: _Opened, catalogs: Mapping[int, Catalog] | None = None, runs: Catalog | None = None
    ) -> JoinedCatalog:
        """Join the catalogs of a generation: those of this thread, or others that are given."""
        runs = runs or (opened.runs and opened.runs.open_catalog())  # first, because it is checked
        parts = catalogs or {shard: part.open_catalog() for shard, part in opened.shards.items()}
        for part in parts.values():
            part.read_runs_of(opened.runs and opened.runs.catalog_path)
        sharding, number = self._sharding.with_model_of(opened.stored), opened.stored.indexed
        properties = {"model": sharding.model, "language": sharding.language, "generation": number}
        properties |= {ORIGIN: sharding.origin, ID_COLUMN: sharding.id_column}
        return JoinedCatalog(parts, opened.numbers, sharding.shard_of, properties, runs)

    def _look_again(self) -> None:
        known = self._made
        super()._look_again()
        if known != self._made and (sharding := Sharding.read(self.path)):
            self._sharding, self._newest = sharding, None

    def _current_shards(self) -> _Opened:
        """Return the newest generation's shards, opened again only if there is a newer generation."""
        with self._loading:
            self._look_again()
            newest = self._newest
            if newest is not None and newest.stored.number == generation_number(self.path):
                return newest
            missing = ""
            for _ in range(ATTEMPTS):
                stored = committed_generation(self.path)
                if stored is None and not (self.path / COLLECTION).exists():
                    raise no_collection(self.path)
                if stored is None:
                    raise unfinished(self.named)
                if len(stored.shards) != self._sharding.shards:
                    said = f"{self.path / stored.name} is damaged: it has {len(stored.shards)} shards"
                    said += f", not {self._sharding.shards}: restore the collection from a backup"
                    raise SondeError(said, code="damaged")
                left = tuple(None if shard in self.left_out else state for shard, state in enumerate(stored.shards))
                stored = replace(stored, shards=left)
                try:
                    self._newest = _Opened(self.path, stored, newest, self.device)
                    return self._newest
                except FileNotFoundError as error:
                    missing = error.filename
            raise lost_shard(missing, self.named)
