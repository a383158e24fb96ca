"""Deleting documents by id or by filter."""

from ..indexer.catalog import Catalog
from ..indexer.collection import Collection
from ..indexer.delete import delete_chosen, numbers_of
from ..indexer.errors import UsageError
from ..indexer.progress import Notify, silent
from .filters import check_filter, documents_where
from .texts import Ids, as_texts


def delete(collection: Collection, ids: Ids = (), where: str | None = None, notify: Notify = silent) -> int:
    """Delete documents by id or by filter; return how many were deleted.

    Raises:
        SondeError: An id does not exist (nothing is deleted then), or another process is writing.
        UsageError: The filter or an id is not valid, or neither ids nor a filter were given.
    """
    ids = as_texts(ids, "id")
    if not ids and where is None:
        raise UsageError("say which documents to delete: their ids, or a filter with --where")
    check_filter(collection, where)  # a mistake should not have to wait for a writer
    with collection.view() as view:
        numbers_of(view.catalog, ids)

    def choose(catalog: Catalog) -> list[int]:
        docs = numbers_of(catalog, ids)
        if where is not None:
            docs += documents_where(catalog, where).tolist()
        return sorted(set(docs))

    return delete_chosen(collection.path, choose, notify)
