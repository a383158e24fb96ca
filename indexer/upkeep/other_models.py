"""Compact the embeddings of other models: they come with a copy of the texts, and deleted texts must not stay there."""

from collections.abc import Callable
from contextlib import closing, nullcontext
from dataclasses import replace
from pathlib import Path

from ..errors import SondeError
from ..progress import Notify, silent
from ..store.catalog import Catalog, is_unborn
from ..store.disk import disk_bytes
from ..store.documents import ids_by_number, numbers_by_id
from ..store.exchange import differing
from ..store.models import models_folder
from .delete import CompactReport, compact, delete_chosen
from .model import changing


def compact_with_kept(folder: Path, notify: Notify = silent) -> CompactReport:
    """Compact a collection, and what is kept of other models; see `compact`.

    Raises:
        SondeError: Another process is writing, or the disk is full.
    """
    report = compact(folder, notify=notify)

    def each(other: Path) -> None:
        if holds_something(other):
            leave_out(folder / "catalog.db", other)
            compact(other)

    compact_kept(folder, each, notify)
    return replace(report, disk=disk_bytes(folder))


def compact_kept(folder: Path, compact_one: Callable[[Path], None], notify: Notify = silent) -> None:
    """Call `compact_one` with the folder of each other model; what fails there is only reported."""
    others = sorted(path for path in models_folder(folder).glob("*") if path.is_dir())
    try:
        with changing(folder) if others else nullcontext():
            for other in others:
                compact_one(other)
    except SondeError as error:
        notify(f"the embeddings of other models still hold deleted texts: {error}; then compact again")


def holds_something(other: Path) -> bool:
    """Whether the folder of another model has a catalog; a change of model may have been killed before it wrote one."""
    path = other / "catalog.db"
    return path.is_file() and not is_unborn(path)


def leave_out(catalog_path: Path, other: Path) -> None:
    """Delete documents from embeddings of another model that the collection lacks, or has with another text.

    `sonde model --undo` embeds what has another text again, so it still works.
    """
    with closing(Catalog.open(catalog_path)) as catalog:
        changed, gone = differing(catalog, other)
        ids = list(ids_by_number(catalog, changed.tolist()).values())
    if gone or ids:
        delete_chosen(other, lambda kept: [*gone, *numbers_by_id(kept, ids).values()])
