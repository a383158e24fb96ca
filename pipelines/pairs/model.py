"""A model that reads two texts at once: pairs in, logits out, in length-sorted batches of a token budget."""

import copy
import inspect
import queue
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ...indexer.encoder.assembly import BATCH_TOKENS, MOST_WORKERS, ONNX_BATCH_TOKENS
from ...indexer.encoder.encoder import SMALLEST_BATCH, drained
from ...indexer.encoder.forward import Crew, Notify, Sparing, by_length, fetch_vectors, joined
from ...indexer.encoder.model_folder import in_one_line
from ...indexer.encoder.settings import cores
from ...indexer.errors import UsageError, not_finite
from ...indexer.progress import silent
from ...indexer.small_files import read_json
from .onnx_body import first_token_only, with_onnx_body
from .tokens import CUTS, Cut, Pair, PairTokenizer, TokenPairs

if TYPE_CHECKING:
    import torch

UNSTATED = 512
"""For models whose tokenizer and configuration set no limit."""
SANE = 1_000_000
"""Tokenizers without a limit state 10^30."""


def window_of(model: Any, tokenizer: Any) -> int:
    """Return the most tokens of a pair: the tokenizer's limit, never more than the model has positions."""
    limits = [limit for limit in (_stated(tokenizer), _positions(model)) if limit]
    return min(limits) if limits else UNSTATED


def _stated(tokenizer: Any) -> int | None:
    limit = getattr(tokenizer, "model_max_length", None)
    return int(limit) if limit and limit < SANE else None


def _positions(model: Any) -> int | None:
    """Return the length of the position embeddings; RoBERTa and its kin count from after the padding index."""
    stated = getattr(model.config, "max_position_embeddings", None)
    for name, module in model.named_modules():
        if name.endswith("position_embeddings") and getattr(module, "padding_idx", None) is not None:
            return int(module.num_embeddings) - int(module.padding_idx) - 1
    return int(stated) if isinstance(stated, int) and stated > 0 else None


STORED = "config_sentence_transformers.json"


def stored_activation(folder: Path) -> str | None:
    """Return the class in torch.nn that Sentence-Transformers 5 or newer wrote beside the weights, None without one."""
    try:
        stored = read_json(folder / STORED)
    except (OSError, ValueError):
        return None
    return _class(stored.get("activation_fn")) if isinstance(stored, dict) else None


def activation_of(config: Any, labels: int) -> str:
    """Return the class that a model's own configuration names, as older versions wrote it, else what is usual."""
    stored = getattr(config, "sentence_transformers", None) or {}
    path = stored.get("activation_fn") or getattr(config, "sbert_ce_default_activation_function", None)
    return _class(path) or ("Sigmoid" if labels == 1 else "Identity")


def _class(path: object) -> str | None:
    """Return the last part of a path inside torch; code from elsewhere is never run."""
    return path.rpartition(".")[2] if isinstance(path, str) and path.startswith("torch.") else None


@dataclass(frozen=True, slots=True)
class PairBatch:
    """Some of the tokenised pairs, by their places."""

    pairs: TokenPairs
    places: np.ndarray

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, part: slice) -> "PairBatch":
        return PairBatch(self.pairs, self.places[part])


class PairReplica:
    """Runs batches on its device; logits stay there until they are fetched, so that a GPU never waits."""

    def __init__(self, model: Any, tokenizer: PairTokenizer, device: str, notify: Notify = silent) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.device = device
        # Decoders would build a cache that nothing reads.
        cached = "use_cache" in inspect.signature(model.forward).parameters
        self._options = {"use_cache": False} if cached else {}
        self._sparing: Sparing[PairBatch, torch.Tensor] = Sparing(device, self._run, self._on_cpu, notify)

    def run(self, pairs: TokenPairs, batch: np.ndarray) -> "torch.Tensor":
        """Return float32 [pairs, labels] on the device, without waiting for it."""
        return joined(self._sparing.run(PairBatch(pairs, batch)))

    def _run(self, batch: "PairBatch") -> "torch.Tensor":
        import torch

        with torch.inference_mode():
            features = self.tokenizer.collate(batch.pairs, batch.places)
            moved = {name: self._moved(value) for name, value in features.items()}
            return self.model(**moved, **self._options).logits.float()

    def fetch(self, results: "list[tuple[np.ndarray, torch.Tensor]]", into: np.ndarray) -> None:
        """Copy the logits of batches, with the places of their pairs, to these places."""
        fetch_vectors(results, into)

    def _on_cpu(self) -> "Callable[[PairBatch], torch.Tensor]":
        import torch

        self.model, self.device = self.model.to("cpu", torch.float32), "cpu"
        return self._run

    def _moved(self, value: "torch.Tensor") -> "torch.Tensor":
        if self.device == "cpu":
            return value
        source = value.pin_memory() if self.device.startswith("cuda") else value
        return source.to(self.device, non_blocking=True)


class AnyPairReplica(Protocol):
    """What runs batches of tokenised pairs on one worker."""

    def run(self, pairs: TokenPairs, batch: np.ndarray) -> Any:
        """Start a batch, given by the places of its pairs, and return what `fetch` takes."""
        ...

    def fetch(self, results: "list[tuple[np.ndarray, Any]]", into: np.ndarray) -> None:
        """Copy the logits of batches, with the places of their pairs, to these places."""
        ...


