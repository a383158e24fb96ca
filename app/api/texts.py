"""Judge texts that are not in a collection: labels and entailment."""

from typing import Unpack

from ...indexer.encoder import Encoder
from ...indexer.errors import Texts
from ...indexer.progress import Notify, silent
from ...pipelines.label import Classified, Entailment, Labels, LabelSettings, check_sentences, load_nli, make_labels
from ...pipelines.label import classify as label_texts
from ...pipelines.label import entail as judge_pair
from .arguments import PROGRESS, checked, settings_from
from .options import LabelOptions

__all__ = ["classify", "entail", "make_labels"]


@checked
def classify(
    texts: Texts,
    labels: Labels,
    *,
    settings: LabelSettings | None = None,
    encoder: Encoder | None = None,
    progress: Notify = silent,
    **options: Unpack[LabelOptions],
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
