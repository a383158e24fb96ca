"""An open collection: the base class of every part of the Python API."""

from functools import partial
from numbers import Integral
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any, Self

from ...indexer.ann.devices import on_its_device
from ...indexer.encoder.settings import device_names, resolve_devices
from ...indexer.errors import SondeError, UsageError, as_text
from ...indexer.sharded import open_stored
from ...indexer.store.catalog import ID_COLUMN
from ...indexer.store.collection import LoadEncoder, StoredCollection
from ...indexer.wording import counted
from .arguments import checked

if TYPE_CHECKING:
    from ...indexer.encoder import Encoder


def check_device(device: str) -> None:
    """Check the name of a device, and that this machine has the GPUs that it names.

    Raises:
        UsageError: It is unknown, or there is no such GPU.
    """
    if any(name.startswith("cuda") for name in device_names(device)):
        resolve_devices(device)


class Opened:
    """An open collection.

    Attributes:
        stored: The collection on disk, which the pipelines read. It may change between versions; all other attributes
            and methods are stable.
    """

    def __init_subclass__(cls, **given: Any) -> None:
        """Check the arguments of every public method, and let it compute on the collection's device."""
        super().__init_subclass__(**given)
        on_its_device(cls)
        for name, value in list(vars(cls).items()):
            if isinstance(value, FunctionType) and not name.startswith("_"):
                setattr(cls, name, checked(value))

    def __init__(self, stored: StoredCollection) -> None:
        self.stored = stored

    @classmethod
    @checked
    def open(
        cls,
        path: str | Path,
        *,
        device: str = "auto",
        encoder: "Encoder | None" = None,
        loader: LoadEncoder | None = None,
    ) -> Self:
        """Open an existing collection; its model is loaded by the first search that needs it.

        Args:
            path: The folder, `NAME.sonde`.
            device: Where to encode queries, search, cluster and so on: "auto", "cpu", "cuda", "cuda:1" …
            encoder: A bi-encoder of your own; it must match the collection's.
            loader: Loads the bi-encoder instead of Sonde, so that collections with the same model can share it.

        Raises:
            UsageError: The name of the device is unknown, or the machine has no such GPU.
            SondeError: No collection exists at `path`, or its format cannot be read.
        """
        check_device(device)
        return cls(open_stored(path, encoder=encoder, device=device, loader=loader))

    @property
    def path(self) -> Path:
        """The collection's folder."""
        return self.stored.path

    @property
    def id_column(self) -> str | None:
        """The column of the source that the ids come from; None if there is none, and ids are hashes of the texts.

        In results, exports and frames, this column is called `id`, and its values are text.
        """
        return self.stored.get(ID_COLUMN) or None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, tuple[()]]:
        """Pickle the path and the device: the process that unpickles it opens the collection again.

        Raises:
            UsageError: The collection was opened with an encoder or a loader of the caller's own.
        """
        if self.stored.own_model:
            said = "a collection with an encoder or a loader of your own cannot be pickled: open it in each process"
            raise UsageError(said, code="conflict", field="encoder")
        return partial(type(self).open, self.path.absolute(), device=self.stored.device), ()

    def close(self) -> None:
        """Close the files that this thread has open."""
        self.stored.close()

    def __len__(self) -> int:
        with self.stored.view() as view:
            return view.catalog.counts()[0]

    def __contains__(self, id: object) -> bool:
        """Whether a document has this id."""
        if not isinstance(id, (str, Integral)):
            return False
        with self.stored.view() as view:
            return view.document_number(as_text(id, "id")) is not None

    def __repr__(self) -> str:
        try:
            state = counted(len(self), "document")
        except (SondeError, OSError):  # a debugger or a notebook shows it, whatever happened to the folder
            state = "not readable" if self.path.exists() else "gone"
        return f"Collection({str(self.path)!r}, {state})"
