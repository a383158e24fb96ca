"""Forward passes in torch: batches of a token budget, worker threads, a replica on each device; too little memory."""

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar

import numpy as np

from ..errors import SondeError, arg
from ..progress import silent
from .token_vectors import TokenVectors, kept_tokens, special_ids
from .tokenizer import StaticTokenizer, TextTokenizer, Tokens

if TYPE_CHECKING:
    import torch

Notify = Callable[[str], object]
"""Receives sentences that the user should read."""


def plan_batches(tokens: Sequence[Tokens], budget: int, padded: bool = True) -> list[np.ndarray]:
    """Return the places of the texts of each batch, the longest texts first.

    A batch holds one role (queries or documents) and at most `budget` tokens, `padded` to its longest text or not. A
    text with more tokens is a batch of its own.
    """
    lengths = np.fromiter((len(text.ids) for text in tokens), dtype=np.int64, count=len(tokens))
    queries = np.fromiter((text.query for text in tokens), dtype=bool, count=len(tokens))
    roles = [np.flatnonzero(queries == role) for role in (False, True)]
    split = by_length if padded else by_sum
    return [places[batch] for places in roles for batch in split(lengths[places], budget)]


def by_sum(lengths: np.ndarray, budget: int) -> list[np.ndarray]:
    """Return the places of each batch of at most `budget` tokens, without padding, the longest first."""
    order = np.argsort(-lengths, kind="stable")
    ends = np.cumsum(lengths[order])
    batches, start, before = [], 0, 0
    while start < len(order):
        end = max(start + 1, int(np.searchsorted(ends, before + budget, side="right")))
        batches.append(order[start:end])
        start, before = end, int(ends[end - 1])
    return batches


