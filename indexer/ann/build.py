"""From vectors to a tuned and measured index."""

from typing import Any

import numpy as np

from ..errors import UsageError
from . import kinds
from .choice import choose
from .growth import Notify, grow, held_out, silent
from .index import AnnIndex
from .library import faiss, threads
from .nodes import Nodes
from .settings import AnnInfo, AnnSettings, Kind
from .source import VectorSource


def build(
    vectors: VectorSource,
    settings: AnnSettings,
    *,
    alive: np.ndarray | None = None,
    notify: Notify = silent,
) -> AnnIndex:
    """An index over the vectors, of a kind that fits them, tuned until recall@10 reaches the target.

    The queries of the tuning are vectors of the collection itself, left out of the index meanwhile. An HNSW graph
    grows on several threads whose order the system decides: two builds differ in their links, and where recall is
    below 1, now and then in an answer. With `threads=1`, and for every other kind, equal input gives an equal index.

    Args:
        vectors: The stored vectors.
        settings: Kind, target, memory budget, seed, threads.
        alive: bool [rows]; rows where it is false are left out.
        notify: Called with (stage, done, total) as the work goes on.

    Raises:
        UsageError: There is no live row, or `alive` does not fit the rows.
        MissingExtraError: FAISS is not installed.
    """
    rows = _live_rows(vectors, alive)
    random = np.random.default_rng(settings.seed)
    with threads(settings.threads):
        notify("reading vectors", 0, len(rows))
        nodes = Nodes.distinct(vectors, rows)
        kind, reason = choose(settings, vectors.dimension, len(nodes))
        held = held_out(kind, len(nodes) // 10)
        nodes = nodes.moved_last(random.choice(len(nodes), held, replace=False))
        index = kinds.create(kind, vectors.dimension, len(nodes), settings.seed)
        trained_on = _train(index, kind, vectors, nodes.head(len(nodes) - held), random, notify)
        info = AnnInfo(
            kind=kind,
            rows=len(vectors),
            vectors=len(nodes),
            dimension=vectors.dimension,
            metric=settings.metric,
            target=settings.target_recall,
            trained_on=trained_on,
            reason=reason,
            seed=settings.seed,
            versions={"faiss": faiss().__version__, "numpy": np.__version__},
        )
        return grow(AnnIndex(index, nodes, info), vectors, held, random, notify)


def _live_rows(vectors: VectorSource, alive: np.ndarray | None) -> np.ndarray:
    if alive is not None and len(alive) != len(vectors):
        raise UsageError(f"the mask of live rows covers {len(alive)} rows, the vectors have {len(vectors)}")
    rows = np.arange(len(vectors)) if alive is None else np.flatnonzero(alive)
    if not len(rows):
        raise UsageError("there is no live row to index; add documents first")
    return rows


def _train(
    index: Any, kind: Kind, vectors: VectorSource, nodes: Nodes, random: np.random.Generator, notify: Notify
) -> int:
    """Train the codes and cells on a sample of the nodes; the number of vectors that were seen."""
    size = kinds.training_size(kind, len(nodes))
    if size:
        notify("training", 0, size)
        index.train(vectors.read(np.sort(random.choice(nodes.first, size, replace=False))))
    return size
