"""Worker threads for the forward passes: one per GPU, or one per core, each with its share of the cores."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor


class Crew:
    """Threads that run one task side by side; made at the first task, kept until the process ends.

    On a CPU, a batch per core is faster than all cores on one batch: no thread waits for the others after each
    operation, which costs most where other programs use the cores too.
    """

    def __init__(self, size: int, threads: int) -> None:
        """Take the number of workers, and how many threads torch may use in each of them."""
        self.size = size
        self.threads = threads
        self._pool: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()

    def run(self, task: Callable[[int], None]) -> None:
        """Run `task(0)` to `task(size - 1)` at the same time, wait, and raise the first error."""
        with self._lock:
            self._pool = self._pool or self._gather()
        running = [self._pool.submit(task, number) for number in range(self.size)]
        errors = [error for each in running if (error := each.exception())]
        if errors:
            raise errors[0]

    def _gather(self) -> ThreadPoolExecutor:
        import torch

        pool, everyone = ThreadPoolExecutor(self.size, "sonde-encoder"), threading.Barrier(self.size)
        before = torch.get_num_threads()

        def settle(_: int) -> None:
            torch.get_num_threads()  # this makes torch initialise the thread, which would undo the next line later
            torch.set_num_threads(self.threads)
            everyone.wait()

        list(pool.map(settle, range(self.size)))
        # The number is each thread's own, but also what threads to come start with: that stays as it was.
        torch.set_num_threads(before)
        return pool
