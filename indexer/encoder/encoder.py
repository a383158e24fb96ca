"""The bi-encoder: texts to vectors, tokenised ahead, in batches of a token budget, on one or several devices."""

import queue
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..errors import SondeError
from .batches import plan_batches
from .replica import Replica, fetch
from .spec import ModelSpec
from .tokens import TextTokenizer, Tokens

if TYPE_CHECKING:
    from .int8 import QuantizationLoss

OnBatch = Callable[[int], object]


class Encoder:
    """Turns texts into vectors. Made by `load_encoder`; several threads may use one at a time.

    Attributes:
        spec: What identifies the model and its settings.
        tokenizer: Counts, locates and batches tokens.
        batch_tokens: The most tokens of a batch, padding included.
        loss: What int8 loses against float32; None in any other precision.
    """

    def __init__(
        self, spec: ModelSpec, tokenizer: TextTokenizer, replicas: Sequence[Replica], batch_tokens: int
    ) -> None:
        self.spec = spec
        self.tokenizer = tokenizer
        self.replicas = replicas
        self.batch_tokens = batch_tokens
        self.loss: QuantizationLoss | None = None
        self._locks = [threading.Lock() for _ in replicas]

    @property
    def devices(self) -> list[str]:
        """The devices that it runs on."""
        return [replica.device for replica in self.replicas]

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
        vectors = self._encode(tokens, on_batch)
        if not np.isfinite(vectors).all():
            raise SondeError(
                f"{self.spec.name} gives numbers that are not finite in {self.spec.dtype}: try --dtype float32"
            )
        return vectors

    def encode_texts(self, texts: Sequence[str], query: bool = False) -> np.ndarray:
        """Return float32 [n, dimension]: `tokenize` and `encode` in one."""
        return self.encode(self.tokenize(texts, query=query))

    def finite(self) -> bool:
        """Whether a sentence gets finite numbers, which not every model gives in half precision."""
        return bool(np.isfinite(self._encode(self.tokenize(["A short sentence, as a probe."]), None)).all())

    def _encode(self, tokens: Sequence[Tokens], on_batch: OnBatch | None) -> np.ndarray:
        vectors = np.empty((len(tokens), self.spec.dimension), dtype=np.float32)
        batches: queue.SimpleQueue[np.ndarray] = queue.SimpleQueue()
        for batch in plan_batches(tokens, self.batch_tokens):
            batches.put(batch)
        if len(self.replicas) == 1:
            self._work(0, batches, tokens, vectors, on_batch)
        else:
            self._spread(batches, tokens, vectors, on_batch)
        return vectors

    def _work(
        self,
        number: int,
        batches: "queue.SimpleQueue[np.ndarray]",
        tokens: Sequence[Tokens],
        vectors: np.ndarray,
        on_batch: OnBatch | None,
    ) -> None:
        """Run batches on one device until none is left; a lock per batch lets a query in between two."""
        results = []
        while not batches.empty():
            try:
                places = batches.get_nowait()
            except queue.Empty:
                break
            with self._locks[number]:
                results.append((places, self.replicas[number].run([tokens[place] for place in places])))
            if on_batch:
                on_batch(len(places))
        fetch(results, vectors)

    def _spread(
        self,
        batches: "queue.SimpleQueue[np.ndarray]",
        tokens: Sequence[Tokens],
        vectors: np.ndarray,
        on_batch: OnBatch | None,
    ) -> None:
        errors: list[BaseException] = []

        def work(number: int) -> None:
            try:
                self._work(number, batches, tokens, vectors, on_batch)
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(len(self.replicas))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]
