"""The forward pass of a BERT-shaped encoder as an ONNX graph of fused operators, without its weights.

The operators are ONNX Runtime's own (domain com.microsoft): its attention reads one matrix for query, key and value,
and normalisation includes the sum before it. A graph takes a few kilobytes: the weights are not stored a second time.
docs/decisions/0032 has the reasons.
"""

import dataclasses
import hashlib
import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress

from ..files import write_durably
from . import onnx_format
from .bert import BertShape
from .weights import cache_folder

RECIPE = 2
_FUSED = "com.microsoft"


def bert_graph(shape: BertShape, arrays: Mapping[str, tuple[int, ...]], *, first_only: bool = False) -> bytes:
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
    bounds = (onnx_format.whole_number(name, number) for number, name in enumerate(("zero", "one")))
    graph = onnx_format.graph(
        "bert",
        _nodes(shape, inputs, first_only),
        [onnx_format.value(name, onnx_format.INT32, sides) for name, sides in inputs.items()],
        [onnx_format.value("tokens", onnx_format.FLOAT, ("texts", "read", shape.hidden))],
        # Along side 1, the first token reaches from zero to one.
        [*(onnx_format.given_array(name, sides) for name, sides in arrays.items()), *(bounds if first_only else ())],
    )
    return onnx_format.model(graph, [_FUSED])


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
    return onnx_format.node(kind, inputs, outputs, "" if kind in ("MatMul", "Slice") else _FUSED, **attributes)
