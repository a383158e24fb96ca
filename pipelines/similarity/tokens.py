"""Token by token: cosines between two texts' tokens, and the attention of every head."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...indexer.encoder import Encoder, Tokens
from ...indexer.encoder.tokenizer import FastTokenizer
from ...indexer.errors import MissingExtraError, SondeError, UsageError

MOST = 80
"""Tokens of a text that are compared, at most."""


@dataclass(frozen=True, slots=True, eq=False)
class TokenMatrix:
    """The cosines of two texts' tokens.

    Attributes:
        first: The first text's tokens, n of them, special ones left out.
        second: The second text's tokens, m of them.
        similarities: float32 [n, m], -1 to 1.
        left_out: Tokens of both texts that were not compared, because there are more than 80 in a text.
    """

    first: tuple[str, ...]
    second: tuple[str, ...]
    similarities: np.ndarray
    left_out: int


def token_matrix(encoder: Encoder, first: str, second: str, *, query: bool = False) -> TokenMatrix:
    """Compare the tokens of two texts.

    Args:
        encoder: The bi-encoder.
        first: A text, or a query.
        second: A text.
        query: Whether the first one is a query.

    Raises:
        UsageError: A text is empty.
        SondeError: The model has no token embeddings.
    """
    if not first.strip() or not second.strip():
        raise UsageError("a text is empty: give two texts to compare")
    tokens = [*encoder.tokenize([first], query=query), *encoder.tokenize([second])]
    vectors = encoder.token_vectors(tokens)
    names = [token_names(encoder, found.ids.tolist()) for found in vectors]
    left_out = sum(max(0, len(each) - MOST) for each in names)
    similar = np.clip(vectors[0].vectors[:MOST] @ vectors[1].vectors[:MOST].T, -1, 1).astype(np.float32)
    return TokenMatrix(tuple(names[0][:MOST]), tuple(names[1][:MOST]), similar, left_out)


def token_names(encoder: Encoder, ids: Sequence[int]) -> list[str]:
    """Return what tokens are called in the model's vocabulary; their number where that cannot be asked."""
    backend = encoder.tokenizer.backend if isinstance(encoder.tokenizer, FastTokenizer) else None
    named = [backend.id_to_token(number) if backend else None for number in ids]
    return [name or f"#{number}" for name, number in zip(named, ids, strict=True)]


def shortened_matrix(tokens: Tokens, most: int) -> Tokens:
    """Return at most this many tokens of a text, its last one, which is often a special one, kept."""
    if len(tokens.ids) <= most:
        return tokens
    return Tokens(np.concatenate([tokens.ids[: most - 1], tokens.ids[-1:]]), tokens.total, tokens.query)


ATTENTION_MOST = 64
"""Tokens that are read, special ones included: of more, the picture could not be read."""


@dataclass(frozen=True, slots=True, eq=False)
class Attention:
    """The attention of every head.

    Attributes:
        model: What the model is called.
        tokens: The n tokens that were read, special ones included.
        weights: float32 [layers, heads, n, n]: how much the token of a row looks at that of a column; rows sum to 1.
        second: Where the second text begins, None where one text was read.
        total: Tokens that there were.
    """

    model: str
    tokens: tuple[str, ...]
    weights: np.ndarray
    second: int | None
    total: int


def text_attention(encoder: Encoder, text: str, *, query: bool = False) -> Attention:
    """Return the attention of the bi-encoder while it reads one text.

    Raises:
        UsageError: The text is empty.
        SondeError: The model has none (a static one), or keeps it to itself (an int8 one).
    """
    if not text.strip():
        raise UsageError("the text is empty: give one to read")
    [tokens] = encoder.tokenize([text], query=query)
    tokens = shortened_matrix(tokens, ATTENTION_MOST)
    replica: Any = next(iter(getattr(encoder, "replicas", ())), None)
    module = getattr(encoder.library()[0], "auto_model", None) if replica else None
    if module is None or not hasattr(module, "set_attn_implementation"):
        raise SondeError(f"{encoder.spec.name} has no attention to show: static and int8 models do not expose any")
    features = replica.features([tokens])
    known = ("input_ids", "attention_mask", "token_type_ids", "position_ids")
    weights = _weights(module, {name: value for name, value in features.items() if name in known}, encoder.spec.name)
    return Attention(encoder.spec.name, tuple(token_names(encoder, tokens.ids.tolist())), weights, None, tokens.total)


def pair_attention(first: str, second: str) -> Attention:
    """Return the attention of the NLI model that comes with Sonde while it reads two texts together.

    Raises:
        UsageError: A text is empty.
        SondeError: The model is not available.
    """
    if not first.strip() or not second.strip():
        raise UsageError("a text is empty: give two texts to compare")
    model, tokenizer = _nli_with_attention()
    whole = len(tokenizer(first, second)["input_ids"])
    found = tokenizer(first, second, truncation="longest_first", max_length=ATTENTION_MOST, return_tensors="pt")
    ids = found["input_ids"][0].tolist()
    names = tokenizer.convert_ids_to_tokens(ids)
    parts = found.sequence_ids(0)
    weights = _weights(model, dict(found), "the NLI model")
    return Attention("nli", tuple(names), weights, parts.index(1) if 1 in parts else None, whole)


def _nli_with_attention() -> tuple[Any, Any]:
    try:
        from ..pairs.bundled.loading import load_bundled
    except ImportError as error:
        raise MissingExtraError("PyTorch", "all", "showing attention") from error
    model, tokenizer, _ = load_bundled("nli")
    return model, tokenizer


def _weights(model: Any, features: dict[str, Any], name: str) -> np.ndarray:
    """Return float32 [layers, heads, n, n], from a copy over the same weights that keeps its attention."""
    import torch

    shared = {id(each): each for each in (*model.parameters(), *model.buffers())}
    try:
        open_model = copy.deepcopy(model, shared).eval()
        open_model.set_attn_implementation("eager")
        with torch.inference_mode():
            found = open_model(**features, output_attentions=True).attentions
    except (TypeError, ValueError, AttributeError) as error:
        raise SondeError(f"{name} does not show its attention: {str(error).splitlines()[0]}") from None
    if not found or found[0] is None:
        raise SondeError(f"{name} does not show its attention")
    return np.stack([layer[0].float().cpu().numpy() for layer in found])
