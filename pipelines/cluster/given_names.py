"""Names that a person gave to clusters, carried over to the clusters of a run that replaces theirs."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...indexer.progress import Notify
from ...indexer.store.catalog import Catalog
from ...indexer.store.kinds import CLUSTER
from ...indexer.store.run_writing import RENAMED
from ...indexer.store.runs import Item, assignments_of, items_of, list_runs

SHARED = 0.5
"""Of the documents of two clusters together, the share that both must have for the name to be carried over."""


def carry_names(
    catalog: Catalog, run: str, items: Sequence[Item], docs: np.ndarray, labels: np.ndarray, notify: Notify
) -> list[Item]:
    """Return clusters under the names that a person gave to those that they replace.

    A cluster takes over a name if both clusters share more than half of their documents (Jaccard index), which at most
    one cluster can do. A name that no cluster takes over is reported.

    Args:
        catalog: Of the collection.
        run: Name of the run that is replaced; nothing is carried over if there is none.
        items: The new clusters.
        docs: int64 [n], document numbers.
        labels: int64 [n], the new cluster of each.
        notify: Receives a sentence for each name that is lost.
    """
    old = next((each for each in list_runs(catalog, CLUSTER, count=False) if each.name == run), None)
    given = [item for item in items_of(catalog, old) if item.data.get(RENAMED)] if old else []
    if old is None or not given:
        return list(items)
    before, numbers, _ = assignments_of(catalog, old)
    names: dict[int, str] = {}
    for item in given:
        number = _heir(docs, labels, before[numbers == item.number])
        if number is None:
            notify(f"no cluster has most of the documents of {item.name!r} any more: that name is gone")
        else:
            names[number] = item.name
    return [_named(item, names.get(item.number)) for item in items]


def _named(item: Item, name: str | None) -> Item:
    return item if name is None else replace(item, name=name, data={**item.data, RENAMED: True})


def _heir(docs: np.ndarray, labels: np.ndarray, members: np.ndarray) -> int | None:
    """Return the cluster that shares more than half of its and these documents with them, if there is one."""
    inside = labels[np.isin(docs, members)]
    inside = inside[inside >= 0]
    if not len(inside):
        return None
    number = int(np.bincount(inside).argmax())
    shared, own = int((inside == number).sum()), int((labels == number).sum())
    return number if shared / (own + len(members) - shared) > SHARED else None
