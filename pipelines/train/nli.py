"""Train a model that says whether one text follows from another, from a bi-encoder and a file of pairs."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...indexer.encoder.model_folder import weights_digest
from ...indexer.encoder.models import DEFAULT_MODEL, STATIC_MODEL, canonical_name, locate
from ...indexer.encoder.settings import resolve_devices
from ...indexer.errors import SondeError, UsageError
from ...indexer.progress import Notify, Progress, silent
from .classifier import PairLearner, PairQuality, evaluate_pairs, new_classifier
from .folder import finish, work_folder
from .loop import Report, TrainSettings, train
from .pairs import Premise, digest_of, read_pairs


@dataclass(frozen=True, slots=True)
class Trained:
    """What a training run made.

    Attributes:
        folder: The model's folder; `--model` takes it.
        before: Quality on the held-out pairs before training, with a head that knows nothing.
        after: The same after it.
        report: Steps, losses, seconds.
    """

    folder: Path
    before: PairQuality
    after: PairQuality
    report: Report

    def to_dict(self) -> dict[str, Any]:
        """Return what `--json` prints."""
        return {
            "folder": str(self.folder),
            "pairs": self.after.pairs,
            "accuracy_before": self.before.accuracy,
            "accuracy": self.after.accuracy,
            "per_label": self.after.per_label,
            "majority": self.after.majority,
            "steps": self.report.steps,
            "resumed": self.report.resumed,
            "seconds": round(self.report.seconds, 1),
        }


def train_nli(
    pairs: Path, to: Path, *, base: str = DEFAULT_MODEL, settings: TrainSettings | None = None,
    held_out: Path | None = None, share: float = 0.05, device: str = "auto", notify: Notify = silent,
) -> Trained:  # fmt: skip
    """Train a cross-encoder of entailment, neutral and contradiction; a killed run goes on when called again.

    Args:
        pairs: JSONL with premise, hypothesis and label. Neighbouring lines of one premise are compared
            with each other.
        to: The new model's folder.
        base: The bi-encoder to begin with: the default, a folder, or the hub's "org/name".
        settings: How to train.
        held_out: Pairs to measure on; None keeps some of `pairs` back.
        share: Of the premises kept back, above 0 and at most 0.5.
        device: One device: "auto", "cpu", "cuda" …
        notify: Receives progress and sentences.

    Raises:
        UsageError: An argument is not valid.
        SondeError: The data cannot be used, or the model is not available.
    """
    settings = settings or TrainSettings()
    settings.check()
    if not 0 < share <= 0.5:
        said = f"the share held out must be above 0 and at most 0.5, not {share:g}"
        raise UsageError(said, code="out-of-range", field="share", value=share)
    work = work_folder(to)
    taught = read_pairs(pairs)
    kept = read_pairs(held_out) if held_out else []
    if not kept:
        taught, kept = split(taught, share, settings.seed)
    folder = base_folder(base, notify)
    run = digest_of(settings, taught, kept, weights_digest(folder))
    place = resolve_devices(device)[0]
    model, tokenizer = new_classifier(str(folder), settings.seed)
    model.to(place).eval()
    before = evaluate_pairs(model, tokenizer, kept, settings.max_tokens)
    learner = PairLearner(model, tokenizer, taught, settings.max_tokens, settings.compare)
    report = train(learner, settings, work, run, lambda step, steps, _: notify(Progress("train", step, steps, "steps")))
    after = evaluate_pairs(model, tokenizer, kept, settings.max_tokens)
    card = {
        "base": base,
        "pairs": pairs.name,
        "run": run,
        "settings": asdict(settings),
        "before": asdict(before),
        "after": asdict(after),
    }
    finish(to, lambda made: save_model(model, tokenizer, made), card)
    return Trained(to, before, after, report)


def save_model(model: Any, tokenizer: Any, folder: Path) -> None:
    """Save a model as transformers loads it, and its tokenizer."""
    from ...indexer.encoder.loading import quiet

    with quiet():
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)


def split(premises: Sequence[Premise], share: float, seed: int) -> tuple[list[Premise], list[Premise]]:
    """Return what to train on and what to hold out; a text is on one side only, wherever it is in the file.

    Raises:
        SondeError: There are too few different texts.
    """
    texts = list(dict.fromkeys(premise.text for premise in premises))
    if len(texts) < 2:
        raise SondeError("all pairs have the same premise: training needs others to measure on")
    count = min(len(texts) - 1, max(1, round(len(texts) * share)))
    chosen = {texts[place] for place in np.random.default_rng(seed).choice(len(texts), count, replace=False)}
    taught = [premise for premise in premises if premise.text not in chosen]
    return taught, [premise for premise in premises if premise.text in chosen]


def base_folder(name: str, notify: Notify = silent) -> Path:
    """Return the folder of the bi-encoder to begin with.

    Raises:
        UsageError: The static model was asked for, which has no layers, or there is no such name.
        SondeError: It is not available.
    """
    if (name := canonical_name(name)).startswith(STATIC_MODEL):
        raise UsageError(f"the static model has no layers to train: begin with {DEFAULT_MODEL} or another transformer")
    return locate(name, notify).folder
