"""Judge and explain texts that are not in a collection: labels, entailment, similarity, tokens and attention."""

from collections.abc import Callable
from typing import Any

from ...indexer.encoder import Encoder
from ...indexer.errors import Texts
from ...indexer.progress import Notify, silent
from ...pipelines.label import Classified, Entailment, Labels, LabelSettings, check_sentences, load_nli, make_labels
from ...pipelines.label import classify as label_texts
from ...pipelines.label import entail as judge_pair
from ...pipelines.pairs import PairModel
from ...pipelines.search.rerank.models import load_reranker
from ...pipelines.search.rerank.stage import Reranker
from ...pipelines.similarity import tokens
from ...pipelines.similarity.similarity import Comparison, Similarity
from ...pipelines.similarity.tokens import Attention, TokenMatrix, pair_attention
from .arguments import PROGRESS, checked, settings_from
from .opened import Opened

__all__ = [
    "classify",
    "compare_texts",
    "entail",
    "load_nli",
    "load_reranker",
    "make_labels",
    "pair_attention",
    "text_attention",
    "token_matrix",
]


@checked
def classify(
    texts: Texts,
    labels: Labels,
    *,
    settings: LabelSettings | None = None,
    encoder: Encoder | None = None,
    progress: Notify = silent,
    **options: Any,
) -> list[Classified]:
    """Label texts that are not in a collection, using only the names of the labels.

    Args:
        texts: One or several texts; none may be empty.
        labels: Names, "name: description" texts, or a mapping of names to descriptions.
        settings: Base settings; each option overrides the field of the same name.
        encoder: A bi-encoder of your own.
        progress: Receives messages.
        **options: Any field of `sonde.LabelSettings`: `engine`, `model`, `multi_label`, `threshold`, `template` …

    Raises:
        UsageError: The labels, a setting or a text is not valid.
        SondeError: A model is not available.

    Example:
        >>> sonde.classify(["My parcel never came."], ["refund", "delivery"], engine="similarity")[0].label
        'delivery'
    """
    given = settings_from(LabelSettings, settings, options, "classify", ("encoder", *PROGRESS))
    return label_texts(texts, labels, given, encoder=encoder, notify=progress)


@checked
def entail(
    premise: str,
    hypothesis: str,
    *,
    model: str | None = None,
    device: str = "auto",
    dtype: str = "auto",
    progress: Notify = silent,
) -> Entailment:
    """Decide whether one sentence follows from another: entailment, neutral or contradiction, with probabilities.

    Args:
        premise: What is known.
        hypothesis: What may follow from it.
        model: "bundled", the folder of an NLI model, or a hub name; None uses the bundled model. On a GPU,
            facebook/bart-large-mnli is more accurate.
        device: "auto", "cpu", "cuda" …
        dtype: Precision of the model: "auto", "float32", "bfloat16" or "float16".
        progress: Receives messages.

    Raises:
        UsageError: A sentence is empty, or the model's name is not valid.
        SondeError: The model is not available, or is not an NLI model.

    Example:
        >>> sonde.entail("A man plays a guitar.", "", model="bundled")
        Traceback (most recent call last):
        ...
        sonde.indexer.errors.UsageError: the hypothesis is empty: give two sentences
    """
    check_sentences(premise, hypothesis)
    return judge_pair(premise, hypothesis, load_nli(model, device=device, dtype=dtype, notify=progress))


@checked
def compare_texts(
    collection: Opened, first: str, second: str, second_stage: Reranker | str | None, nli: Callable[[str], PairModel]
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
