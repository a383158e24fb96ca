"""Two texts, or one, as models see them: scores side by side, tokens, attention."""

from collections.abc import Callable

from ...pipelines.label import load_nli
from ...pipelines.pairs import PairScorer
from ...pipelines.search.rerank.models import load_reranker
from ...pipelines.search.rerank.stage import Reranker
from ...pipelines.similarity import tokens
from ...pipelines.similarity.similarity import Comparison, Similarity
from ...pipelines.similarity.tokens import Attention, TokenMatrix, pair_attention
from .opened import Opened

__all__ = ["compare_texts", "load_nli", "load_reranker", "pair_attention", "text_attention", "token_matrix"]


def compare_texts(
    collection: Opened, first: str, second: str, second_stage: Reranker | str | None, nli: Callable[[str], PairScorer]
) -> Similarity:
    """Compare two texts with the collection's bi-encoder, a second stage and an NLI model.

    Args:
        collection: The collection whose bi-encoder and device are used.
        first: The first text.
        second: The second text.
        second_stage: A cross-encoder, "late" for late interaction with the bi-encoder, or None for neither.
        nli: A function that returns the NLI model for a device.

    Raises:
        UsageError: A text is empty.
        SondeError: A model is not available, or the bi-encoder has no token vectors, which "late" needs.

    Example:
        >>> pens = sonde.index(["A red pen.", "A blue pen."], to=folder / "pens.sonde")
        >>> bundled = lambda device: load_nli("bundled", device=device)
        >>> compare_texts(pens, "A dog barks.", "A dog is barking.", "late", bundled).paraphrase
        True
    """
    models = Comparison(collection.stored.encoder, second_stage, nli(collection.stored.device))
    [found] = models([(first, second)])
    return found


def token_matrix(collection: Opened, first: str, second: str) -> TokenMatrix:
    """Return the cosines between the tokens of two texts, computed with the collection's bi-encoder.

    Raises:
        UsageError: A text is empty.
        SondeError: The model is not available, or has no token vectors.

    Example:
        >>> token_matrix(pens, "red pen", "pen").similarities.shape
        (2, 1)
    """
    return tokens.token_matrix(collection.stored.encoder, first, second)


def text_attention(collection: Opened, text: str) -> Attention:
    """Return the attention of every head of the collection's bi-encoder for a text.

    Raises:
        UsageError: The text is empty.
        SondeError: The model is not available, has no attention (static), or does not expose it (int8).

    Example:
        >>> text_attention(pens, "A dog").tokens
        ('[CLS]', 'a', 'dog', '[SEP]')
    """
    return tokens.text_attention(collection.stored.encoder, text)
