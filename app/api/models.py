"""Models on texts of your own: evaluate them, compare texts, and see two texts, or one, as they do."""

from collections.abc import Callable, Sequence
from pathlib import Path

from ...indexer.encoder import DEFAULT_MODEL
from ...indexer.errors import UsageError, arg, check_seed
from ...indexer.progress import Notify, silent
from ...pipelines.evaluate.bitext import BitextQuality, Sides, judge_bitext, write_plots
from ...pipelines.evaluate.models import cells as quality_cells
from ...pipelines.evaluate.models import evaluate_models, read_retrieval
from ...pipelines.evaluate.models import markdown as quality_page
from ...pipelines.evaluate.models import table_notes as quality_notes
from ...pipelines.evaluate.sts import evaluate_sts
from ...pipelines.label import load_nli
from ...pipelines.pairs import PairScorer
from ...pipelines.plots import check_plot_target
from ...pipelines.search.rerank.models import load_reranker
from ...pipelines.search.rerank.stage import Reranker
from ...pipelines.similarity import tokens
from ...pipelines.similarity.bitext import mine_bitext, read_sentences
from ...pipelines.similarity.pair_file import PairFile, read_pair_file
from ...pipelines.similarity.similarity import Comparison, Similarity, check_pairs, load_comparison, load_symmetric
from ...pipelines.similarity.tokens import Attention, TokenMatrix, pair_attention
from .opened import Opened

__all__ = [
    "check_bitext", "check_pairs", "compare_texts", "evaluate_bitext", "evaluate_models", "evaluate_sts",
    "load_comparison", "load_nli", "load_reranker", "mine_bitext", "pair_attention", "quality_cells", "quality_notes",
    "quality_page", "read_pair_file", "read_retrieval", "read_sentences", "text_attention", "token_matrix",
]  # fmt: skip


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


def evaluate_bitext(
    files: Sequence[PairFile],
    model: str = DEFAULT_MODEL,
    *,
    k: int,
    histogram: Path | None = None,
    map: Path | None = None,
    seed: int = 0,
    prompt: str | None = None,
    device: str = "auto",
    dtype: str = "auto",
    progress: Notify = silent,
) -> list[BitextQuality]:
    """Measure how well a model finds translations, using files that pair each sentence with its translation.

    Args:
        files: Pairs, as `read_pair_file` reads them.
        model: The bi-encoder.
        k: Number of neighbours from which a margin is computed.
        histogram: Where to save a histogram of the similarities, .html, .png or .svg; for a single file only.
        map: Where to save a map of both languages, .html, .png or .svg; for a single file only.
        seed: Random seed of the map and of the random pairs.
        prompt: Text to put before every sentence.
        device: "auto", "cpu", "cuda" …
        dtype: Precision of the model.
        progress: Receives messages.

    Raises:
        UsageError: The model's name or an option is not valid.
        SondeError: A file has too few pairs, the model is not available, or a plot cannot be written.
        MissingExtraError: A library that a plot needs is not installed.
    """
    check_bitext(len(files), histogram, map, seed)
    encoder = load_symmetric(model, prompt, device=device, dtype=dtype, notify=progress)
    sides = [Sides.of(file, encoder, progress) for file in files]
    found = [judge_bitext(side, encoder.spec.name, k) for side in sides]
    write_plots(sides[0], encoder.spec.name, histogram, map, seed)
    return found


def check_bitext(files: int, histogram: Path | None, map: Path | None, seed: int) -> None:
    """Check the plots requested from `evaluate_bitext` before any file is read.

    Raises:
        UsageError: The seed is negative, a plot's suffix is none of .html, .png and .svg, or a plot would show several
            files.
        SondeError: A plot's folder does not exist.
        MissingExtraError: The library that draws it is not installed.
    """
    check_seed(seed)
    for target in (histogram, map):
        if target is not None:
            check_plot_target(target)
    if files > 1 and (histogram or map):
        raise UsageError(
            f"a plot shows one file, not {files}: give one, or leave out {arg('histogram')} and {arg('map')}"
        )
