"""CUDA graphs: the launches of a forward pass, recorded once and started with one call.

Each operation of torch releases Python's lock and waits to get it back. If other threads run Python, as in an index
run, it waits up to five milliseconds. A forward pass has about seventy operations; a replay is one.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import torch

Work = Callable[[], "torch.Tensor"]


class Graphs(Protocol):
    """Records work on fixed tensors."""

    def capture(self, work: Work) -> Work:
        """Return a function that repeats the work, which has run before; every call fills the same tensor.

        Raises:
            RuntimeError: The device cannot record the work.
        """
        ...


class CudaGraphs:
    """Records on one CUDA device, all graphs in one pool of memory: only one may run at a time."""

    def __init__(self) -> None:
        self._pool: Any = None

    def capture(self, work: Work) -> Work:
        """Return a function that replays the work."""
        import torch

        graph = torch.cuda.CUDAGraph()
        # Other threads may use the device meanwhile.
        with torch.cuda.graph(graph, pool=self._pool, capture_error_mode="thread_local"):
            found = work()
        self._pool = self._pool or graph.pool()

        def replay() -> "torch.Tensor":
            graph.replay()
            return found

        return replay
