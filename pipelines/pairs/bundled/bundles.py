"""The models that ship with Sonde: their files, checked and unpacked, and running them without torch."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ....indexer.encoder.assembly import MOST_WORKERS, ONNX_BATCH_TOKENS
from ....indexer.encoder.model_folder import weights_digest
from ....indexer.encoder.models import DEFAULT_MODEL, locate
from ....indexer.encoder.onnx_replica import BertSession
from ....indexer.encoder.plain import BertShape, BertWeights, OnCpu
from ....indexer.encoder.settings import cores
from ....indexer.errors import SondeError, UsageError, arg
from ....indexer.files import sha256
from ....indexer.small_files import read_json
from ..model import PairScorer
from ..onnx_body import Arrays
from ..tokens import PairTokenizer, TokenizerFile, TokenPairs

CODE, SCALE, CHANGE = ".code", ".scale", ".change"
FOLDER = Path(__file__).parent
WEIGHTS = "weights.safetensors"
WINDOW = 256
"""Tokens of a pair: the default bi-encoder's own window."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """A model that is shipped.

    Attributes:
        name: Its folder beside this file, with the weights and a README.md about them.
        digest: SHA-256 of its weights' file.
        purpose: What it does, for messages.
    """

    name: str
    digest: str
    purpose: str


BUNDLED = {
    "nli": Bundle(
        "nli", "e9ab249f16d89d1034f495d3a4bd0b56775f0af1716ae784ef432c4d18b1e8ce", "inference between two texts"
    ),
}


@dataclass(frozen=True, slots=True, eq=False)
class Packed:
    """The content of a bundle's file.

    Attributes:
        config: The configuration, as transformers writes it.
        arrays: What `unpack` takes.
        base: The folder of the model that it differs from.
    """

    config: dict[str, Any]
    arrays: dict[str, np.ndarray]
    base: Path


def open_bundle(name: str, notify: Callable[[str], object]) -> Packed:
    """Check the file of a bundled model and read it.

    Raises:
        UsageError: There is no such bundled model.
        SondeError: The default model that it builds on is not available, or a file is not the one it should be.
    """
    if (bundle := BUNDLED.get(name)) is None:
        raise UsageError(f"there is no bundled model {name!r}; available: {', '.join(BUNDLED) or 'none'}")
    path = FOLDER / bundle.name / WEIGHTS
    if not path.is_file():
        raise SondeError(f"{path} is missing: install sonde again")
    if (digest := sha256(path)) != bundle.digest:
        raise SondeError(
            f"{path} is not the file that came with sonde (its SHA-256 is {digest[:12]}…, not {bundle.digest[:12]}…): "
            "install sonde again"
        )
    return read_bundle(path, bundle, _base(bundle, notify))


def _base(bundle: Bundle, notify: Callable[[str], object]) -> Path:
    try:
        return locate(DEFAULT_MODEL, notify).folder
    except SondeError as error:
        raise SondeError(
            f"the bundled model for {bundle.purpose} builds on {DEFAULT_MODEL}, which is not available: "
            f"install sonde again, or give a model's folder with {arg('model')}"
        ) from error


def read_bundle(path: Path, bundle: Bundle, base: Path) -> Packed:
    """Read a bundle's file.

    Raises:
        SondeError: The base is not the one that the bundle was made from.
    """
    from safetensors import safe_open

    with safe_open(path, "numpy") as file:
        about = json.loads(file.metadata()["bundle"])
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - it is no mapping
    if (digest := weights_digest(base)) != about["base"]:
        raise SondeError(
            f"the bundled model for {bundle.purpose} builds on {DEFAULT_MODEL} with the digest {about['base'][:12]}…, "
            f"but {base} has {digest[:12]}…: install sonde again, or give a model's folder with {arg('model')}"
        )
    return Packed(about["config"], arrays, base)


def unpack(packed: Mapping[str, np.ndarray], base: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the float32 weights that `pack` was given, as near as its codes allow."""
    weights = {name: np.asarray(weight, np.float32) for name, weight in base.items()}
    for name, part in packed.items():
        exact = np.asarray(part, np.float32)
        if name.endswith(CODE):
            name = name.removesuffix(CODE)
            change = exact * np.asarray(packed[name + SCALE], np.float32)
            weights[name] = np.asarray(weights[name] + change, np.float32)
        elif name.endswith(CHANGE):
            name = name.removesuffix(CHANGE)
            weights[name] = weights[name] + exact
        elif not name.endswith(SCALE):
            weights[name] = exact
    return weights


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
