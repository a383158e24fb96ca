"""Runs plain models in ONNX Runtime on the CPU, without torch, as graphs of fused operators, without their weights.

The operators are ONNX Runtime's own (domain com.microsoft): its attention reads one matrix for query, key and value,
and normalisation includes the sum before it. A graph takes a few kilobytes: the weights are not stored a second time.
docs/decisions/0032 has the reasons.

The few messages of ONNX's format that a graph needs are written here as protocol buffers, since the package onnx takes
31 MB. The numbers are the fields' numbers in onnx.proto.
"""

import dataclasses
import hashlib
import json
import struct
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any

import numpy as np

from ..errors import SondeError
from ..files import write_durably
from .model_folder import cache_folder
from .plain import BertShape, BertWeights, OnCpu, PlainModel, of_length_one
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
            graph = _bert_graph(self._shape, sides, first_only=self._first_only)
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


RECIPE = 2
_FUSED = "com.microsoft"

FLOAT, INT32, INT64 = 1, 6, 7
"""Types of an array's numbers."""
_VARINT, _BYTES, _FIXED32 = 0, 2, 5
_ATTRIBUTE_FLOAT, _ATTRIBUTE_INT = 1, 2
_EXTERNAL = 1
_OPSET, _FORMAT = 20, 10

Side = int | str
"""A number, or the name of a side that differs from call to call."""


def _bert_graph(shape: BertShape, arrays: Mapping[str, tuple[int, ...]], *, first_only: bool = False) -> bytes:
    """Return a model in ONNX's format whose `arrays`, by name and sides, a session gets; cached.

    Inputs: "ids" and, where the model has them, "types", int32 [texts, tokens]; "lengths", int32 [texts]: what comes
    after a text's length is padding. Output: "tokens", float32 [texts, tokens, hidden], or [texts, 1, hidden] with
    `first_only`: the first token's alone, for which most of the last layer is skipped.
    """
    key = hashlib.sha256(json.dumps([RECIPE, dataclasses.asdict(shape), arrays, first_only]).encode()).hexdigest()[:32]
    file = cache_folder() / "graphs" / f"{key}.onnx"
    with suppress(OSError):
        content = file.read_bytes()
        if hashlib.sha256(content[32:]).digest() == content[:32]:
            return content[32:]
    made = _made(shape, arrays, first_only)
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        write_durably(file, lambda stream: stream.write(hashlib.sha256(made).digest() + made))
    return made


def _made(shape: BertShape, arrays: Mapping[str, tuple[int, ...]], first_only: bool) -> bytes:
    tokens = ("texts", "tokens")
    inputs = {"ids": tokens, "lengths": ("texts",)} | ({"types": tokens} if "types.rows" in arrays else {})
    bounds = (whole_number(name, number) for number, name in enumerate(("zero", "one")))
    graph = onnx_graph(
        "bert",
        _nodes(shape, inputs, first_only),
        [onnx_value(name, INT32, sides) for name, sides in inputs.items()],
        [onnx_value("tokens", FLOAT, ("texts", "read", shape.hidden))],
        # Along side 1, the first token reaches from zero to one.
        [*(given_array(name, sides) for name, sides in arrays.items()), *(bounds if first_only else ())],
    )
    return onnx_model(graph, [_FUSED])


def _nodes(shape: BertShape, inputs: Collection[str], first_only: bool) -> Iterator[bytes]:
    types = ("types", "types.rows") if "types" in inputs else ("", "")
    arrays = ["words", "positions", types[1], "norm.scale", "norm.shift"]
    yield _node("EmbedLayerNormalization", ["ids", types[0], *arrays], ["0.in", "unused"], epsilon=shape.epsilon)
    for number in range(shape.layers):
        last = number == shape.layers - 1
        yield from _layer(f"{number}.", "tokens" if last else f"{number + 1}.in", shape, last and first_only)


