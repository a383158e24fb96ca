"""The bi-encoder's vectors of single tokens in their context, for late interaction."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import SondeError, arg
from .forward import Replica
from .tokenizer import FastTokenizer, StaticTokenizer
from .tokens import OwnPreprocessing, TextTokenizer, Tokens

LONGEST = 50_000
"""Characters of a text whose tokens are located; no window reaches further."""


@dataclass(frozen=True, slots=True, eq=False)
class TokenVectors:
    """The tokens of one text, special ones left out unless there are no others.

    Attributes:
        ids: int64 [n], n at least 1.
        vectors: float32 [n, d], of length 1.
        places: int64 [n], each token's place in `Tokens.ids`.
    """

    ids: np.ndarray
    vectors: np.ndarray
    places: np.ndarray


def run_batch(replica: Replica, batch: list[Tokens], name: str) -> list[TokenVectors]:
    """Return the vectors of each text's tokens, from one forward pass.

    Raises:
        SondeError: The model has no vectors of tokens.
    """
    import torch

    with torch.inference_mode():
        features = replica.tokenizer.collate(batch)
        special = special_ids(replica.tokenizer)
        if isinstance(replica.tokenizer, StaticTokenizer):
            return [_static(replica.model, text, special) for text in batch]
        moved = {key: replica.moved(value) for key, value in features.items()}
        found = replica.model(moved)
        vectors, ids = found.get("token_embeddings"), features.get("input_ids")
        if vectors is None or ids is None or vectors.shape[:2] != ids.shape:
            raise SondeError(f"{name} has no vectors of tokens: give {arg('rerank_model')} another model")
        vectors = torch.nn.functional.normalize(vectors.float(), dim=2).cpu().numpy()
        mask = features["attention_mask"].cpu().numpy().astype(bool)
        rows = zip(ids.cpu().numpy(), vectors, mask, strict=True)
        return [_kept(row_ids[used], row[used], special) for row_ids, row, used in rows]


def _static(model: Any, text: Tokens, special: np.ndarray) -> TokenVectors:
    """A static model's vectors know no context; an empty text gets one vector of zeros."""
    import torch

    table = model[0].embedding.weight
    if not len(text.ids):
        return TokenVectors(np.zeros(1, np.int64), np.zeros((1, table.shape[1]), np.float32), np.zeros(1, np.int64))
    found = table[torch.from_numpy(text.ids.astype(np.int64)).to(table.device)].float()
    return _kept(text.ids.astype(np.int64), torch.nn.functional.normalize(found, dim=1).cpu().numpy(), special)


def _kept(ids: np.ndarray, vectors: np.ndarray, special: np.ndarray) -> TokenVectors:
    places = np.flatnonzero(~np.isin(ids, special))
    places = places if len(places) else np.arange(len(ids))
    return TokenVectors(ids[places], vectors[places], places)


def special_ids(tokenizer: TextTokenizer) -> np.ndarray:
    """Return the ids of the special tokens that the tokenizer puts around a text."""
    if isinstance(tokenizer, FastTokenizer):
        return np.unique(np.array([*tokenizer.prefix, *tokenizer.suffix], np.int64))
    if isinstance(tokenizer, OwnPreprocessing):
        return np.array(getattr(tokenizer.model.tokenizer, "all_special_ids", ()) or (), np.int64)
    return np.empty(0, np.int64)


def locate_tokens(tokenizer: TextTokenizer, text: str, query: bool) -> list[tuple[int, int]] | None:
    """Return the characters of a text, from and to, of each of its `Tokens.ids`; None where that is not known.

    Special tokens and those of the prompt get an empty range at or before 0.
    """
    if not isinstance(tokenizer, FastTokenizer) or tokenizer.left:
        return None
    prompt = len(tokenizer.prompts[query])
    encoding = tokenizer.backend.encode(tokenizer.prompts[query] + text[:LONGEST], add_special_tokens=False)
    inside = tokenizer.window - len(tokenizer.prefix) - len(tokenizer.suffix)
    spans = [(max(0, start - prompt), max(0, end - prompt)) for start, end in encoding.offsets[:inside]]
    return [(0, 0)] * len(tokenizer.prefix) + spans + [(0, 0)] * len(tokenizer.suffix)
