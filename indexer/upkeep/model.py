"""Change the model of a collection: embed all again beside it, switch, and compact what is kept of other models."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ..ann import AnnSettings
from ..ann.devices import search_device
from ..document import Document
from ..encoder import Encoder, ModelSpec
from ..errors import NothingToIndexError, SondeError, UsageError, WriterBusyError
from ..files import disk_error, make_folder, remove_folder
from ..ingest import BuildSettings, index_documents
from ..progress import Notify, Progress, silent
from ..store.catalog import Catalog, in_slices, is_unborn
from ..store.collection import StoredCollection, check_folder
from ..store.derived import ASKED, update_derived
from ..store.disk import disk_bytes
from ..store.documents import chosen_texts, ids_by_number, numbers_by_id
from ..store.exchange import differing, exchange
from ..store.integrity import sweep
from ..store.lock import COLLECTION, NONE, holder_of, writer_lock
from ..store.models import PREVIOUS, OtherModel, model_folder, models_folder, other_models
from .delete import CompactReport, compact, delete_chosen
from .repair import repair
from .verify import verify

Load = Callable[[], Encoder]
AT_ONCE = 256
ROUNDS = 10
"""How often to catch up with other writers before the last time, which is under the collection's lock."""
FEW = 256
"""At most this many documents are left to embed under the lock."""


@dataclass(frozen=True, slots=True)
class Beside:
    """Embeddings of another model beside a collection, with all of its documents.

    Attributes:
        folder: Where they lie: a collection of their own.
        spec: The model.
        embedded: How many passages this run has embedded.
        seconds: What that took.
    """

    folder: Path
    spec: ModelSpec
    embedded: int
    seconds: float


@contextmanager
def changing(folder: Path) -> Iterator[None]:
    """Hold the lock of the work on a collection's model; the collection itself can be read and written meanwhile.

    Raises:
        SondeError: Another process changes the model of this collection, which the message names; or the folder
            cannot be written.
    """
    others = models_folder(folder if (folder / COLLECTION).is_file() else check_folder(folder))
    with ExitStack() as held:
        try:
            make_folder(others)
            held.enter_context(writer_lock(others, NONE))
        except WriterBusyError:
            holder = holder_of(others / "writer.json")
            raise WriterBusyError(
                f"the model of {folder} is being changed by {holder}: wait for it to end, then try again"
            ) from None
        except OSError as error:
            raise disk_error(error, folder) from None
        yield


def embed_beside(collection: StoredCollection, encoder: Encoder, notify: Notify = silent) -> Beside:
    """Embed all documents of a collection with another model; the caller holds `changing`.

    Each batch is a commit: killed at any moment, the same call goes on after the last one. Documents that others add,
    change or delete meanwhile are caught up with.

    Raises:
        UsageError: The collection has this model already.
        SondeError: It holds no documents, or the disk is full; the collection itself is as it was.
    """
    spec = refuse_same(collection, encoder.spec)
    other, began = model_folder(collection.path, spec.fingerprint), time.monotonic()
    embedded = in_rounds(lambda: catch_up(collection, other, lambda: encoder, notify))
    check(other, lambda: encoder, collection.device, notify)
    return Beside(other, spec, embedded, time.monotonic() - began)


def refuse_same(collection: StoredCollection, spec: ModelSpec) -> ModelSpec:
    """Return the model to change to, unless the collection has it.

    Raises:
        UsageError: It has this model already.
    """
    if spec.fingerprint == collection.spec.fingerprint:
        raise UsageError(f"{collection.named} already has the model {spec.name} with these settings: nothing to change")
    return spec


def in_rounds(embed: Callable[[], tuple[int, int]]) -> int:
    """Embed what differs until others have changed little meanwhile; return how many passages were embedded.

    Args:
        embed: Does a round; returns how many documents differed, and how many passages it embedded.
    """
    embedded = 0
    for _ in range(ROUNDS):
        differed, count = embed()
        embedded += count
        if differed <= FEW:
            break
    return embedded


def previous_beside(collection: StoredCollection) -> tuple[Path, ModelSpec]:
    """Return the folder of the previous model's embeddings, and the model.

    Raises:
        SondeError: There is none.
    """
    previous = collection.get(PREVIOUS)
    folder = model_folder(collection.path, previous) if previous else None
    if folder is None or not (folder / "catalog.db").is_file():
        raise SondeError(f"{collection.named} keeps no previous model: there is nothing to undo")
    with closing(StoredCollection.open(folder)) as beside:
        return folder, beside.spec