def _layer(at: str, out: str, shape: BertShape, first_only: bool) -> Iterator[bytes]:
    norm = {"epsilon": shape.epsilon}
    first, second = ([f"{at}{role}.scale", f"{at}{role}.shift"] for role in ("first_norm", "second_norm"))
    arrays = [f"{at}attention", f"{at}attention.bias"]
    yield _node("Attention", [f"{at}in", *arrays, "lengths"], [f"{at}seen"], num_heads=shape.heads)
    seen, given = f"{at}seen", f"{at}in"
    if first_only:
        for name in (seen, given):
            yield _node("Slice", [name, "zero", "one", "one"], [f"{name}.first"])
        seen, given = f"{seen}.first", f"{given}.first"
    yield _node("MatMul", [seen, f"{at}mixed"], [f"{at}mix"])
    yield _node("SkipLayerNormalization", [given, f"{at}mix", *first, f"{at}mixed.bias"], [f"{at}mid"], **norm)
    yield _node("MatMul", [f"{at}mid", f"{at}wide"], [f"{at}widened"])
    yield _node("BiasGelu", [f"{at}widened", f"{at}wide.bias"], [f"{at}active"])
    yield _node("MatMul", [f"{at}active", f"{at}narrow"], [f"{at}narrowed"])
    yield _node("SkipLayerNormalization", [f"{at}mid", f"{at}narrowed", *second, f"{at}narrow.bias"], [out], **norm)


def _node(kind: str, inputs: list[str], outputs: list[str], **attributes: float) -> bytes:
    return onnx_node(kind, inputs, outputs, "" if kind in ("MatMul", "Slice") else _FUSED, **attributes)


def onnx_model(graph: bytes, domains: Sequence[str]) -> bytes:
    """Return a model: a graph of ONNX's own operators and those of other `domains`."""
    sets = [_text(1, "") + _number(2, _OPSET), *(_text(1, domain) + _number(2, 1) for domain in domains)]
    return _number(1, _FORMAT) + _message(7, graph) + b"".join(_message(8, each) for each in sets)


def onnx_graph(
    name: str, nodes: Iterable[bytes], inputs: Iterable[bytes], outputs: Iterable[bytes], arrays: Iterable[bytes]
) -> bytes:
    """Return a graph of nodes, in the order in which they run."""
    parts = ((1, nodes), (5, arrays), (11, inputs), (12, outputs))
    return _text(2, name) + b"".join(_message(field, each) for field, several in parts for each in several)


def onnx_node(kind: str, inputs: Iterable[str], outputs: Iterable[str], domain: str, **attributes: float) -> bytes:
    """Return an operator with what it reads and writes; "" leaves out an input."""
    names = b"".join(_text(1, name) for name in inputs) + b"".join(_text(2, name) for name in outputs)
    given = b"".join(_message(5, _attribute(name, value)) for name, value in sorted(attributes.items()))
    return names + _text(4, kind) + given + _text(7, domain)


def _attribute(name: str, value: float) -> bytes:
    if isinstance(value, int):
        return _text(1, name) + _number(3, value) + _number(20, _ATTRIBUTE_INT)
    return _text(1, name) + _key(2, _FIXED32) + struct.pack("<f", value) + _number(20, _ATTRIBUTE_FLOAT)


def onnx_value(name: str, kind: int, sides: Iterable[Side]) -> bytes:
    """Return an input or an output of a graph."""
    dimensions = (_number(1, side) if isinstance(side, int) else _text(2, side) for side in sides)
    shape = b"".join(_message(1, each) for each in dimensions)
    return _text(1, name) + _message(2, _message(1, _number(1, kind) + _message(2, shape)))


def given_array(name: str, sides: Iterable[int]) -> bytes:
    """Return a float32 array that a session gets when it is made, in place of a file's content."""
    place = _text(1, "location") + _text(2, "given")
    return _array(name, FLOAT, sides) + _message(13, place) + _number(14, _EXTERNAL)


def whole_number(name: str, number: int) -> bytes:
    """Return an array of one int64, which is part of the graph."""
    return _array(name, INT64, [1]) + _message(7, _varint(number))


def _array(name: str, kind: int, sides: Iterable[int]) -> bytes:
    return b"".join(_number(1, side) for side in sides) + _number(2, kind) + _text(8, name)


def _key(field: int, kind: int) -> bytes:
    return _varint(field << 3 | kind)


def _number(field: int, number: int) -> bytes:
    return _key(field, _VARINT) + _varint(number)


def _text(field: int, text: str) -> bytes:
    return _message(field, text.encode())


def _message(field: int, content: bytes) -> bytes:
    return _key(field, _BYTES) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    """Return a whole number, 0 or more, in groups of seven bits, the lowest first."""
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])
