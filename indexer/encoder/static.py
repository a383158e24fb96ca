"""Static models: a vector for each token, and a text is the mean of its tokens. They run in NumPy, without torch.

The static tier is distilled from a transformer. The recipe is model2vec's (Minish Lab, 2024): every token of the
vocabulary through the model on its own, PCA, and weights by Zipf's law and smooth inverse frequency (Arora et al.,
2017).

What it costs: word order and context are gone. Distilled from the default model, nDCG@10 is 0.28 against 0.41 on
cacm, 0.33 against 0.35 on lisa, 0.29 against 0.43 on cisi, and 0.40 against 0.65 on scientific claims; clusters of
news keep an NMI of 0.55 against 0.60. It is for maps, clusters and drafts of very large corpora.
"""

import hashlib
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import UsageError
from ..small_files import read_json
from .plain import OnCpu, UsualSettings, of_length_one
from .token_vectors import TokenVectors, kept_tokens, special_ids
from .tokenizer import FastTokenizer, PlainTokenizer, StaticTokenizer, Tokens, TransformerTokenizer

if TYPE_CHECKING:
    from .encoder import Encoder

WEIGHTS, TOKENIZER = "model.safetensors", "tokenizer.json"
TABLE = "embedding.weight"
_KIND = "sentence_transformers.sentence_transformer.modules.static_embedding.StaticEmbedding"
RECIPE = "1"
DIMENSIONS = 256
SIF = 1e-4
_UNUSED = re.compile(r"\[unused\d+\]")


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


def static_digest(base_digest: str) -> str:
    """Return what identifies the static model of a base: the base and the recipe.

    Not the bytes made of them, which differ in their last bits from processor to processor.
    """
    return hashlib.sha256(f"static {RECIPE} {DIMENSIONS} {SIF} {base_digest}".encode()).hexdigest()


def distil(base: "Encoder", folder: Path) -> None:
    """Write the static model of `base` into `folder`, as a Sentence-Transformers model.

    The same base gives the same bytes on the same machine.

    Args:
        base: An encoder of a transformer that does not normalise.
        folder: An existing, empty folder.

    Raises:
        UsageError: The base is not a transformer with a fast tokenizer.
    """
    tokenizer = base.tokenizer
    if not isinstance(tokenizer, TransformerTokenizer | PlainTokenizer):
        raise UsageError(f"{base.spec.name} cannot be distilled: the static tier needs a transformer as its base")
    _write_static(folder, _token_vectors(base, tokenizer), tokenizer.backend.to_str())


def _write_static(folder: Path, table: np.ndarray, tokenizer: str) -> None:
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


def _token_vectors(base: "Encoder", tokenizer: FastTokenizer) -> np.ndarray:
    """Return float32 [vocabulary, dimensions]; special and unused tokens get zeros, which add nothing to a mean."""
    vocabulary = tokenizer.backend.get_vocab(with_added_tokens=True)
    special = {token for token, known in _added(tokenizer).items() if known}
    ids = sorted(number for token, number in vocabulary.items() if token not in special and not _UNUSED.match(token))
    rows = [np.array([*tokenizer.prefix, number, *tokenizer.suffix], dtype=np.int32) for number in ids]
    alone = base.encode([Tokens(row, len(row)) for row in rows])
    vectors = np.zeros((max(vocabulary.values()) + 1, min(DIMENSIONS, alone.shape[1])), dtype=np.float32)
    vectors[ids] = principal_components(alone, vectors.shape[1]) * zipf_weights(len(ids))[:, None]
    return vectors


def _added(tokenizer: FastTokenizer) -> dict[str, bool]:
    return {token.content: token.special for token in tokenizer.backend.get_added_tokens_decoder().values()}


def principal_components(vectors: np.ndarray, dimensions: int) -> np.ndarray:
    """Return float64 [n, dimensions]: the centred vectors on their first principal components.

    Each component's sign makes its largest score positive, so that the result does not depend on the solver.
    """
    centred = vectors.astype(np.float64)
    centred -= centred.mean(axis=0)
    _, directions = np.linalg.eigh(centred.T @ centred)
    scores = centred @ directions[:, ::-1][:, :dimensions]
    largest = scores[np.abs(scores).argmax(axis=0), np.arange(scores.shape[1])]
    return scores * np.where(largest < 0, -1.0, 1.0)


def zipf_weights(count: int) -> np.ndarray:
    """Return float64 [count] in 0..1: a / (a + p), p being a token's frequency by Zipf's law over its rank.

    Vocabularies are sorted by frequency, so the rank is the order of the ids.
    """
    inverse_rank = 1.0 / np.arange(2, count + 2)
    return SIF / (SIF + inverse_rank / inverse_rank.sum())