def by_length(lengths: np.ndarray, budget: int) -> list[np.ndarray]:
    """Return the places of each batch of at most `budget` tokens, padded to its longest text, the longest first."""
    order = np.argsort(-lengths, kind="stable")
    batches = []
    start = 0
    while start < len(order):
        size = max(1, budget // max(1, int(lengths[order[start]])))
        batches.append(order[start : start + size])
        start += size
    return batches


_SETTLING = threading.Lock()
"""Held while a crew sets what all threads of the process start with: of two at once, one would restore the other's."""


class Crew:
    """Threads that run one task side by side; made at the first task, kept until the process ends.

    On a CPU, a batch per core is faster than all cores on one batch: no thread waits for the others after each
    operation, which costs most where other programs use the cores too.
    """

    def __init__(self, size: int, threads: int | None) -> None:
        """Take the number of workers, and how many threads torch may use in each of them; None where it is not used."""
        self.size = size
        self.threads = threads
        self._pool: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()

    def run(self, task: Callable[[int], None]) -> None:
        """Run `task(0)` to `task(size - 1)` at the same time, wait, and raise the first error."""
        with self._lock:
            self._pool = self._pool or self._gather()
        # A copy of the context for each, in which `check_wanted` knows who waits.
        running = [self._pool.submit(copy_context().run, task, number) for number in range(self.size)]
        errors = [error for each in running if (error := each.exception())]
        if errors:
            raise errors[0]

    def _gather(self) -> ThreadPoolExecutor:
        pool, everyone = ThreadPoolExecutor(self.size, "sonde-encoder"), threading.Barrier(self.size)
        if self.threads is None:
            return pool
        import torch

        threads = self.threads

        def settle(_: int) -> None:
            torch.get_num_threads()  # this makes torch initialise the thread, which would undo the next line later
            torch.set_num_threads(threads)
            everyone.wait()

        with _SETTLING:
            before = torch.get_num_threads()
            list(pool.map(settle, range(self.size)))
            # The number is each thread's own, but also what threads to come start with: that stays as it was.
            torch.set_num_threads(before)
        return pool


class Replica:
    """Runs batches on its device; vectors stay there until they are fetched, so that a GPU never waits."""

    ahead = sys.maxsize
    """How many batches may wait to be fetched."""

    def __init__(
        self,
        model: Any,
        tokenizer: TextTokenizer,
        device: str,
        truncate: int | None,
        normalize: bool,
        notify: Notify = silent,
    ) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.device = device
        self.truncate = truncate
        self.normalize = normalize
        self.name = ""
        self._sparing: Sparing[list[Tokens], torch.Tensor] = Sparing(device, self._run, self._on_cpu, notify)
        self._sparing_both: Sparing[list[Tokens], tuple[torch.Tensor, list[TokenVectors]]] = Sparing(
            device, self._run_both, self._both_on_cpu, notify
        )

    def run(self, batch: list[Tokens]) -> "torch.Tensor":
        """Return float32 [texts, dimension] on the device, without waiting for it."""
        return joined(self._sparing.run(batch))

    def _run(self, batch: list[Tokens]) -> "torch.Tensor":
        import torch

        with torch.inference_mode():
            return self._forward(self.features(batch))

    def _on_cpu(self) -> "Callable[[list[Tokens]], torch.Tensor]":
        import torch

        self.model, self.device = self.model.to("cpu", torch.float32), "cpu"
        return self._run

    def features(self, batch: list[Tokens]) -> dict[str, Any]:
        """Return what the library's model takes, on its device."""
        return {name: self.moved(value) for name, value in self.tokenizer.collate(batch).items()}

    def fetch(self, results: "list[tuple[np.ndarray, torch.Tensor]]", into: np.ndarray) -> None:
        """Copy the vectors of batches, with the places of their texts, to these places."""
        fetch_vectors(results, into)

    def token_vectors(self, batch: list[Tokens], name: str) -> list[TokenVectors]:
        """Return the vectors of each text's tokens, from one forward pass.

        Raises:
            SondeError: The model, of this name, has no token embeddings.
        """
        import torch

        with torch.inference_mode():
            special = special_ids(self.tokenizer)
            if isinstance(self.tokenizer, StaticTokenizer):
                return [_static(self.model, text, special) for text in batch]
            features = self.features(batch)
            return self._kept(features, self.model(features), special, name)

    def run_with_tokens(self, batch: list[Tokens], name: str) -> "tuple[torch.Tensor, list[TokenVectors]]":
        """Return what `run` and `token_vectors` do, from one forward pass.

        Raises:
            SondeError: The model, of this name, has no token embeddings.
        """
        self.name = name
        pieces = self._sparing_both.run(batch)
        return joined([vectors for vectors, _ in pieces]), [each for _, tokens in pieces for each in tokens]

    def _run_both(self, batch: list[Tokens]) -> "tuple[torch.Tensor, list[TokenVectors]]":
        import torch

        with torch.inference_mode():
            features = self.features(batch)
            found, special = self.model(features), special_ids(self.tokenizer)
            if isinstance(self.tokenizer, StaticTokenizer):
                return self._finished(found), [_static(self.model, text, special) for text in batch]
            return self._finished(found), self._kept(features, found, special, self.name)

    def _both_on_cpu(self) -> "Callable[[list[Tokens]], tuple[torch.Tensor, list[TokenVectors]]]":
        self._on_cpu()
        return self._run_both

    def _kept(
        self, features: dict[str, Any], found: dict[str, Any], special: np.ndarray, name: str
    ) -> list[TokenVectors]:
        import torch

        vectors, ids = found.get("token_embeddings"), features.get("input_ids")
        if vectors is None or ids is None or vectors.shape[:2] != ids.shape:
            raise SondeError(f"{name} has no token embeddings: choose another {arg('rerank_model')}")
        vectors = torch.nn.functional.normalize(vectors.float(), dim=2).cpu().numpy()
        mask = features["attention_mask"].cpu().numpy().astype(bool)
        rows = zip(ids.cpu().numpy(), vectors, mask, strict=True)
        return [kept_tokens(row_ids[used], row[used], special) for row_ids, row, used in rows]

    def _forward(self, features: dict[str, Any]) -> "torch.Tensor":
        return self._finished(self.model(features))

    def _finished(self, found: dict[str, Any]) -> "torch.Tensor":
        import torch

        vectors = found["sentence_embedding"][:, : self.truncate].float()
        return torch.nn.functional.normalize(vectors, dim=1) if self.normalize else vectors

    def moved(self, value: Any) -> Any:
        """Return a tensor on the device, without waiting for it; anything else as it is."""
        import torch

        if self.device == "cpu" or not isinstance(value, torch.Tensor):
            return value
        source = value.pin_memory() if self.device.startswith("cuda") else value
        return source.to(self.device, non_blocking=True)


def fetch_vectors(results: "list[tuple[np.ndarray, torch.Tensor]]", into: np.ndarray) -> None:
    """Copy the vectors of all batches to their places, in one transfer from each device."""
    import torch

    for device in {vectors.device for _, vectors in results}:
        there = [(places, vectors) for places, vectors in results if vectors.device == device]
        places = np.concatenate([places for places, _ in there])
        into[places] = torch.cat([vectors for _, vectors in there]).cpu().numpy()


def joined(pieces: "list[torch.Tensor]") -> "torch.Tensor":
    """Return the results of a batch's pieces as one."""
    import torch

    return pieces[0] if len(pieces) == 1 else torch.cat(pieces)


def _static(model: Any, text: Tokens, special: np.ndarray) -> TokenVectors:
    """A static model's vectors know no context; an empty text gets one vector of zeros."""
    import torch

    table = model[0].embedding.weight
    if not len(text.ids):
        return TokenVectors(np.zeros(1, np.int64), np.zeros((1, table.shape[1]), np.float32), np.zeros(1, np.int64))
    found = table[torch.from_numpy(text.ids.astype(np.int64)).to(table.device)].float()
    return kept_tokens(text.ids.astype(np.int64), torch.nn.functional.normalize(found, dim=1).cpu().numpy(), special)


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


class _Sliceable(Protocol):
    """A batch: it has a length, and parts that are batches too."""

    def __len__(self) -> int: ...

    def __getitem__(self, part: slice, /) -> Self: ...


Batch = TypeVar("Batch", bound=_Sliceable)
Result = TypeVar("Result")


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
