"""A device with too little memory: smaller batches, then the CPU."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, Protocol, Self, TypeVar

from ..errors import SondeError, arg


class Sliceable(Protocol):
    """A batch: it has a length, and parts that are batches too."""

    def __len__(self) -> int: ...

    def __getitem__(self, part: slice, /) -> Self: ...


Batch = TypeVar("Batch", bound=Sliceable)
Result = TypeVar("Result")
Notify = Callable[[str], object]
"""Receives sentences that the user should read."""


class DeviceFullError(SondeError):
    """A model does not fit into a device's memory."""


@contextmanager
def fitting(name: str, device: str) -> Iterator[None]:
    """Within the block, load the model of this name.

    Raises:
        DeviceFullError: The device has too little memory for it.
    """
    import torch

    try:
        yield
    except torch.OutOfMemoryError as error:
        raise DeviceFullError(f"{name} does not fit into the memory of {device}: use {arg('device')} cpu") from error


class Sparing(Generic[Batch, Result]):
    """Runs batches whole, or in as many pieces as the device's memory needs, or on the CPU if one text does not fit.

    Later batches use the same number of pieces, or the CPU. Each of the two steps is reported once.
    """

    def __init__(
        self,
        device: str,
        run: Callable[[Batch], Result],
        on_cpu: Callable[[], Callable[[Batch], Result]],
        notify: Notify,
    ) -> None:
        """Take a function that runs a batch on the device, and one that makes the same for the CPU when needed."""
        self.device = device
        self._run = run
        self._on_cpu = on_cpu
        self._notify = notify
        self._pieces = 1
        self._spare: Callable[[Batch], Result] | None = None

    def run(self, batch: Batch) -> list[Result]:
        """Return the results of the batch's pieces, in order."""
        import torch

        while self._spare is None:
            size = -(-len(batch) // self._pieces)
            try:
                return [self._run(batch[start : start + size]) for start in range(0, len(batch), size)]
            except torch.OutOfMemoryError:
                torch.cuda.empty_cache()
            # Here the traceback, which holds the tensors of the failed batch, has been released.
            self._give_way(size)
        return [self._spare(batch)]

    def _give_way(self, size: int) -> None:
        if size == 1:
            self._notify(f"{self.device} has too little memory even for one text: using the CPU")
            self._spare = self._on_cpu()
            return
        if self._pieces == 1:
            self._notify(f"{self.device} has too little memory for batches of the usual size: using smaller ones")
        self._pieces *= 2
