"""Runs plain models on a GPU: unpadded batches of few sizes, replayed as CUDA graphs; docs/decisions/0034.

A CUDA graph is the launches of a forward pass, recorded once and started with one call. Each operation of torch
releases Python's lock and waits to get it back. If other threads run Python, as in an index run, it waits up to five
milliseconds. A forward pass has about seventy operations; a replay is one.
"""

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from ..progress import silent
from .forward import Notify, Sparing
from .packed_bert import PackedBert, Room
from .plain import PlainModel
from .token_vectors import TokenVectors, kept_tokens, special_ids
from .tokenizer import PlainTokenizer, Tokens

if TYPE_CHECKING:
    import torch

MOST_GRAPHS = 32
"""Sizes that are captured; others, which are rare, run operation by operation."""

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


class Coming(NamedTuple):
    """Vectors that a device is copying to this memory; `done` is the event at the end, None if they have arrived."""

    vectors: "torch.Tensor"
    done: Any


class PackedReplica:
    """Runs batches on its device without waiting for them; their vectors are fetched a few batches later."""

    ahead = 8
    """Batches that the device gets before the vectors of the first one are fetched."""

    def __init__(
        self,
        model: PlainModel,
        tokenizer: PlainTokenizer,
        device: str,
        precision: str,
        truncate: int | None,
        normalize: bool,
        graphs: Graphs | None = None,
        notify: Notify = silent,
    ) -> None:
        """Take a model, whose weights are loaded now, and what captures graphs on this device; None for no graphs."""
        self.device = device
        self.tokenizer = tokenizer
        self._notify = notify
        self._options = (truncate, normalize)
        self._model = model
        self._bert = PackedBert(model, device, precision, truncate, normalize)
        self._graphs = graphs
        self._captured: dict[Room, tuple[torch.Tensor, Work]] = {}
        self._met: set[Room] = set()
        self._lock = threading.Lock()
        self._sparing: Sparing[list[Tokens], Coming] = Sparing(device, self._run, self._on_cpu, notify)
        self._sparing_both: Sparing[list[Tokens], tuple[Coming, list[TokenVectors]]] = Sparing(
            device, self._run_both, self._both_on_cpu, notify
        )

    def run(self, batch: list[Tokens]) -> list[Coming]:
        """Return the vectors of the batch, in pieces, without waiting for them."""
        return self._sparing.run(batch)

    def fetch(self, results: Sequence[tuple[np.ndarray, list[Coming]]], into: np.ndarray) -> None:
        """Wait for the vectors of batches, and copy them to the places of their texts."""
        for places, pieces in results:
            for piece in pieces:
                if piece.done is not None:
                    piece.done.synchronize()
            into[places] = np.concatenate([piece.vectors.numpy() for piece in pieces])

    def features(self, batch: list[Tokens]) -> dict[str, Any]:
        """Return the input of the library's model, on its device."""
        return {name: value.to(self.device) for name, value in self.tokenizer.features(batch).items()}

    def run_with_tokens(self, batch: list[Tokens], name: str) -> tuple[list[Coming], list[TokenVectors]]:
        """Return what `run` and `token_vectors` do, from one forward pass, without a graph."""
        pieces = self._sparing_both.run(batch)
        return [coming for coming, _ in pieces], [each for _, tokens in pieces for each in tokens]

    def _run_both(self, batch: list[Tokens]) -> tuple[Coming, list[TokenVectors]]:
        import torch

        room = Room.of(batch)
        with torch.inference_mode(), self._current():
            stream = torch.from_numpy(room.pack(batch)).to(self.device)
            hidden = self._bert.tokens(stream, room)
            coming = self._copied(self._bert.pooled(hidden, stream, room)[: len(batch)])
            return coming, self._kept(batch, hidden)

    def token_vectors(self, batch: list[Tokens], name: str) -> list[TokenVectors]:
        """Return the vectors of each text's tokens; a plain model, of whatever name, has them."""
        import torch

        room = Room.of(batch)
        with torch.inference_mode(), self._current():
            return self._kept(batch, self._bert.tokens(torch.from_numpy(room.pack(batch)).to(self.device), room))

    def _kept(self, batch: list[Tokens], hidden: "torch.Tensor") -> list[TokenVectors]:
        import torch

        vectors = torch.nn.functional.normalize(hidden.float(), dim=1).cpu().numpy()
        special, ends = special_ids(self.tokenizer), np.cumsum([len(text.ids) for text in batch])
        return [
            kept_tokens(text.ids.astype(np.int64), vectors[end - len(text.ids) : end], special)
            for text, end in zip(batch, ends.tolist(), strict=True)
        ]

    def _run(self, batch: list[Tokens]) -> Coming:
        import torch

        room = Room.of(batch)
        stream = torch.from_numpy(room.pack(batch))
        with torch.inference_mode(), self._current(), self._lock:
            try:
                return self._copied(self._vectors(stream, room)[: len(batch)])
            except torch.OutOfMemoryError:
                self._captured.clear()  # their memory may be what a smaller batch needs
                raise

    def _vectors(self, stream: "torch.Tensor", room: Room) -> "torch.Tensor":
        """Run a size as it is when it first occurs, which also warms it up, and as a graph from the second time on."""
        if room in self._captured:
            given, replay = self._captured[room]
            given.copy_(self._pinned(stream), non_blocking=True)
            return replay()
        given = self._pinned(stream).to(self.device, non_blocking=True)
        if room in self._met and self._capture(given, room):
            return self._captured[room][1]()
        self._met.add(room)
        return self._bert.vectors(given, room)

    def _capture(self, given: "torch.Tensor", room: Room) -> bool:
        import torch

        if self._graphs is None or len(self._captured) >= MOST_GRAPHS:
            return False
        try:
            self._captured[room] = given, self._graphs.capture(lambda: self._bert.vectors(given, room))
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            self._graphs, reason = None, str(error).strip().partition("\n")[0]
            self._notify(f"{self.device} cannot capture CUDA graphs ({reason}): running without them, which is slower")
        return room in self._captured

    def _copied(self, vectors: "torch.Tensor") -> Coming:
        """Start the copy to memory that the device can write to by itself."""
        import torch

        if vectors.device.type == "cpu":
            return Coming(vectors.clone(), None)
        found = torch.empty(vectors.shape, dtype=vectors.dtype, pin_memory=True)
        found.copy_(vectors, non_blocking=True)
        done = torch.cuda.Event()
        done.record()
        return Coming(found, done)

    def _pinned(self, tensor: "torch.Tensor") -> "torch.Tensor":
        return tensor if self.device == "cpu" else tensor.pin_memory()

    def _current(self) -> AbstractContextManager[Any]:
        """Make the device the one that streams, events and graphs belong to."""
        import torch

        return nullcontext() if self.device == "cpu" else torch.cuda.device(self.device)

    def _on_cpu(self) -> Callable[[list[Tokens]], Coming]:
        return PackedReplica(self._model, self.tokenizer, "cpu", "float32", *self._options)._run

    def _both_on_cpu(self) -> Callable[[list[Tokens]], tuple[Coming, list[TokenVectors]]]:
        return PackedReplica(self._model, self.tokenizer, "cpu", "float32", *self._options)._run_both