def bring_up_to_date(collection: StoredCollection, other: Path, load: Load, notify: Notify = silent) -> None:
    """Embed the documents that changed since in `other`, and repair it where it is damaged; see `switch`."""
    catch_up(collection, other, load, notify)
    check(other, load, collection.device, notify)


def switch(collection: StoredCollection, other: Path, load: Load, notify: Notify = silent) -> Path:
    """Give a collection the embeddings in `other`, in one commit; return where its own are kept.

    The caller holds `changing`. Documents that were written meanwhile are embedded first, under the collection's lock.

    Args:
        collection: The collection.
        other: Embeddings of another model, which are sound: made by `embed_beside`, or found by `previous_beside`.
        load: Loads that model; called only where there is something to embed.
        notify: Receives progress.

    Raises:
        SondeError: Another process is writing, the model is not available, or the disk is full; the collection is
            then as it was.
    """
    folder = collection.path
    with (
        writer_lock(check_folder(folder)),
        closing(Catalog.open(collection.catalog_path, write=True)) as catalog,
    ):
        sweep(folder, catalog)
        catch_up(collection, other, load, notify)
        return exchange(folder, catalog, other)


def discard(collection: StoredCollection, *, previous: bool) -> list[OtherModel]:
    """Remove the embeddings of the previous model, or of models that were not switched to; return what was removed.

    The caller holds `changing`.

    Raises:
        SondeError: Another process is writing, or a file cannot be removed.
    """
    with (
        writer_lock(check_folder(collection.path)),
        closing(Catalog.open(collection.catalog_path, write=True)) as catalog,
    ):
        kept, known = catalog.get(PREVIOUS), other_models(collection.path, catalog)
        if previous and kept is not None:
            catalog.remove(PREVIOUS)
        folders = [path for path in models_folder(collection.path).iterdir() if path.is_dir()]
        gone = [path for path in folders if (path.name == kept) == previous]
        for path in gone:
            remove_folder(path)
    return [other for other in known if other.folder in gone]


def catch_up(
    collection: StoredCollection, other: Path, load: Load, notify: Notify = silent, *, same_numbers: bool = False
) -> tuple[int, int]:
    """Embed documents that differ; return how many did, and how many passages were embedded.

    With `same_numbers`, documents have the numbers of the collection: those of shards tell the shard.

    Raises:
        SondeError: There are no documents, the model is not available, or the disk is full.
    """
    with closing(Catalog.open(collection.catalog_path)) as catalog:
        if not catalog.counts()[0]:
            raise SondeError(f"{collection.named} holds no documents: index some before you change the model")
        new, gone = differing(catalog, other)
        if gone:
            delete_chosen(other, lambda _: gone)
        if not len(new):
            return len(gone), 0
        asked = {name: value for name, value in catalog.get("ann", {}).items() if name in ASKED}
        ann = AnnSettings(**asked, device=search_device(collection.device))
        settings = BuildSettings(language=catalog.get("language"), ann=ann, wait=0)
        try:
            report = index_documents(
                _documents(catalog, new), other, settings=settings, encoder=load(), notify=_of(len(new), notify),
                numbers=_numbers(catalog, new) if same_numbers else None, part=True,
            )  # fmt: skip
        except NothingToIndexError:  # deleted since the line above
            return len(new), 0
        return len(new) + len(gone), report.embedded


def _numbers(catalog: Catalog, docs: np.ndarray) -> dict[str, int]:
    return {key: doc for doc, key in ids_by_number(catalog, docs.tolist()).items()}


def _documents(catalog: Catalog, docs: np.ndarray) -> Iterator[Document]:
    """Yield documents without metadata as they are now; each slice is read at once, so that no view stays open."""
    for some in in_slices(docs.tolist(), AT_ONCE):
        for each in list(chosen_texts(catalog, some)):
            yield Document(each.text, each.title, each.id, language=each.language)


def _of(total: int, notify: Notify) -> Notify:
    """Return a receiver that knows how many documents there are; the sentences of an index run are left out."""

    def passed(event: Progress | str) -> None:
        if isinstance(event, Progress):
            notify(replace(event, total=max(total, event.done)) if event.total is None else event)

    return passed


def check(other: Path, load: Load, device: str, notify: Notify = silent) -> None:
    """Bring both indexes up to date, and check everything: what is damaged is embedded again."""
    with (
        writer_lock(other),
        closing(Catalog.open(other / "catalog.db", write=True)) as catalog,
        suppress(FileNotFoundError, SondeError),  # embeddings are missing or damaged
    ):
        update_derived(other, catalog, AnnSettings(device=search_device(device)), notify)
    with closing(StoredCollection.open(other, device=device)) as beside:
        if not verify(beside):
            return
        beside.use(load())
        repair(beside, notify)


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
