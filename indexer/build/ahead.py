"""Working one step ahead in a thread, so that preparing the next batch overlaps with embedding this one."""

import queue
import threading
import time
from collections.abc import Iterator
from typing import Generic, TypeVar

T = TypeVar("T")
_END = object()
PATIENCE = 10.0
"""Seconds to wait for the thread after an error: it may be blocked for ever on standard input, and dies with us."""


class Ahead(Generic[T]):
    """Iterates over `items` in a thread of its own, at most `depth` items ahead; errors come out where they belong."""

    def __init__(self, items: Iterator[T], depth: int = 1) -> None:
        self._queue: queue.Queue[object] = queue.Queue(depth)
        self._stop = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(items,), name="sonde-planner", daemon=True)

    def __enter__(self) -> Iterator[T]:
        self._thread.start()
        return self._items()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        patience = time.monotonic() + PATIENCE
        while self._thread.is_alive() and time.monotonic() < patience:
            self._drain()
            self._thread.join(0.05)

    def _items(self) -> Iterator[T]:
        while (item := self._queue.get()) is not _END:
            yield item  # type: ignore[misc]
        if self._error:
            raise self._error

    def _run(self, items: Iterator[T]) -> None:
        try:
            for item in items:
                self._queue.put(item)
                if self._stop.is_set():
                    return
        except BaseException as error:  # it is raised again in the consuming thread
            self._error = error
        self._queue.put(_END)

    def _drain(self) -> None:
        while not self._queue.empty():
            self._queue.get_nowait()
