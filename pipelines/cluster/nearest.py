"""Clusters nearest to a query."""

import numpy as np

from ...indexer.collection import Collection
from ...indexer.errors import UsageError
from ...indexer.runs import Item, array_of, find_run, items_of


def clusters_near(collection: Collection, query: str, run: str | None = None, k: int = 10) -> list[tuple[Item, float]]:
    """Return the clusters whose mean is nearest to a query, with their cosines, the nearest first.

    Args:
        collection: The collection.
        query: In words.
        run: The cluster run; the newest where None.
        k: How many, 1 or more.

    Raises:
        UsageError: The query is empty, or k below 1.
        SondeError: There is no such run, or the collection's model cannot be had.
    """
    if not query.strip() or k < 1:
        raise UsageError("the query is empty" if not query.strip() else f"k is {k}: it must be 1 or more")
    with collection.view() as view:
        found = find_run(view.catalog, "cluster", run)
        means = array_of(view.catalog, found, "centroids")
        items = {item.number: item for item in items_of(view.catalog, found)}
    [vector] = collection.encoder.encode_texts([query], query=True)
    cosines = np.round((means @ vector).astype(np.float64), 6)
    order = [number for number in np.argsort(-cosines, kind="stable").tolist() if number in items]
    return [(items[number], float(cosines[number])) for number in order[:k]]
