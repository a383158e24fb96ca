"""Evaluate models, and compare texts that are not in a collection."""

from collections.abc import Sequence
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
from ...pipelines.plots import check_plot_target
from ...pipelines.similarity.bitext import mine_bitext, read_sentences
from ...pipelines.similarity.pair_file import PairFile, read_pair_file
from ...pipelines.similarity.similarity import check_pairs, load_comparison, load_symmetric, similarity

__all__ = [
    "check_bitext",
    "check_pairs",
    "evaluate_bitext",
    "evaluate_models",
    "evaluate_sts",
    "load_comparison",
    "mine_bitext",
    "quality_cells",
    "quality_notes",
    "quality_page",
    "read_pair_file",
    "read_retrieval",
    "read_sentences",
    "similarity",
]


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
