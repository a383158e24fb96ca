"""The layers and the weights of BERT-like models, as a model's folder describes them."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

_ENCODER = {
    "words": "embeddings.word_embeddings",
    "positions": "embeddings.position_embeddings",
    "types": "embeddings.token_type_embeddings",
    "norm": "embeddings.LayerNorm",
}
_LAYER = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "mixed": "attention.output.dense",
    "first_norm": "attention.output.LayerNorm",
    "wide": "intermediate.dense",
    "narrow": "output.dense",
    "second_norm": "output.LayerNorm",
}
_DISTILLED_LAYER = {
    "query": "attention.q_lin",
    "key": "attention.k_lin",
    "value": "attention.v_lin",
    "mixed": "attention.out_lin",
    "first_norm": "sa_layer_norm",
    "wide": "ffn.lin1",
    "narrow": "ffn.lin2",
    "second_norm": "output_layer_norm",
}
_AFTER_PADDING = ("roberta", "xlm-roberta", "camembert")
"""Their positions count from after the id of the padding."""


@dataclass(frozen=True, slots=True)
class BertShape:
    """The layers of an encoder of BERT's kind (Devlin et al., 2019): absolute positions, GELU, normalised afterwards.

    Attributes:
        kind: `model_type` of the configuration.
        hidden: The length of a token's vector.
        heads: Attention heads of a layer.
        layers: How many layers there are.
        epsilon: What a layer normalisation adds to the variance.
        first: The row of the position embeddings that the first token gets.
    """

    kind: str
    hidden: int
    heads: int
    layers: int
    epsilon: float
    first: int

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Self | None:
        """Read a configuration; None where it is of another kind, or has a part that the graph lacks."""
        kind = config["model_type"]
        if kind == "distilbert":
            names = ("dim", "n_heads", "n_layers")
            plain = config.get("activation", "gelu") == "gelu"
        elif kind in ("bert", *_AFTER_PADDING):
            names = ("hidden_size", "num_attention_heads", "num_hidden_layers")
            plain = config.get("hidden_act", "gelu") == "gelu"
        else:
            return None
        plain &= config.get("position_embedding_type", "absolute") == "absolute"
        plain &= not config.get("is_decoder") and not config.get("quantization_config")
        hidden, heads, layers = (int(config[name]) for name in names)
        if not plain or hidden % heads:
            return None
        first = int(config.get("pad_token_id", 1)) + 1 if kind in _AFTER_PADDING else 0
        return cls(kind, hidden, heads, layers, float(config.get("layer_norm_eps", 1e-12)), first)


class BertWeights:
    """The arrays of a safetensors file, float32, by the names that the graph gives them."""

    def __init__(self, file: Any, shape: BertShape) -> None:
        """Take an open file.

        Raises:
            LookupError: It holds no such model.
        """
        self._file = file
        self._shape = shape
        self._distilled = shape.kind == "distilbert"
        words = f"{_ENCODER['words']}.weight"
        found = [name for name in sorted(file.keys()) if name.endswith(words)]
        if not found:
            raise LookupError(words)
        self._prefix = found[0].removesuffix(words)

    def positions(self) -> int:
        """How many tokens a text may have."""
        rows = self._file.get_slice(f"{self._prefix}{_ENCODER['positions']}.weight").get_shape()[0]
        return int(rows) - self._shape.first

    def complete(self) -> bool:
        """Whether every array is there, in a type that NumPy has."""
        wanted = set(self._names())
        types = {self._file.get_slice(name).get_dtype() for name in wanted & set(self._file.keys())}
        return wanted <= set(self._file.keys()) and types <= {"F32", "F16"}

    def _names(self) -> Iterator[str]:
        for role in ("words", "positions", *(() if self._distilled else ("types",))):
            yield f"{self._prefix}{_ENCODER[role]}.weight"
        parts = [_ENCODER["norm"]]
        for number in range(self._shape.layers):
            parts += self._roles(number).values()
        for part in parts:
            yield from (f"{self._prefix}{part}.weight", f"{self._prefix}{part}.bias")

    def _roles(self, number: int) -> dict[str, str]:
        place = f"{'transformer' if self._distilled else 'encoder'}.layer.{number}."
        return {role: place + name for role, name in (_DISTILLED_LAYER if self._distilled else _LAYER).items()}

    def arrays(self) -> Iterator[tuple[str, np.ndarray]]:
        """Yield each array with its name; a matrix has a row for each number of its input."""
        yield "words", self._get(f"{_ENCODER['words']}.weight")
        yield "positions", np.ascontiguousarray(self._get(f"{_ENCODER['positions']}.weight")[self._shape.first :])
        if not self._distilled:
            yield "types.rows", self._get(f"{_ENCODER['types']}.weight")
        yield from self._norm("norm", _ENCODER["norm"])
        for number in range(self._shape.layers):
            yield from self._layer(number)

    def _layer(self, number: int) -> Iterator[tuple[str, np.ndarray]]:
        names = self._roles(number)
        three = [names[role] for role in ("query", "key", "value")]
        yield f"{number}.attention", np.concatenate([self._get(f"{name}.weight") for name in three]).T.copy()
        yield f"{number}.attention.bias", np.concatenate([self._get(f"{name}.bias") for name in three])
        for role in ("mixed", "wide", "narrow"):
            yield f"{number}.{role}", self._get(f"{names[role]}.weight").T.copy()
            yield f"{number}.{role}.bias", self._get(f"{names[role]}.bias")
        for role in ("first_norm", "second_norm"):
            yield from self._norm(f"{number}.{role}", names[role])

    def _norm(self, role: str, name: str) -> Iterator[tuple[str, np.ndarray]]:
        yield f"{role}.scale", self._get(f"{name}.weight")
        yield f"{role}.shift", self._get(f"{name}.bias")

    def _get(self, name: str) -> np.ndarray:
        return np.asarray(self._file.get_tensor(self._prefix + name), np.float32)


@contextmanager
def bert_weights(folder: Path, shape: BertShape) -> Iterator[BertWeights]:
    """Open the weights of a model's folder.

    Raises:
        OSError: There is no such file.
        SafetensorError: It is damaged.
        LookupError: It holds no such model.
    """
    from safetensors import safe_open

    with safe_open(str(folder / "model.safetensors"), framework="numpy") as file:
        yield BertWeights(file, shape)
