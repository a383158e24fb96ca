"""Deleting documents: one commit, then the derived indexes follow."""

from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

from .catalog import Catalog, storable
from .collection import check_folder
from .derived import update_lexical
from .errors import SondeError
from .lock import writer_lock
from .progress import Notify, silent
from .sweep import sweep
from .writing import delete_documents


def delete_chosen(folder: Path, choose: Callable[[Catalog], Sequence[int]], notify: Notify = silent) -> int:
    """Delete the documents whose numbers `choose` returns, all in one commit; return how many there were.

    They are chosen inside the transaction that deletes them: a number that another writer freed may be used again.

    Raises:
        SondeError: Another process is writing, or the collection cannot be written.
    """
    with writer_lock(check_folder(folder)), closing(Catalog.open(folder / "catalog.db", write=True)) as catalog:
        sweep(folder, catalog)
        with catalog.transaction(write=True):
            before = catalog.counts()[0]
            delete_documents(catalog, choose(catalog))
            deleted = before - catalog.counts()[0]
            if deleted:
                catalog.advance()
        update_lexical(folder, catalog, notify)
    return deleted


def numbers_of(catalog: Catalog, keys: Sequence[str]) -> list[int]:
    """Return the numbers of documents by id.

    Raises:
        SondeError: An id does not exist; the message names it and counts the others.
    """
    sql = "SELECT doc, key FROM documents WHERE key IN (?)"
    found = {key: doc for doc, key in catalog.select_in(sql, [key for key in keys if storable(key)])}
    missing = [key for key in keys if key not in found]
    if missing:
        others = f" and {len(missing) - 1:,} more" if len(missing) > 1 else ""
        raise SondeError(f"there is no document with the id {missing[0]!r}{others}: nothing was changed")
    return [found[key] for key in dict.fromkeys(keys)]
