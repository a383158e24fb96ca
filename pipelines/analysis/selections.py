"""Selections of documents, by id or filter: put together under a tag, or deleted."""

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from ...indexer.errors import Ids, SondeError, UsageError, arg, as_texts
from ...indexer.progress import Notify, silent
from ...indexer.store.catalog import Catalog
from ...indexer.store.collection import StoredCollection
from ...indexer.store.documents import document_numbers
from ...indexer.store.kinds import TAG
from ...indexer.store.run_writing import NewRun, change_run
from ...indexer.store.runs import Item, Run, assignments_of
from ...indexer.upkeep.delete import delete_chosen, numbers_of
from ..search.filters import check_filter, documents_where, empty_hint

Change = Literal["new", "add", "remove", "replace"]
CHANGES: tuple[Change, ...] = get_args(Change)


@dataclass(frozen=True, slots=True)
class Tagged:
    """A tag as it is kept now.

    Attributes:
        tag: Its name.
        documents: How many documents have it.
        changed: How many got it, or lost it.
    """

    tag: str
    documents: int
    changed: int

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return {name: getattr(self, name) for name in self.__slots__}


def tag(
    collection: StoredCollection,
    name: str,
    *,
    ids: Ids | None = None,
    where: str | None = None,
    docs: np.ndarray | None = None,
    change: Change = "new",
) -> Tagged:
    """Put documents together under a name: a tag run, which filters, exports and maps know.

    Args:
        collection: Where they are.
        name: The tag's.
        ids: Of documents.
        where: A filter; what passes it counts beside `ids`.
        docs: Document numbers, as a map has them; those that no longer exist are left out.
        change: What to do if the tag exists: "new" refuses, "add" and "remove" change it, "replace" replaces it.

    Raises:
        UsageError: Nothing says which documents, the filter or the name is not valid, the tag exists and is to be
            new, or no document would have it.
        SondeError: An id does not exist, there is no tag to remove documents from, or another process is writing.
    """
    if change not in CHANGES:
        raise UsageError(f"{change!r} is no way to change a tag: use {', '.join(CHANGES)}")
    if ids is None and where is None and docs is None:
        raise UsageError(f"say which documents: their ids, or a filter with {arg('where')}", code="empty", field="ids")
    keys = [] if ids is None else as_texts(ids, "id")
    counts = {"changed": 0}

    def changed(catalog: Catalog, old: Run | None) -> NewRun:
        if old is not None and change == "new":
            said = f"there is a tag {name!r} already: add to it, replace it, or choose another name"
            raise UsageError(said, code="name-taken", field="name", value=name)
        if old is None and change == "remove":
            raise SondeError(f"there is no tag {name!r} to remove documents from")
        before = assignments_of(catalog, old)[0] if old else np.zeros(0, np.int64)
        kept = _kept(before, _chosen(catalog, keys, where, docs), change)
        if not len(kept):
            raise UsageError(f"nothing is left for the tag {name!r}: {_why_empty(catalog, where, change)}")
        counts["changed"] = len(np.setxor1d(before, kept))
        return _run(name, kept)

    found = change_run(collection, TAG, name, changed)
    return Tagged(name, int(found.report["documents"]), counts["changed"])


def _chosen(catalog: Catalog, ids: list[str], where: str | None, docs: np.ndarray | None) -> np.ndarray:
    found = np.array(numbers_of(catalog, ids), np.int64)
    if where is not None:
        found = np.union1d(found, documents_where(catalog, where))
    if docs is not None:
        found = np.union1d(found, np.intersect1d(docs, document_numbers(catalog)))
    return np.unique(found)


def _kept(before: np.ndarray, chosen: np.ndarray, change: Change) -> np.ndarray:
    if change == "remove":
        return np.setdiff1d(before, chosen)
    return np.union1d(before, chosen) if change == "add" else chosen


def _why_empty(catalog: Catalog, where: str | None, change: Change) -> str:
    if change == "remove":
        return "every document would lose it: delete the tag"
    return f"no document passes{empty_hint(catalog, where)}" if where else "no document was given"


def _run(name: str, docs: np.ndarray) -> NewRun:
    numbers, scores = np.zeros(len(docs), np.int64), np.full(len(docs), np.nan)
    item = Item(0, name, {"size": len(docs)})
    return NewRun(TAG, name, {}, report={"documents": len(docs)}, items=[item], assignments=(docs, numbers, scores))


def delete(
    collection: StoredCollection, ids: Ids | None = None, where: str | None = None, notify: Notify = silent
) -> int:
    """Delete documents by id or by filter; return how many were deleted.

    Raises:
        SondeError: An id does not exist (nothing is deleted then), or another process is writing.
        UsageError: The filter or an id is not valid, or ids and a filter were given, or neither.
    """
    if ids is None and where is None:
        said = f"say which documents to delete: their ids, or a filter with {arg('where')}"
        raise UsageError(said, code="empty", field="ids")
    if ids is not None and where is not None:
        said = f"give ids or {arg('where')}, not both, which could mean the documents with either or those with both"
        raise UsageError(said, code="conflict", field="where", value=where)
    keys = [] if ids is None else as_texts(ids, "id")
    check_filter(collection, where)  # a mistake should not have to wait for a writer
    with collection.view() as view:
        numbers_of(view.catalog, keys)

    def choose(catalog: Catalog) -> list[int]:
        docs = numbers_of(catalog, keys)
        if where is not None:
            docs += documents_where(catalog, where).tolist()
        return sorted(set(docs))

    if collection.sharded:
        from ...indexer.sharded.collection import ShardedCollection
        from ...indexer.sharded.upkeep import delete_sharded

        assert isinstance(collection, ShardedCollection)
        return delete_sharded(collection, choose, notify)
    return delete_chosen(collection.path, choose, notify)
