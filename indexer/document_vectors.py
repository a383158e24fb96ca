"""One vector for each document: the mean of its passages' vectors."""

from collections.abc import Sequence

import numpy as np

from .view import View

ROWS_AT_ONCE = 65_536
FEW = 20
"""Below this part of the rows, passages are looked up by document instead of by a scan of all owners."""


def document_vectors(view: View, docs: Sequence[int] | np.ndarray) -> np.ndarray:
    """Return float32 [n, d]: for each document the mean of its passages' vectors, normalised if the model's are."""
    docs = np.asarray(docs, dtype=np.int64)
    sums = np.zeros((len(docs), view.generation.segments.dimension), dtype=np.float32)
    if not len(docs):
        return sums
    rows, places = _passages(view, docs)
    for start in range(0, len(rows), ROWS_AT_ONCE):
        some = slice(start, start + ROWS_AT_ONCE)
        owners, first = np.unique(places[some], return_index=True)
        sums[owners] += np.add.reduceat(view.generation.segments.read(rows[some]), first, axis=0)
    sums /= np.maximum(np.bincount(places, minlength=len(docs)), 1)[:, None].astype(np.float32)
    return normalized(sums) if view.collection.spec.normalize else sums


def normalized(vectors: np.ndarray) -> np.ndarray:
    """Return float [n, d] vectors of length 1; a zero vector stays one."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(lengths > 0, lengths, 1)


def _passages(view: View, docs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of these documents' passages and each one's place in `docs`, ordered by place, then row."""
    owners = view.generation.owners
    if len(docs) < len(owners) // FEW:
        sql = "SELECT row FROM passages WHERE doc IN (?)"
        rows = np.sort(np.array([row for (row,) in view.catalog.select_in(sql, docs.tolist())], np.int64))
    else:
        rows = np.flatnonzero(np.isin(owners, docs))
    order = np.argsort(docs, kind="stable")
    places = order[np.searchsorted(docs, owners[rows], sorter=order)]
    by_place = np.argsort(places, kind="stable")
    return rows[by_place], places[by_place]
