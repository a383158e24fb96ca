"""A collection that is open, and the options of its methods."""

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Self, TypeVar

from ...indexer.encoder import Encoder
from ...indexer.errors import UsageError
from ...indexer.store.collection import LoadEncoder, StoredCollection


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

    def close(self) -> None:
        """Close the files that this thread has open."""
        self.stored.close()

    def __len__(self) -> int:
        with self.stored.view() as view:
            return view.catalog.counts()[0]

    def __repr__(self) -> str:
        return f"Collection({str(self.path)!r}, {len(self):,} documents)"


S = TypeVar("S")
PROGRESS = ("settings", "progress")
"""Arguments that methods have beside their options."""


def settings_from(
    kind: type[S], settings: S | None, options: Mapping[str, Any], method: str, also: Iterable[str] = ()
) -> S:
    """Return the settings of a call; an option overrides the field of the same name in `settings`.

    Args:
        kind: A dataclass of settings.
        settings: Settings that the caller made, or None for the defaults.
        options: Fields of `kind` that the caller named.
        method: The method's name, for messages.
        also: The method's other arguments, so that a message can propose them.

    Raises:
        UsageError: There is no such option; the message names the nearest one. Or `settings` is of another type.
    """
    check_options(options, [field.name for field in fields(kind)], method, also)  # type: ignore[arg-type]
    if settings is None:
        return kind(**options)
    if not isinstance(settings, kind):
        raise UsageError(f"settings is a {type(settings).__name__}: {method} takes sonde.{kind.__name__}")
    return replace(settings, **options)  # type: ignore[type-var]


def check_options(options: Iterable[str], known: Iterable[str], method: str, also: Iterable[str] = ()) -> None:
    """Refuse options that a method does not have.

    Raises:
        UsageError: There is no such option; the message names the nearest one.
    """
    known = list(known)
    for name in options:
        if name not in known:
            close = get_close_matches(name, [*known, *also], 1)
            hint = f"did you mean {close[0]!r}?" if close else f"it has {', '.join(known)}"
            raise UsageError(f"{method} has no option {name!r}: {hint}")
