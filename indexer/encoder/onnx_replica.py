"""Runs plain models in ONNX Runtime on the CPU, without torch."""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from ..errors import SondeError
from .bert import BertShape, BertWeights
from .bert_graph import bert_graph
from .plain import OnCpu, PlainModel, of_length_one
from .token_vectors import TokenVectors, kept_tokens, special_ids
from .tokenizer import PlainTokenizer, Tokens

Weights = Callable[[], AbstractContextManager[BertWeights]]


class BertSession:
    """The forward pass of a model; several threads may run it at the same time."""

    def __init__(self, shape: BertShape, weights: Weights, threads: int, *, first_only: bool = False) -> None:
        """Take what opens the weights, which are read at the first batch.

        Args:
            shape: The layers.
            weights: Opens the weights.
            threads: How many work on one batch.
            first_only: Return the first token of each text, for less work.
        """
        self._shape = shape
        self._weights = weights
        self._threads = threads
        self._first_only = first_only
        self._session: Any = None
        self._typed = False
        self._lock = threading.Lock()

    def run(self, features: dict[str, np.ndarray]) -> np.ndarray:
        """Return float32 [texts, tokens, hidden] for int32 ids [texts, tokens] and lengths [texts]."""
        with self._lock:
            self._session = self._session or self._opened()
        if self._typed and "types" not in features:
            features = features | {"types": np.zeros_like(features["ids"])}
        return self._session.run(["tokens"], features)[0]

    def _opened(self) -> Any:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self._threads
        options.log_severity_level = 4  # an error is raised, and not printed as well
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # other programs want the cores too
        try:
            with self._weights() as weights:
                arrays = dict(weights.arrays())
            self._typed = "types.rows" in arrays
            given = [onnxruntime.OrtValue.ortvalue_from_numpy(array) for array in arrays.values()]
            options.add_external_initializers(list(arrays), given)
            sides = {name: array.shape for name, array in arrays.items()}
            graph = bert_graph(self._shape, sides, first_only=self._first_only)
            return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
        except (OSError, ImportError, MemoryError):
            raise
        except Exception as error:  # weights that do not fit the configuration fail in as many ways as there are
            raise SondeError("the model cannot be loaded: its weights do not fit its config.json") from error


class OnnxReplica(OnCpu):
    """Runs batches of a plain model, as `Replica` does with torch."""

    def __init__(
        self, model: PlainModel, session: BertSession, tokenizer: PlainTokenizer, truncate: int | None, normalize: bool
    ) -> None:
        self.model = model
        self.session = session
        self.tokenizer = tokenizer
        self.truncate = truncate
        self.normalize = normalize

    def run(self, batch: list[Tokens]) -> np.ndarray:
        """Return float32 [texts, dimension]."""
        return self._vectors(features := self.tokenizer.collate(batch), self.session.run(features))

    def run_with_tokens(self, batch: list[Tokens], name: str) -> tuple[np.ndarray, list[TokenVectors]]:
        """Return what `run` and `token_vectors` do, from one forward pass."""
        found = self.session.run(features := self.tokenizer.collate(batch))
        return self._vectors(features, found), self._kept(batch, found)

    def _vectors(self, features: dict[str, np.ndarray], found: np.ndarray) -> np.ndarray:
        vectors = found[:, 0] if self.model.pooling == "cls" else _mean(found, features["lengths"])
        vectors = (of_length_one(vectors) if self.model.normalized else vectors)[:, : self.truncate]
        return of_length_one(vectors) if self.normalize else vectors

    def features(self, batch: list[Tokens]) -> dict[str, Any]:
        """Return what the library's model takes."""
        return self.tokenizer.features(batch)

    def token_vectors(self, batch: list[Tokens], name: str) -> list[TokenVectors]:
        """Return the vectors of each text's tokens; a plain model, of whatever name, has them."""
        return self._kept(batch, self.session.run(self.tokenizer.collate(batch)))

    def _kept(self, batch: list[Tokens], found: np.ndarray) -> list[TokenVectors]:
        special = special_ids(self.tokenizer)
        return [
            kept_tokens(text.ids.astype(np.int64), of_length_one(row[: len(text.ids)]), special)
            for text, row in zip(batch, found, strict=True)
        ]


def _mean(tokens: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    mask = np.arange(tokens.shape[1]) < lengths[:, None]
    return np.einsum("btd,bt->bd", tokens, mask.astype(np.float32)) / lengths[:, None].astype(np.float32)
