"""Reads plain Sentence-Transformers folders, which hold a BERT-like encoder and a pooling layer, without torch.

A folder with anything else in it is not plain: Sentence-Transformers loads it, or reports what is wrong with it.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from ..small_files import LARGEST_OF_MODEL, read_json

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


_PLAIN_TRANSFORMER: dict[str, tuple[object, ...]] = {
    "do_lower_case": (False, None),
    "transformer_task": ("feature-extraction",),
    "modality_config": ({"text": {"method": "forward", "method_output_name": "last_hidden_state"}},),
    "module_output_name": ("token_embeddings",),
}
"""Settings of the module `Transformer` that change nothing."""
_LEGACY_POOLING = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
TINY = 1e-12
UNSTATED = 1_000_000
"""Tokenizers without a limit state 10^30."""


@dataclass(frozen=True, slots=True)
class UsualSettings:
    """What config_sentence_transformers.json says.

    Attributes:
        prompts: By name.
        prompt: The prompt of texts that are neither queries nor documents.
        similarity: As the model names it: "cosine", "dot" …
    """

    prompts: dict[str, str]
    prompt: str
    similarity: str

    @classmethod
    def of(cls, folder: Path) -> Self:
        """Read a model's folder."""
        file = folder / "config_sentence_transformers.json"
        known = read_json(file) if file.is_file() else {}
        prompts = {str(name): str(text) for name, text in (known.get("prompts") or {}).items()}
        usual = prompts.get(known.get("default_prompt_name") or "") or ""
        return cls(prompts, usual, str(known.get("similarity_fn_name") or "cosine"))


@dataclass(frozen=True, slots=True)
class PlainModel:
    """What a plain folder says.

    Attributes:
        folder: Of the weights and the tokenizer.
        shape: Its layers.
        pooling: "mean" of the tokens, or "cls": the first of them.
        window: The most tokens of a text, special ones included.
        usual: Prompts and similarity.
        normalized: Whether its vectors have length 1 without a setting.
    """

    folder: Path
    shape: BertShape
    pooling: str
    window: int
    usual: UsualSettings
    normalized: bool


def read_plain(folder: Path) -> PlainModel | None:
    """Read a model's folder; None where it is not plain."""
    from safetensors import SafetensorError

    with suppress(OSError, ValueError, ArithmeticError, LookupError, TypeError, AttributeError, SafetensorError):
        return _read(folder)
    return None


def _read(folder: Path) -> PlainModel | None:
    parts = _modules(folder)
    if parts is None:
        return None
    root, pooling, normalized = parts
    shape = BertShape.of(read_json(root / "config.json"))
    stated = _transformer_settings(root)
    tokenizer = _tokenizer_settings(root)
    if shape is None or pooling not in ("mean", "cls") or stated is None or tokenizer is None:
        return None
    with bert_weights(root, shape) as weights:
        most = weights.positions()
        if not weights.complete():
            return None
    limit = stated or tokenizer.get("model_max_length") or UNSTATED
    return PlainModel(root, shape, pooling, int(min(limit, most)), UsualSettings.of(folder), normalized)


def _modules(folder: Path) -> tuple[Path, str, bool] | None:
    """Return the transformer's folder, the pooling and whether vectors are normalised; None for other modules."""
    if not (folder / "modules.json").is_file():
        return folder, "mean", False
    modules = [(str(one["type"]), folder / one["path"]) for one in read_json(folder / "modules.json")]
    names = [kind.rpartition(".")[2] for kind, _ in modules]
    ours = all(kind.startswith("sentence_transformers.") for kind, _ in modules)
    if not ours or names[:2] != ["Transformer", "Pooling"] or names[2:] not in ([], ["Normalize"]):
        return None
    return modules[0][1], _pooling(read_json(modules[1][1] / "config.json")), len(names) > 2


def _pooling(config: Mapping[str, Any]) -> str:
    if not config.get("include_prompt", True):
        return "without the prompt"
    chosen = config.get("pooling_mode")
    if chosen is None:
        chosen = [mode for name, mode in _LEGACY_POOLING.items() if config.get(name)] or ["mean"]
    several = [chosen] if isinstance(chosen, str) else list(chosen)
    return "+".join(several)


def _transformer_settings(root: Path) -> int | None:
    """Return the window that the module states, 0 where it states none; None where it does more than plain ones."""
    found = sorted(root.glob("sentence_*_config.json"))
    settings = dict(read_json(found[0])) if found else {}
    window = settings.pop("max_seq_length", None)
    plain = all(value in _PLAIN_TRANSFORMER.get(name, ()) for name, value in settings.items())
    return int(window or 0) if plain and len(found) < 2 else None


def _tokenizer_settings(root: Path) -> dict[str, Any] | None:
    """Return the tokenizer's settings; None where the library would make another of it than its file says."""
    settings = read_json(root / "tokenizer_config.json")
    sides = {settings.get("padding_side", "right"), settings.get("truncation_side", "right")}
    normalizer = read_json(root / "tokenizer.json", LARGEST_OF_MODEL).get("normalizer") or {}
    cases = {settings.get("do_lower_case"), normalizer.get("lowercase")} - {None}
    return settings if sides == {"right"} and len(cases) < 2 else None


class OnCpu:
    """A replica whose results are NumPy arrays."""

    device = "cpu"
    ahead = sys.maxsize

    def fetch(self, results: Sequence[tuple[np.ndarray, np.ndarray]], into: np.ndarray) -> None:
        """Copy the results of batches, with the places of their texts, to these places."""
        for places, found in results:
            into[places] = found


def of_length_one(vectors: np.ndarray) -> np.ndarray:
    """Return float [..., d] vectors scaled to length 1; a zero vector stays one."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), TINY)