class PairScorer:
    """Scores pairs of texts, with torch or without. Several threads may use it at the same time.

    Attributes:
        name: What to call it: a hub's "org/name", a folder, "bundled".
        id2label: The name of each logit.
        devices: The devices that it runs on.
        dtype: The precision of the forward pass.
        tokenizer: Turns pairs into tokens.
        activation: The class in torch.nn that makes a score of a logit, as a `CrossEncoder` would.
        batch_tokens: The most tokens of a batch, padding included.
    """

    def __init__(
        self, name: str, id2label: Mapping[int, str], tokenizer: PairTokenizer, replicas: Sequence[AnyPairReplica], *,
        batch_tokens: int, threads: int | None = None, devices: Sequence[str] = ("cpu",), dtype: str = "float32",
        activation: str = "Identity",
    ) -> None:  # fmt: skip
        """Take finished parts: a replica for each worker, and how many threads torch may use in each."""
        self.name = name
        self.id2label = dict(id2label)
        self.devices = list(dict.fromkeys(devices))
        self.dtype = dtype
        self.tokenizer = tokenizer
        self.activation = activation
        self.batch_tokens = batch_tokens
        self._replicas = replicas
        self._crew = Crew(len(replicas), threads)

    @property
    def num_labels(self) -> int:
        """How many logits a pair gets."""
        return len(self.id2label)

    @property
    def window(self) -> int:
        """The most tokens of a pair, special ones included."""
        return self.tokenizer.window

    def logits(
        self, pairs: Sequence[Pair], *, cut: Cut = "first", on_batch: Callable[[int], object] | None = None
    ) -> np.ndarray:
        """Return float32 [n, labels], the raw logits in the order given.

        A pair longer than the window is cut, never refused: `cut` "first" cuts the first text (and the second one to
        half the window where it alone would fill it), "longest" cuts the longer one.

        Args:
            pairs: The texts; each distinct one is tokenised once.
            cut: Which text is cut.
            on_batch: Called with the number of pairs of each batch, from the thread that ran it.

        Raises:
            UsageError: There is no such `cut`.
            SondeError: The model gives numbers that are not finite.
        """
        if cut not in CUTS:
            raise UsageError(f"there is no cut {cut!r}: use {' or '.join(CUTS)}")
        found = np.zeros((len(pairs), self.num_labels), np.float32)
        tokens = self.tokenizer.tokenize(pairs, cut)
        planned = by_length(tokens.lengths, self._budget(int(tokens.lengths.sum())))
        failed = f"cannot run the model {self.name}"
        batches: queue.SimpleQueue[np.ndarray] = queue.SimpleQueue()
        for batch in planned:
            batches.put(batch)

        def work(number: int) -> None:
            results: list[tuple[np.ndarray, Any]] = []
            for batch in drained(batches):
                with in_one_line(failed):
                    results.append((batch, self._replicas[number].run(tokens, batch)))
                if on_batch:
                    on_batch(len(batch))
            with in_one_line(failed):
                self._replicas[number].fetch(results, found)

        if len(planned) > 1 and len(self._replicas) > 1:
            self._crew.run(work)
        else:  # a single batch may use all cores
            work(0)
        if not np.isfinite(found).all():
            raise not_finite(self.name, self.dtype)
        return found

    def _budget(self, tokens: int) -> int:
        """Return the tokens of a batch: fewer than allowed where not every worker would get two."""
        return min(self.batch_tokens, max(tokens // (2 * len(self._replicas)), SMALLEST_BATCH))


class PairModel(PairScorer):
    """A sequence-classification model of transformers.

    `load_pair_model` makes one from a name; a model that is already in
    memory is taken as it is.

    Attributes:
        config: The model's configuration.
    """

    def __init__(
        self, model: Any, tokenizer: Any, *, name: str = "model", devices: Sequence[str] = ("cpu",),
        window: int | None = None, batch_tokens: int | None = None, activation: str | None = None,
        notify: Notify = silent,
    ) -> None:  # fmt: skip
        """Take a finished model and its tokenizer.

        Args:
            model: A `…ForSequenceClassification`, in the precision that it is to run in.
            tokenizer: A transformers tokenizer.
            name: What to call it.
            devices: Where to run it, as `resolve_devices` names them.
            window: The most tokens of a pair; the model's own where None.
            batch_tokens: The most tokens of a batch, padding included; by device where None.
            activation: The class in torch.nn that makes a score of a logit; what the configuration says where None.
            notify: Receives a sentence where a device's memory is too small.
        """
        self.config = model.config
        labels = {number: str(model.config.id2label.get(number)) for number in range(int(model.config.num_labels))}
        most = window_of(model, tokenizer)
        pairs = PairTokenizer(tokenizer, min(window or most, most))
        fast = with_onnx_body(model.eval()) if list(devices) == ["cpu"] and tokenizer.padding_side == "right" else None
        copies = _copies(fast or first_token_only(model.eval()), list(devices))
        super().__init__(
            name,
            labels,
            pairs,
            [PairReplica(each, pairs, device, notify) for each, device in copies],
            batch_tokens=batch_tokens or (ONNX_BATCH_TOKENS if fast else BATCH_TOKENS[devices[0].partition(":")[0]]),
            threads=max(1, cores() // len(copies)),
            devices=devices,
            dtype=str(model.dtype).removeprefix("torch."),
            activation=activation or activation_of(model.config, len(labels)),
        )


def _copies(model: Any, devices: list[str]) -> list[tuple[Any, str]]:
    """Return a model for each worker: one per device, or as many as there are cores sharing one model."""
    if devices == ["cpu"]:
        return [(model, "cpu")] * min(cores(), MOST_WORKERS)
    return [(model.to(devices[0]), devices[0]), *((copy.deepcopy(model).to(each), each) for each in devices[1:])]
