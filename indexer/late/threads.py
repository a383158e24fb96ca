"""One thread for NumPy's linear algebra while tokens are packed or compared."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

_lock = threading.Lock()
_inside = 0
_limits: Any = None


@cache
def _controller() -> Any:
    """Return what limits the libraries; finding them takes milliseconds, so it is done once."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Let every thread multiply matrices by itself.

    Workers that each use all cores take twice the processor's time; and on a busy machine, the threads of one small
    product wait for each other longer than it takes.

    The limit holds for the whole process, until the last of those that are inside leaves.
    """
    global _inside, _limits
    with _lock:
        if not _inside:
            _limits = _controller().limit(limits=1, user_api="blas")
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside:
                _limits.restore_original_limits()
