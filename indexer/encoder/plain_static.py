"""Static models in NumPy, without torch: a vector for each token, and a text is the mean of its tokens."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..small_files import read_json
from .plain import OnCpu, UsualSettings, of_length_one
from .token_vectors import TokenVectors, kept_tokens, special_ids
from .tokenizer import StaticTokenizer, Tokens

WEIGHTS, TOKENIZER = "model.safetensors", "tokenizer.json"
TABLE = "embedding.weight"
_KIND = "sentence_transformers.sentence_transformer.modules.static_embedding.StaticEmbedding"


@dataclass(frozen=True, slots=True, eq=False)
class PlainStatic:
    """A folder that holds a `StaticEmbedding` and nothing else but, perhaps, a normalisation.

    Attributes:
        folder: Of the tokenizer.
        table: float32 [vocabulary, dimension].
        normalized: Whether its vectors have length 1 without a setting.
        usual: Prompts and similarity.
    """

    folder: Path
    table: np.ndarray
    normalized: bool
    usual: UsualSettings


def read_static(folder: Path) -> PlainStatic | None:
    """Read a model's folder; None where it holds another model, or weights in a type that NumPy lacks."""
    from safetensors import SafetensorError

    with suppress(OSError, ValueError, LookupError, TypeError, AttributeError, SafetensorError):
        return _read(folder)
    return None


def _read(folder: Path) -> PlainStatic | None:
    from safetensors import safe_open

    modules = [(str(one["type"]), folder / one["path"]) for one in read_json(folder / "modules.json")]
    names = [kind.rpartition(".")[2] for kind, _ in modules]
    ours = all(kind.startswith("sentence_transformers.") for kind, _ in modules)
    if not ours or names not in (["StaticEmbedding"], ["StaticEmbedding", "Normalize"]):
        return None
    root = modules[0][1]
    with safe_open(str(root / WEIGHTS), framework="numpy") as file:
        if list(file.keys()) != [TABLE] or not (root / TOKENIZER).is_file():
            return None
        # NumPy has bfloat16 only if another library has added it: what is read must not depend on that.
        if file.get_slice(TABLE).get_dtype() not in ("F64", "F32", "F16"):
            return None
        table = np.ascontiguousarray(file.get_tensor(TABLE), np.float32)
    return PlainStatic(root, table, len(names) > 1, UsualSettings.of(folder)) if table.ndim == 2 else None


def write_static(folder: Path, table: np.ndarray, tokenizer: str) -> None:
    """Write a model as Sentence-Transformers does, which can load it.

    Args:
        folder: An existing folder.
        table: float32 [vocabulary, dimension].
        tokenizer: The tokenizer's JSON.
    """
    import json

    from safetensors.numpy import save_file

    module = {"idx": 0, "name": "0", "path": "", "type": _KIND}
    about = {
        "model_type": "SentenceTransformer",
        "prompts": {"document": "", "query": ""},
        "default_prompt_name": None,
        "similarity_fn_name": "cosine",
    }
    (folder / "modules.json").write_text(json.dumps([module], indent=2), "utf-8")
    (folder / "config_sentence_transformers.json").write_text(json.dumps(about, indent=2), "utf-8")
    (folder / TOKENIZER).write_text(tokenizer, "utf-8")
    save_file({TABLE: np.ascontiguousarray(table, np.float32)}, str(folder / WEIGHTS))


class StaticReplica(OnCpu):
    """Runs batches of a static model, as `Replica` does with torch."""

    def __init__(self, model: PlainStatic, tokenizer: StaticTokenizer, truncate: int | None, normalize: bool) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.truncate = truncate
        self.normalize = normalize
        self._ones = np.ones(tokenizer.window, np.float32)

    def run(self, batch: list[Tokens]) -> np.ndarray:
        """Return float32 [texts, dimension]; a text without tokens gets zeros."""
        table = self.model.table
        found = np.zeros((len(batch), table.shape[1]), np.float32)
        for row, text in enumerate(batch):
            if count := len(text.ids):  # a product with ones is the fastest sum of rows that NumPy has
                np.dot(self._ones[:count], table.take(text.ids, axis=0), out=found[row])
                found[row] /= count
        found = (of_length_one(found) if self.model.normalized else found)[:, : self.truncate]
        return of_length_one(found) if self.normalize else found

    def run_with_tokens(self, batch: list[Tokens], name: str) -> tuple[np.ndarray, list[TokenVectors]]:
        """Return what `run` and `token_vectors` do."""
        return self.run(batch), self.token_vectors(batch, name)

    def features(self, batch: list[Tokens]) -> dict[str, Any]:
        """Return what the library's model takes."""
        return self.tokenizer.collate(batch)

    def token_vectors(self, batch: list[Tokens], name: str) -> list[TokenVectors]:
        """Return the vectors of each text's tokens, which know no context; an empty text gets one vector of zeros."""
        special = special_ids(self.tokenizer)
        return [self._tokens_of(text, special) for text in batch]

    def _tokens_of(self, text: Tokens, special: np.ndarray) -> TokenVectors:
        if not len(text.ids):
            nothing = np.zeros(1, np.int64)
            return TokenVectors(nothing, np.zeros((1, self.model.table.shape[1]), np.float32), nothing)
        vectors = of_length_one(self.model.table.take(text.ids, axis=0))
        return kept_tokens(text.ids.astype(np.int64), vectors, special)
