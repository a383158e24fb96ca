"""Switch a collection to another model whose embeddings are ready: files first, then one commit.

The embeddings that the collection has are first linked into a collection of their own, from which the same exchange
goes back. Killed before the commit, the collection is as it was; after it, it has the other model. What is left over
is removed by the next writer (`integrity.sweep`).
"""

import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np

from ..document import Document
from ..encoder import ModelSpec
from ..errors import SondeError
from ..files import link_or_copy, make_folder, sync_folder
from ..wording import counted
from .catalog import Catalog, is_unborn
from .checksums import PASSAGES, fill_documents, passages_now, store
from .derived import ANN_BUILT, DERIVED
from .integrity import sweep
from .late import LATE_BUILT
from .late import WANTED as LATE_WANTED
from .models import HISTORY, PREVIOUS, History, model_folder
from .passages import add_segment, remove_segments
from .segments import Segment
from .writing import Identity

KEPT = ("model", "language", "epoch", ANN_BUILT, LATE_WANTED, LATE_BUILT, "ann", "generation", "search_defaults")
"""Properties that stay with the embeddings of a model."""
TUNED = "search_defaults"


@contextmanager
def attached(catalog: Catalog, folder: Path) -> Iterator[None]:
    """Let a catalog read that of another collection, under the name `other`; not inside a transaction."""
    address = f"{(folder / 'catalog.db').absolute().as_uri()}?mode=ro"
    catalog.connection.execute("ATTACH DATABASE ? AS other", (address,))
    try:
        yield
    finally:
        catalog.connection.execute("DETACH DATABASE other")


def differing(catalog: Catalog, other: Path) -> tuple[np.ndarray, list[int]]:
    """Compare the documents of a collection with those that another one has embedded.

    Args:
        catalog: Of the collection.
        other: The folder of the other one.

    Returns:
        int64 [n], the documents whose content the other one does not have, by number; and the other one's numbers of
        documents that are gone.
    """
    path = other / "catalog.db"
    if not path.is_file() or is_unborn(path):  # killed before it wrote anything: the next index run begins again
        return _numbers(catalog, "SELECT doc FROM documents ORDER BY doc"), []
    with attached(catalog, other):
        new = _numbers(
            catalog,
            "SELECT d.doc FROM main.documents d LEFT JOIN other.documents o ON o.key = d.key "
            "WHERE o.doc IS NULL OR o.content != d.content ORDER BY d.doc",
        )
        gone = _numbers(
            catalog,
            "SELECT o.doc FROM other.documents o LEFT JOIN main.documents d ON d.key = o.key WHERE d.doc IS NULL",
        )
    return new, gone.tolist()


def changed_since(catalog: Catalog) -> np.ndarray:
    """Return int64 [n], documents of an attached catalog that are gone, or have another content, by number."""
    sql = "SELECT o.doc FROM other.documents o LEFT JOIN main.documents d ON d.doc = o.doc "
    return _numbers(catalog, f"{sql} WHERE d.doc IS NULL OR d.content != o.content ORDER BY o.doc")


def _numbers(catalog: Catalog, sql: str) -> np.ndarray:
    return np.array(catalog.connection.execute(sql).fetchall(), np.int64).reshape(-1)


def exchange(folder: Path, catalog: Catalog, other: Path) -> Path:
    """Switch a collection to the embeddings of another model, and keep its own; return the folder of those.

    The caller holds the writer locks of both, and has checked that both have the same documents (`differing`).

    Args:
        folder: The collection.
        catalog: Its catalog, open for writing, outside a transaction.
        other: The folder of the other model's embeddings. It no longer exists afterwards.

    Raises:
        SondeError: The documents differ, or a file cannot be written; the collection is then as it was.
    """
    before, epoch = History(catalog), catalog.epoch()
    kept = model_folder(folder, before.fingerprint)
    replaced, moved = catalog.get(PREVIOUS), list[tuple[Path, Path]]()
    try:
        keep_embeddings(folder, catalog, kept)
        with closing(Catalog.open(other / "catalog.db")) as new:
            segments = _linked(folder, catalog, other, new)
            moved += _moved(other, new.epoch(), folder, epoch + 1)
        _commit(catalog, other, segments)
    except BaseException:
        if History(catalog).fingerprint == before.fingerprint:  # nothing was committed
            for there, here in moved:
                here.rename(there)
            shutil.rmtree(kept, ignore_errors=True)
        raise
    _moved(folder, epoch, kept, epoch)
    shutil.rmtree(other, ignore_errors=True)
    if replaced not in (None, other.name):
        shutil.rmtree(model_folder(folder, replaced), ignore_errors=True)
    sweep(folder, catalog)
    return kept


def take_over(folder: Path, catalog: Catalog, other: Path) -> None:
    """Give a collection that nobody else reads the embeddings of another model; `other` stays as it is.

    Args:
        folder: The collection, the copy of a shard.
        catalog: Its catalog, open for writing, outside a transaction.
        other: The folder of the other model's embeddings of the same documents.

    Raises:
        SondeError: The documents differ, or a file cannot be written.
    """
    with closing(Catalog.open(other / "catalog.db")) as new:
        segments = _linked(folder, catalog, other, new)
        copy_derived(other, new.epoch(), folder, catalog.epoch() + 1)
    _commit(catalog, other, segments)
    sweep(folder, catalog)


