"""One thread, where the order in which sums are taken would otherwise depend on how many there are."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock

from ...indexer.ann.library import faiss, threads

_ONE_AT_A_TIME = RLock()


@contextmanager
def one_thread() -> Iterator[None]:
    """Run the block with one thread in FAISS, BLAS and OpenMP, so that a result does not depend on their number.

    Numba keeps its threads: the layout (`layout.py`) takes all of them and is the same for any number.
    Limits hold for the whole process, so blocks of several threads wait for each other.
    """
    import numpy  # noqa: F401  # loaded before limits are set, as is FAISS: a library loaded later would not have them
    from threadpoolctl import threadpool_limits

    faiss()
    with _ONE_AT_A_TIME, threads(1), threadpool_limits(1):
        yield
