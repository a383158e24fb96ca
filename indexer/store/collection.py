"""A collection on disk: opening it, and reading one consistent generation of it."""

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from ..encoder import ModelSpec
from ..encoder.models import is_local
from ..errors import SondeError
from ..progress import Notify, silent
from . import schema
from .catalog import Catalog, connect_catalog
from .derived import Loaded
from .lock import no_collection, refuse_links, unfinished, whole_of, writer_lock
from .view import Generation, View

if TYPE_CHECKING:
    from ..encoder import Encoder

LoadEncoder = Callable[..., "Encoder"]
"""Loads the bi-encoder of a `ModelSpec` on a `device`, as `load_encoder_for` does."""

ATTEMPTS = 5
"""How often a reader starts over when `compact` removes files between its look at the catalog and their opening."""


class StoredCollection:
    """Read access to a collection; `indexer/ingest` and `indexer/upkeep` write it.

    One object may be used from several threads. Every `view()` sees one generation, whole; the next one sees
    what was committed since.

    Attributes:
        path: The folder.
        named: The folder as the caller named it, for messages.
    """

    sharded = False
    """Whether it consists of shards."""

    def __init__(
        self,
        path: Path,
        encoder: "Encoder | None" = None,
        device: str = "auto",
        loader: LoadEncoder | None = None,
    ) -> None:
        self.path = path.absolute()  # a notebook may change its working directory
        self.named = path
        self.device = device
        self._loader = loader
        self._encoder = encoder
        self.own_model = encoder is not None or loader is not None
        self._spec: tuple[dict[str, Any], ModelSpec] | None = None
        self._local = threading.local()
        self._loading = threading.RLock()
        self._generation: Generation | None = None
        self._loaded = Loaded(self.path, device)
        self._made = made_at(self.lasting_path)

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        encoder: "Encoder | None" = None,
        device: str = "auto",
        loader: LoadEncoder | None = None,
    ) -> Self:
        """Open an existing collection; the model is loaded when a search first needs it.

        One of an older format is first brought up to date.

        Raises:
            SondeError: There is no collection at `path`, or its format cannot be read or brought up to date.
        """
        folder = check_folder(Path(path))
        _bring_up_to_date(folder)
        collection = cls(folder, encoder, device, loader)
        collection.get("generation")
        return collection

    @property
    def catalog_path(self) -> Path:
        """The SQLite file."""
        return self.path / "catalog.db"

    @property
    def lasting_path(self) -> Path:
        """A file that is as old as the collection: it is another file if the collection is made again."""
        return self.catalog_path

    @property
    def vectors_path(self) -> Path:
        """The folder of vector segments."""
        return self.path / "vectors"

    @property
    def spec(self) -> ModelSpec:
        """The model whose embeddings the collection has now; inside a view, that of the view.

        Raises:
            SondeError: The run that was to make the collection was stopped before it wrote anything.
        """
        stored = self.get("model")
        if stored is None:
            raise unfinished(self.named)
        known = self._spec
        if known is None or known[0] != stored:
            known = self._spec = (stored, ModelSpec.from_dict(stored))
        return known[1]

    @property
    def encoder(self) -> "Encoder":
        """The bi-encoder of `spec`, loaded at first use, and again after another process has changed the model.

        Raises:
            SondeError: The model is not available, or its weights are not those that the collection was built with.
        """
        with self._loading:
            spec = self.spec
            if self._encoder is None or not _same(self._encoder.spec, spec):
                self._encoder = (self._loader or load_encoder_for)(spec, device=self.device)
            return self._encoder

    def encoder_of(self, spec: ModelSpec, notify: Notify = silent) -> "Encoder":
        """Load the bi-encoder of another model, for many passages, on this collection's device.

        Raises:
            SondeError: The model is not available.
        """
        if self._loader:
            return self._loader(spec, device=self.device)
        return load_encoder_for(spec, device=self.device, passages=True, notify=notify)

    def use(self, encoder: "Encoder") -> None:
        """Use a bi-encoder that is loaded already, for as long as the collection has its model."""
        with self._loading:
            self._encoder = encoder

    def load(self, *, encoder: bool = True) -> float:
        """Load what searches need and is not loaded yet; return the seconds that took, 0.0 where nothing was.

        Args:
            encoder: Whether the bi-encoder and the index of its embeddings are needed.

        Raises:
            SondeError: The model or the collection cannot be loaded.
        """
        if self._generation is not None and (not encoder or self._has_encoder()):
            return 0.0
        began = time.perf_counter()
        with self.view() as view:
            _ = view.generation.lexical, (view.generation.ann, self.encoder) if encoder else ()
        return time.perf_counter() - began

    @property
    def encoder_at_hand(self) -> bool:
        """Whether the bi-encoder is loaded, or can be without a network."""
        return self._has_encoder() or is_local(self.spec.name, self.spec.revision)

    def _has_encoder(self) -> bool:
        loaded = self._encoder
        return loaded is not None and _same(loaded.spec, self.spec)

    def get(self, name: str, default: Any = None) -> Any:
        """Return a stored property of the collection.

        Raises:
            SondeError: The catalog is damaged.
        """
        with self._reading():
            return self.open_catalog().get(name, default)

    @contextmanager
    def view(self) -> Iterator[View]:
        """Open a consistent view of the newest generation.

        Raises:
            SondeError: The catalog is damaged, or files that it names are missing.
        """
        catalog = self.open_catalog()
        if catalog.connection.in_transaction:  # a view inside a view, in one thread, is the same view
            yield View(self, catalog, self._current(catalog))
            return
        with self._reading(), catalog.transaction():
            yield View(self, catalog, self._current(catalog))

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Say in one sentence that the catalog cannot be read."""
        try:
            yield
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            said = f"{self.catalog_path} cannot be read ({error}): run `sonde verify {whole_of(self.path)}`"
            raise SondeError(said, code="damaged") from None

    @contextmanager
    def writing(self) -> Iterator[Catalog]:
        """Hold the writer lock and one transaction, in which runs and properties are written.

        Raises:
            SondeError: Another process is writing, the collection cannot be written, or its folder holds another one
                since it was read.
        """
        with (
            writer_lock(check_folder(self.path)),
            self._still_this(),
            closing(Catalog.open(self.catalog_path, write=True)) as catalog,
            catalog.transaction(write=True),
        ):
            yield catalog

    def close(self) -> None:
        """Close this thread's connection and forget the generation; the model and the indexes stay loaded."""
        self._disconnect()
        self._generation = None

    def _disconnect(self) -> None:
        """Close this thread's connection; the next read opens another."""
        if hasattr(self._local, "catalog"):
            self._local.catalog[0].close()
            del self._local.catalog

    @contextmanager
    def _still_this(self) -> Iterator[None]:
        known = self._made
        self._look_again()
        if known not in (None, self._made):
            raise SondeError(f"{self.named} was replaced by another collection: run the same command again")
        yield

    def _look_again(self) -> None:
        """Forget everything that was read if the folder holds another collection now: it was moved or copied there."""
        made = made_at(self.lasting_path)
        if made == self._made:  # without the lock, which is held while a model loads
            return
        with self._loading:
            self._generation, self._spec, self._loaded = None, None, Loaded(self.path, self.device)
            self._made = made

    def open_catalog(self) -> Catalog:
        """Return this thread's connection to the catalog, opened at first use, and again for another collection."""
        known: tuple[Catalog, Made | None] | None = getattr(self._local, "catalog", None)
        if known and known[0].connection.in_transaction:
            return known[0]
        self._look_again()
        if known and known[1] != self._made:
            self._disconnect()  # before another is opened, which fails while the folder is away
            known = None
        if known is None:
            made = self._made
            known = self._local.catalog = Catalog.open(self.catalog_path), made
        return known[0]

    def _current(self, catalog: Catalog) -> Generation:
        with self._loading:
            current = self._generation
            if current is None or current.number != catalog.get("generation", 0):
                current = self._generation = self._load(catalog)
            return current

    def _load(self, catalog: Catalog) -> Generation:
        missing = ""
        for _ in range(ATTEMPTS):
            try:
                generation = Generation.load(self.path, catalog, self.spec, self._loaded)
            except FileNotFoundError as error:
                missing = error.filename
                generation = None
            if generation and generation.lexical:
                return generation
            # `compact` replaced the files that this transaction still names: read the catalog again.
            catalog.connection.execute("ROLLBACK")
            catalog.connection.execute("BEGIN")
            if generation and generation.number == catalog.get("generation", 0):
                return generation
        raise SondeError(f"{missing} is missing: run `sonde repair {whole_of(self.path)}`", code="damaged")


