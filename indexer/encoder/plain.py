"""Reads plain Sentence-Transformers folders, which hold a BERT-like encoder and a pooling layer, without torch.

A folder with anything else in it is not plain: Sentence-Transformers loads it, or reports what is wrong with it.
"""

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from ..small_files import LARGEST_OF_MODEL, read_json
from .bert import BertShape, bert_weights

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
