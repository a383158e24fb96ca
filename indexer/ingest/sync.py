"""`sync`, which deletes the documents that a source no longer has; and which sources it refuses, as the wrong ones."""

from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TypeGuard

from ..document import Document, Skipped, composed
from ..errors import Message, SondeError, UsageError, arg
from ..progress import Notify
from ..store.catalog import Catalog
from ..store.documents import document_ids, numbers_by_id
from ..store.export import SOURCES
from ..store.members import Seen
from ..store.writing import delete_documents
from ..wording import counted, on_one_line
from .plan import key_of, unfit
from .report import Tally, say_marked

FEW = 20
"""`sync` deletes this many documents or fewer even if they are most of the collection."""
SAMPLES = "source_samples"
SAMPLE = 64
"""Ids that a collection remembers of each run's documents."""


def remember_sources(catalog: Catalog, sources: Sequence[str], seen: Seen) -> None:
    """Write the paths of a run's sources beside those of earlier runs, and a sample of the ids that it has met.

    An export must overwrite no source, and `sync` must not take one source for another.
    """
    before = catalog.get(SOURCES, [])
    both = [*dict.fromkeys([*(before if _are_texts(before) else []), *sources])]
    if both != before:
        catalog.set(SOURCES, both)
    if sources:
        others = [each for each in _samples(catalog) if not set(each[0]) <= {*sources}]
        samples = [*others, (list(sources), seen.sample(SAMPLE))]
        catalog.set(SAMPLES, [{"sources": paths, "ids": ids} for paths, ids in samples])


def delete_vanished(
    catalog: Catalog, sources: Sequence[str], seen: Seen, tally: Tally, delete_most: bool, notify: Notify
) -> None:
    """Delete the documents that a run has not met, and count them.

    Raises:
        UsageError: They may come from another source, and `delete_most` is not given.
    """
    vanished = seen.missing(document_ids(catalog))
    if not delete_most:
        _refuse(catalog, sources, seen, len(vanished), tally.added)
    if vanished:
        say_marked(catalog, vanished, notify)
        with catalog.transaction(write=True):
            delete_documents(catalog, vanished)
            catalog.advance()
        tally.deleted = len(vanished)


def say_vanished(catalog: Catalog, folder: Path, sources: Sequence[str], seen: Seen, notify: Notify) -> None:
    """Say how many documents of a collection's only folder have no file there any more."""
    beside = folder.absolute().parent
    if not sources or catalog.get(SOURCES) != [*sources] or not all((beside / path).is_dir() for path in sources):
        return
    if vanished := len(seen.missing(document_ids(catalog))):
        have = "has" if vanished == 1 else "have"
        said = f"{counted(vanished, 'document')} of {folder} {have} no file any more"
        notify(Message(f"note: {said}; {arg('sync')} deletes such documents"))


def refuse_wrong_source(documents: Iterable[Document | Skipped], folder: Path, sources: Sequence[str]) -> None:
    """Read a source once more, before anything is embedded, to see whether `sync` would take it for another one.

    Raises:
        UsageError: It would delete most documents, or all of another source.
    """
    try:
        catalog = Catalog.open(folder / "catalog.db")
    except SondeError:  # the run makes the collection, brings it up to date, or says what is wrong with it
        return
    seen, found = Seen(), 0
    for one in documents:
        if isinstance(one, Document):
            found += not unfit(one) and bool(key_of(one, seen))
        else:
            seen.count(one.key or "")
    with closing(catalog):
        if found:  # the run itself refuses an empty source
            here = ((number, composed(id)) for number, id in document_ids(catalog))
            _refuse(catalog, sources, seen, len(seen.missing(here)), 0)


def _refuse(catalog: Catalog, sources: Sequence[str], seen: Seen, vanished: int, added: int) -> None:
    if vanished:
        refuse_to_delete_most(vanished, catalog.counts()[0] - added, added)
        _refuse_to_forget(catalog, sources, seen, added)


def _refuse_to_forget(catalog: Catalog, sources: Sequence[str], seen: Seen, added: int) -> None:
    """Raise UsageError if all that is known of a former source would go, since it is then no older form of this one."""
    for paths, ids in _samples(catalog):
        there = numbers_by_id(catalog, ids)
        gone = seen.missing((number, composed(id)) for id, number in there.items())
        if not set(paths) <= {*sources} and len(gone) > len(ids) / 2:
            names = ", ".join(map(on_one_line, paths))
            raise UsageError(
                f"{arg('sync')} would delete the documents of {names}, which is not among the sources now, so "
                f"{_did(added)}: give all sources in one run; if these are to go, give {arg('delete_most')}",
                code="deletes-most", field="delete_most",
            )  # fmt: skip


def refuse_to_delete_most(vanished: int, before: int, added: int = 0) -> None:
    """Raise UsageError if `sync` would delete most of the documents that a collection had: the source may be wrong.

    `added` is how many documents the run has added already.
    """
    if vanished > max(before / 2, FEW):
        raise UsageError(
            f"{vanished:,} of the {counted(before, 'document')} of the collection are not in the source, so "
            f"{_did(added)}: check the source; if it is the right one, give {arg('delete_most')}",
            code="deletes-most", field="delete_most",
        )  # fmt: skip


def _did(added: int) -> str:
    return f"nothing was deleted (added: {counted(added, 'document')})" if added else "nothing was changed"


def _samples(catalog: Catalog) -> list[tuple[list[str], list[str]]]:
    """Return the paths of former runs with some of their ids; a collection that was received may hold anything."""
    stored = catalog.get(SAMPLES, [])
    known = stored if isinstance(stored, list) else []
    found = [(each.get("sources"), each.get("ids")) for each in known if isinstance(each, dict)]
    return [(paths, ids) for paths, ids in found if _are_texts(paths) and _are_texts(ids)]


def _are_texts(values: object) -> TypeGuard[list[str]]:
    return isinstance(values, list) and bool(values) and all(isinstance(value, str) for value in values)
