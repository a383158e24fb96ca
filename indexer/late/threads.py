"""One thread for NumPy's linear algebra while worker threads pack tokens."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_lock = threading.Lock()
_inside = 0
_limits: Any = None


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Let every thread multiply matrices by itself: workers that each use all cores take twice the processor's time.

    The limit holds for the whole process, until the last of those that are inside leaves.
    """
    from threadpoolctl import threadpool_limits

    global _inside, _limits
    with _lock:
        if not _inside:
            _limits = threadpool_limits(1, user_api="blas")
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside:
                _limits.restore_original_limits()
