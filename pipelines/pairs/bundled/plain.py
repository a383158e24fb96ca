"""Bundled models without torch: the encoder in ONNX Runtime, the head in NumPy."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from ....indexer.encoder.assembly import MOST_WORKERS, ONNX_BATCH_TOKENS
from ....indexer.encoder.onnx_replica import BertSession
from ....indexer.encoder.plain import BertShape, BertWeights, OnCpu
from ....indexer.encoder.settings import cores
from ....indexer.small_files import read_json
from ..model import PairScorer
from ..onnx_body import Arrays
from ..tokens import PairTokenizer, TokenizerFile, TokenPairs
from .bundles import WINDOW, Packed, open_bundle, unpack

POOLED = "PooledPairClassifier"
"""The class of bundled models whose head this module does not compute."""


class PlainPairReplica(OnCpu):
    """Runs batches of pairs: the first token of each pair, a layer with tanh, and the classes (Devlin et al., 2019)."""

    def __init__(self, session: BertSession, head: Mapping[str, np.ndarray], tokenizer: PairTokenizer) -> None:
        """Take the encoder, the arrays of the head by the names of transformers, and the tokenizer."""
        self._session = session
        self._head = head
        self._tokenizer = tokenizer

    def run(self, pairs: TokenPairs, batch: np.ndarray) -> np.ndarray:
        """Return float32 [pairs, labels]."""
        found = self._tokenizer.arrays(pairs, batch)
        features = {
            "ids": found["input_ids"].astype(np.int32),
            "lengths": found["attention_mask"].sum(axis=1).astype(np.int32),
        }
        if "token_type_ids" in found:
            features["types"] = found["token_type_ids"].astype(np.int32)
        first = self._session.run(features)[:, 0]
        pooled = np.tanh(self._layer(first, "bert.pooler.dense"))
        return self._layer(pooled, "classifier")

    def _layer(self, vectors: np.ndarray, name: str) -> np.ndarray:
        return vectors @ self._head[f"{name}.weight"].T + self._head[f"{name}.bias"]


def load_plain_bundled(name: str, label: str, notify: Callable[[str], object] = lambda _: None) -> PairScorer | None:
    """Load a bundled model on the CPU in float32; None where its head is not one that this module computes.

    Args:
        name: Of the bundled model: "nli".
        label: What to call it.
        notify: Receives sentences that the user should read.

    Raises:
        UsageError: There is no such bundled model.
        SondeError: The default model that it builds on is not available, or a file is not the one it should be.
    """
    packed = open_bundle(name, notify)
    shape = BertShape.of(packed.config)
    if shape is None or shape.kind != "bert" or POOLED in (packed.config.get("architectures") or ()):
        return None
    weights = unpack(packed.arrays, _base_arrays(packed))
    session = BertSession(shape, lambda: _opened(weights, shape), 1, first_only=True)
    config = packed.base / "tokenizer_config.json"
    settings = read_json(config) if config.is_file() else {}
    file = TokenizerFile(packed.base / "tokenizer.json", int(packed.config["pad_token_id"]), _inputs(settings))
    limits = (WINDOW, packed.config["max_position_embeddings"], settings.get("model_max_length") or WINDOW)
    tokenizer = PairTokenizer(file, int(min(limits)))
    head = {key: value for key, value in weights.items() if key.startswith(("bert.pooler.", "classifier."))}
    labels = {int(number): str(text) for number, text in packed.config["id2label"].items()}
    replicas = [PlainPairReplica(session, head, tokenizer)] * min(cores(), MOST_WORKERS)
    return PairScorer(label, labels, tokenizer, replicas, batch_tokens=ONNX_BATCH_TOKENS)


def _base_arrays(packed: Packed) -> dict[str, np.ndarray]:
    from safetensors.numpy import load_file

    return {f"bert.{name}": array for name, array in load_file(packed.base / "model.safetensors").items()}


def _inputs(settings: Mapping[str, Any]) -> list[str]:
    """Return what a tokenizer gives a model: what its settings name, else what transformers knows of its class."""
    if stated := settings.get("model_input_names"):
        return list(stated)
    typed = str(settings.get("tokenizer_class")).startswith("BertTokenizer")
    return ["input_ids", *(["token_type_ids"] if typed else []), "attention_mask"]


@contextmanager
def _opened(weights: Mapping[str, np.ndarray], shape: BertShape) -> Iterator[BertWeights]:
    yield BertWeights(Arrays(weights), shape)
