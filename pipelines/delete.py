"""Deleting documents by id or by filter."""

from collections.abc import Sequence

from ..indexer.catalog import Catalog
from ..indexer.collection import Collection
from ..indexer.delete import delete_chosen, numbers_of
from ..indexer.errors import UsageError
from ..indexer.progress import Notify, silent
from .filters import documents_where


def delete(collection: Collection, ids: Sequence[str] = (), where: str | None = None, notify: Notify = silent) -> int:
    """Delete documents by id or by filter; return how many were deleted.

    Raises:
        SondeError: An id does not exist (nothing is deleted then), or another process is writing.
        UsageError: The filter cannot be right, or neither ids nor a filter were given.
    """
    if not ids and where is None:
        raise UsageError("say which documents to delete: their ids, or a filter with --where")
    with collection.view() as view:  # an id that does not exist should not have to wait for a writer
        numbers_of(view.catalog, ids)

    def choose(catalog: Catalog) -> list[int]:
        docs = numbers_of(catalog, ids)
        if where is not None:
            docs += documents_where(catalog, where).tolist()
        return sorted(set(docs))

    return delete_chosen(collection.path, choose, notify)
