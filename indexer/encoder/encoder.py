"""The bi-encoder: texts to vectors, tokenised ahead, in batches of a token budget, on one or several devices."""

import queue
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import not_finite
from ..progress import check_wanted
from .forward import Crew, Replica, plan_batches
from .model_folder import in_one_line
from .onnx_replica import OnnxReplica
from .packed_replica import PackedReplica
from .settings import ModelSpec, cores
from .static import StaticReplica
from .token_vectors import TokenVectors
from .tokenizer import TextTokenizer, Tokens

if TYPE_CHECKING:
    from .int8 import QuantizationLoss

AnyReplica = Replica | OnnxReplica | PackedReplica | StaticReplica
OnBatch = Callable[[int], object]
TakeTokens = Callable[[np.ndarray, list[TokenVectors]], object]
"""Receives the places of a batch's texts and the vectors of their tokens, from the thread that ran the batch."""
Batches = Iterator[np.ndarray]
AHEAD_TEXTS = 4_096
"""Texts that are tokenised while a GPU encodes the same number before them."""
SMALLEST_BATCH = 256
"""Tokens below which a batch is not split further to give every worker some."""


class Encoder:
    """Turns texts into vectors. Made by `load_encoder`; several threads may use it at the same time.

    Attributes:
        spec: What identifies the model and its settings.
        tokenizer: Counts, locates and batches tokens.
        batch_tokens: The most tokens of a batch, padding included where there is any.
        loss: What int8 loses against float32; None in any other precision.
        library: Returns the model as a `SentenceTransformer`, which is loaded now where another engine computes.
        usual_prompt: The prompt of texts that are neither queries nor documents; "" for none.
    """

    def __init__(
        self,
        spec: ModelSpec,
        tokenizer: TextTokenizer,
        replicas: Sequence[AnyReplica],
        batch_tokens: int,
        *,
        library: Callable[[], Any],
        usual_prompt: str = "",
        alone: AnyReplica | None = None,
    ) -> None:
        """Take one replica per worker; workers on a CPU may share one.

        Args:
            spec: What identifies the model and its settings.
            tokenizer: Of the model.
            replicas: What runs batches side by side.
            batch_tokens: The most tokens of a batch, padding included.
            library: Returns the model as a `SentenceTransformer`.
            usual_prompt: The prompt of texts that are neither queries nor documents.
            alone: What runs a single batch, on all cores; the first replica where None.
        """
        self.spec = spec
        self.tokenizer = tokenizer
        self.replicas = replicas
        self.batch_tokens = batch_tokens
        self.loss: QuantizationLoss | None = None
        self.library = library
        self.usual_prompt = usual_prompt
        self._failed = f"cannot run the model {spec.name}"
        self._alone = alone or replicas[0]
        self._padded = not isinstance(replicas[0], PackedReplica)
        with_torch = self.engine == "torch"
        self._crew = Crew(len(replicas), max(1, cores() // len(replicas)) if with_torch else None)

    @property
    def engine(self) -> str:
        """What computes: "torch", "onnxruntime" or "numpy"."""
        if isinstance(self.replicas[0], StaticReplica):
            return "numpy"
        return "onnxruntime" if isinstance(self.replicas[0], OnnxReplica) else "torch"

    @property
    def devices(self) -> list[str]:
        """The devices that it runs on."""
        return list(dict.fromkeys(replica.device for replica in self.replicas))

    def tokenize(self, texts: Sequence[str], *, query: bool = False) -> list[Tokens]:
        """Tokenise texts with the prompt of documents, or of queries, and the model's special tokens."""
        return self.tokenizer.tokenize(list(texts), query)

    def encode(self, tokens: Sequence[Tokens], *, on_batch: OnBatch | None = None) -> np.ndarray:
        """Return float32 [n, dimension], in the order given.

        Args:
            tokens: What `tokenize` returned.
            on_batch: Called with the number of texts of each batch, from the thread that ran it.

        Raises:
            SondeError: The model gives numbers that are not finite.
        """
        return self._finite(self._encode(tokens, on_batch))

    def encode_with_tokens(self, tokens: Sequence[Tokens], take: TakeTokens) -> np.ndarray:
        """Return what `encode` does, and give the vectors of all tokens to `take`, from the same forward passes.

        Raises:
            SondeError: The model has no token embeddings, or gives numbers that are not finite.
        """
        return self._finite(self._encode(tokens, None, take))

    def encode_texts(self, texts: Sequence[str], query: bool = False) -> np.ndarray:
        """Return float32 [n, dimension]: `tokenize` and `encode` in one; for a GPU, they overlap."""
        if self._padded or len(texts) <= AHEAD_TEXTS:
            return self.encode(self.tokenize(texts, query=query))
        parts = [texts[start : start + AHEAD_TEXTS] for start in range(0, len(texts), AHEAD_TEXTS)]
        with ThreadPoolExecutor(1, "sonde-tokenizer") as ahead:
            coming = [ahead.submit(self.tokenize, part, query=query) for part in parts]
            return np.concatenate([self.encode(tokens.result()) for tokens in coming])

    def finite(self) -> bool:
        """Whether a sentence gets finite numbers, which not every model gives in half precision."""
        return bool(np.isfinite(self._encode(self.tokenize(["A short sentence, as a probe."]), None)).all())

    def token_vectors(self, tokens: Sequence[Tokens]) -> list[TokenVectors]:
        """Return the vectors of each text's tokens in their context, in the order given.

        Raises:
            SondeError: The model has no token embeddings.
        """
        found: list[TokenVectors | None] = [None] * len(tokens)

        def work(replica: AnyReplica, batches: Batches) -> None:
            for places in batches:
                with in_one_line(self._failed):
                    vectors = replica.token_vectors([tokens[place] for place in places], self.spec.name)
                for place, each in zip(places, vectors, strict=True):
                    found[place] = each

        self._in_batches(tokens, work)
        return [each for each in found if each is not None]

    def _finite(self, vectors: np.ndarray) -> np.ndarray:
        if not np.isfinite(vectors).all():
            raise not_finite(self.spec.name, self.spec.dtype)
        return vectors

    def _encode(self, tokens: Sequence[Tokens], on_batch: OnBatch | None, take: TakeTokens | None = None) -> np.ndarray:
        vectors = np.empty((len(tokens), self.spec.dimension), dtype=np.float32)

        def work(replica: AnyReplica, batches: Batches) -> None:
            results: list[Any] = []
            for places in batches:
                batch = [tokens[place] for place in places]
                if take:
                    with in_one_line(self._failed):
                        found, of_tokens = replica.run_with_tokens(batch, self.spec.name)
                    take(places, of_tokens)
                else:
                    with in_one_line(self._failed):
                        found = replica.run(batch)
                results.append((places, found))
                if len(results) > replica.ahead:
                    replica.fetch([results.pop(0)], vectors)
                if on_batch:
                    on_batch(len(places))
            with in_one_line(self._failed):
                replica.fetch(results, vectors)

        self._in_batches(tokens, work)
        return vectors

    def _in_batches(self, tokens: Sequence[Tokens], work: Callable[[AnyReplica, Batches], None]) -> None:
        """Let every replica work through batches, given by their places in `tokens`, until none is left."""
        planned = plan_batches(tokens, self._budget(tokens), self._padded)
        batches: queue.SimpleQueue[np.ndarray] = queue.SimpleQueue()
        for batch in planned:
            batches.put(batch)
        # A single batch, such as a query, stays in this thread, which may use all cores.
        if len(planned) > 1 and len(self.replicas) > 1:
            self._crew.run(lambda number: work(self.replicas[number], drained(batches)))
        else:
            work(self._alone, drained(batches))

    def _budget(self, tokens: Sequence[Tokens]) -> int:
        """Return the tokens of a batch: fewer than allowed where not every worker would get two."""
        share = sum(len(text.ids) for text in tokens) // (2 * len(self.replicas))
        if not self._padded:  # a stream has room for a power of two
            share = 1 << share.bit_length()
        return min(self.batch_tokens, max(share, SMALLEST_BATCH))


def drained(batches: "queue.SimpleQueue[np.ndarray]") -> Batches:
    """Yield what is in the queue, which several threads may empty together, as long as the result is wanted."""
    while True:
        check_wanted()
        try:
            yield batches.get_nowait()
        except queue.Empty:
            return