Made = tuple[int, int]
"""Device and inode of a file that is as old as its collection."""


def made_at(lasting: Path) -> Made | None:
    """Return which file this is, None if there is none: another collection in the same place has another one."""
    try:
        found = lasting.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def load_encoder_for(spec: ModelSpec, **options: Any) -> "Encoder":
    """Load the model that a collection was built with; what runs it is imported now, not when a collection opens."""
    from ..encoder.loading import load_encoder_for as load

    return load(spec, **options)


def _same(loaded: ModelSpec, wanted: ModelSpec) -> bool:
    """Return whether two descriptions give the same embeddings; identity is looked at first, as it costs nothing."""
    return loaded is wanted or loaded == wanted or loaded.fingerprint == wanted.fingerprint


def _bring_up_to_date(folder: Path) -> None:
    with closing(connect_catalog(folder / "catalog.db")) as connection:
        outdated = schema.check(connection, folder) < schema.FORMAT
    if outdated:
        with writer_lock(folder):
            Catalog.open(folder / "catalog.db", write=True).close()


def check_folder(folder: Path) -> Path:
    """Return `folder` if it can be a collection.

    Raises:
        SondeError: It does not exist, or is no collection; the message says which.
    """
    if not folder.exists():
        names = sorted(path.name for path in folder.parent.glob("*.sonde")) if folder.parent.is_dir() else []
        close = get_close_matches(folder.name.removesuffix(".sonde"), [name[: -len(".sonde")] for name in names], 1)
        hint = f": did you mean {close[0]}.sonde?" if close else ""
        shown = f"; here are: {', '.join([*names[:5], *(['…'] if len(names) > 5 else [])])}" if names else ""
        if not folder.parent.is_dir():
            shown = f": there is no folder {folder.parent}"
        raise SondeError(f"there is no collection at {folder}{hint or shown}", code="no-collection", value=folder)
    if folder.is_file():
        made = folder.with_suffix(".sonde")
        advice = f"did you mean {made}?" if made.is_dir() else f"index it first, into {made}"
        raise SondeError(f"{folder} is a file, not a collection: {advice}", code="no-collection")
    if not (folder / "catalog.db").is_file():
        raise no_collection(folder)
    refuse_links(folder)
    return folder
