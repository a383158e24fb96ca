"""A group that a taxonomy does not have, when a collection has several taxonomies."""

from collections.abc import Iterator
from contextlib import contextmanager

from ...indexer.errors import SondeError
from ...indexer.store.catalog import Catalog
from ...indexer.store.collection import StoredCollection
from ...indexer.store.kinds import TAXONOMY
from ...indexer.store.runs import find_run, list_runs
from .finding import NOT_HERE, find_group
from .stored import load


@contextmanager
def told_where_groups_are(collection: StoredCollection, name: str | None) -> Iterator[None]:
    """Let the error for a group that does not exist name its taxonomy and the other taxonomies that have the group.

    Args:
        collection: Where the taxonomies are.
        name: The taxonomy in which groups are looked up; the newest one if None.

    Raises:
        SondeError: The error with the longer message. If there is one taxonomy, the error is unchanged.
    """
    try:
        yield
    except SondeError as error:
        if not str(error).startswith(NOT_HERE):
            raise
        with collection.view() as view:
            names = [run.name for run in list_runs(view.catalog, TAXONOMY, count=False) if run.complete]
            if len(names) < 2:
                raise
            chosen = find_run(view.catalog, TAXONOMY, name).name
            holding = [other for other in names if other != chosen and _has(view.catalog, other, error.value)]
        said = str(error).replace("the taxonomy", f"the taxonomy {chosen!r}", 1)
        said += f"; such a group is in {' and '.join(map(repr, holding))}" if holding else ""
        raise SondeError(said, code=error.code, field=error.field, value=error.value) from None


def _has(catalog: Catalog, name: str, group: object) -> bool:
    """Return whether a taxonomy has a group of this number, name or path."""
    groups = load(catalog, name, documents=False).state.groups
    try:
        find_group(groups, group if isinstance(group, int) else str(group))
    except SondeError as error:
        return error.code == "ambiguous"
    return True