def copy_derived(source: Path, epoch: int, target: Path, to: int) -> None:
    """Copy the derived indexes of an epoch; what is written to one copy must not change the other."""
    for kind in DERIVED:
        there, here = source / kind / str(epoch), target / kind / str(to)
        shutil.rmtree(here, ignore_errors=True)
        if there.is_dir():
            make_folder(here.parent)
            shutil.copytree(there, here)


def keep_embeddings(folder: Path, catalog: Catalog, kept: Path) -> None:
    """Make a collection of the documents and embeddings that a collection has now, without metadata and runs."""
    shutil.rmtree(kept, ignore_errors=True)
    make_folder(kept / "vectors")
    for segment in catalog.segments():
        link_or_copy(segment.path(folder / "vectors"), segment.path(kept / "vectors"))
    sync_folder(kept / "vectors")
    with closing(Catalog.create(kept / "catalog.db")) as copy, attached(copy, folder), copy.transaction(write=True):
        copy.connection.execute(
            "INSERT INTO documents SELECT doc, key, title, text, length, language, content, ? FROM other.documents",
            (Identity.of(Document("")).extra,),
        )
        copy.connection.execute("INSERT INTO metadata(doc) SELECT doc FROM other.documents")
        fill_documents(copy.connection, [])
        copy.connection.execute("INSERT INTO passages SELECT * FROM other.passages")
        store(copy.connection, PASSAGES, passages_now(copy.connection))
        copy.connection.execute("INSERT INTO segments SELECT * FROM other.segments")
        for name in KEPT:
            if (value := catalog.get(name)) is not None:
                copy.set(name, value)
    sync_folder(kept)


def _linked(folder: Path, catalog: Catalog, other: Path, new: Catalog) -> list[Segment]:
    """Give the other model's files of embeddings a name among the collection's; return them under these names."""
    number = 1 + max((segment.number for segment in catalog.segments()), default=0)
    found = []
    for place, segment in enumerate(new.segments()):
        renamed = Segment(number + place, segment.start, segment.count, segment.sha256)
        link_or_copy(segment.path(other / "vectors"), renamed.path(folder / "vectors"))
        found.append(renamed)
    sync_folder(folder / "vectors")
    return found


def _moved(source: Path, epoch: int, target: Path, to: int) -> list[tuple[Path, Path]]:
    """Move the derived indexes of an epoch; one that is lost on the way is rebuilt. Return the old and new names."""
    found = []
    for kind in DERIVED:
        there, here = source / kind / str(epoch), target / kind / str(to)
        if there.is_dir():
            shutil.rmtree(here, ignore_errors=True)
            make_folder(here.parent)
            there.rename(here)
            sync_folder(here.parent)
            found.append((there, here))
    return found


def _commit(catalog: Catalog, other: Path, segments: list[Segment]) -> None:
    """Replace the passages, the segments and what depends on the model, in one transaction."""
    with attached(catalog, other), closing(Catalog.open(other / "catalog.db")) as new, catalog.transaction(write=True):
        spec = ModelSpec.from_dict(new.get("model"))
        history, now = History(catalog), catalog.epoch() + 1
        _replace_passages(catalog)
        remove_segments(catalog, catalog.segments())
        for segment in segments:
            add_segment(catalog, segment)
        catalog.set("model", spec.to_dict())
        catalog.set("epoch", now)
        for built in (ANN_BUILT, LATE_BUILT):
            catalog.set(built, now if new.get(built) == new.epoch() else None)
        catalog.set(PREVIOUS, history.fingerprint)
        catalog.set(HISTORY, history.extended(spec, catalog.advance()))
        if new.get(TUNED) is None:
            catalog.remove(TUNED)
        else:
            catalog.set(TUNED, new.get(TUNED))


def _replace_passages(catalog: Catalog) -> None:
    """Put the passages of the attached catalog in the place of the collection's; documents are matched by id."""
    execute = catalog.connection.execute
    execute("DELETE FROM main.passages")
    execute(
        "INSERT INTO main.passages SELECT p.row, d.doc, p.start, p.end, p.digest FROM other.passages p "
        "LEFT JOIN other.documents o ON o.doc = p.doc LEFT JOIN main.documents d ON d.key = o.key AND "
        "d.content = o.content"
    )
    lost = execute(
        "SELECT count(*) FROM main.documents d WHERE NOT EXISTS (SELECT 1 FROM main.passages p WHERE p.doc = d.doc)"
    ).fetchone()[0]
    if lost:
        have = f"{counted(lost, 'document')} {'has' if lost == 1 else 'have'}"
        raise SondeError(f"{have} no embedding of the other model: run the same command again")
    store(catalog.connection, PASSAGES, passages_now(catalog.connection))
