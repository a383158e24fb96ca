"""Train a model that says whether one text follows from another, and measure it on pairs that are held out."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...indexer.encoder.model_folder import weights_digest
from ...indexer.encoder.models import DEFAULT_MODEL, STATIC_MODEL, canonical_name, locate
from ...indexer.encoder.settings import resolve_devices
from ...indexer.errors import SondeError, UsageError
from ...indexer.progress import Notify, Progress, silent
from .loop import Report, finish, train, work_folder
from .pairs import LABELS, Premise, digest_of, read_pairs
from .settings import TrainSettings, check_share

if TYPE_CHECKING:
    import torch


def new_classifier(folder: str, seed: int, labels: Sequence[str] = LABELS) -> tuple[Any, Any]:
    """Return a sequence-classification model with a bi-encoder's weights and a new head, and its tokenizer.

    A model that was trained here before keeps its head.

    Word embeddings stay as they are: what few pairs teach about a word would be lost on all others, and a bundled
    model shares them with the default model.

    Raises:
        UsageError: It is a classifier of other labels.
        SondeError: It cannot be loaded.
    """
    import torch
    from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer

    from ...indexer.encoder.loading import quiet
    from ...indexer.encoder.model_folder import model_folder

    names: dict[int, str] = dict(enumerate(labels))
    with model_folder(Path(folder)):
        config = AutoConfig.from_pretrained(folder, local_files_only=True)
        if any("ForSequenceClassification" in kind for kind in config.architectures or ()):
            _check_labels(folder, {int(place): str(name) for place, name in (config.id2label or {}).items()}, names)
        config.num_labels, config.id2label = len(names), names
        config.label2id = {name: number for number, name in names.items()}
        # Dropout costs a fifth of the time on a CPU, and word embeddings that stay hold back overfitting as well.
        config.hidden_dropout_prob = config.attention_probs_dropout_prob = 0.0
        torch.manual_seed(seed)
        with quiet():
            tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
            model = AutoModelForSequenceClassification.from_pretrained(
                folder, config=config, dtype=torch.float32, local_files_only=True, use_safetensors=True,
                attn_implementation="eager",  # with a gradient, faster than the fused kernel on a CPU
            )  # fmt: skip
    model.get_input_embeddings().weight.requires_grad_(False)
    return model, tokenizer


def _check_labels(folder: str, found: dict[int, str], wanted: dict[int, str]) -> None:
    if found != wanted:
        raise UsageError(
            f"{folder} has the labels {', '.join(found.values())}; training goes on from {', '.join(wanted.values())} "
            "in this order, or begins with a bi-encoder"
        )


class PairLearner:
    """Learns the label of each pair and, among the hypotheses of one premise, which one is entailed."""

    def __init__(
        self, model: Any, tokenizer: Any, premises: Sequence[Premise], max_tokens: int, compare: float
    ) -> None:
        """Tokenise everything once."""
        self.model = model
        self.compare = compare
        self._pad = tokenizer.pad_token_id
        self._rows = tokenize(tokenizer, premises, max_tokens)
        self._labels = [np.array([LABELS.index(label) for _, label in premise.pairs]) for premise in premises]
        self.lengths = [np.array([len(ids) for ids, _ in rows]) for rows in self._rows]

    def loss(self, groups: np.ndarray) -> "torch.Tensor":
        """Return the cross-entropy of the labels, plus that of the entailed hypothesis among its neighbours."""
        import torch
        from torch.nn.functional import cross_entropy

        rows = [row for group in groups for row in self._rows[group]]
        labels = torch.from_numpy(np.concatenate([self._labels[group] for group in groups])).to(self.model.device)
        logits = self.model(**pad(rows, self._pad, self.model.device)).logits.float()
        loss = cross_entropy(logits, labels)
        if not self.compare:
            return loss
        return loss + self.compare * self._among(logits[:, LABELS.index("entailment")], groups)

    def _among(self, scores: "torch.Tensor", groups: np.ndarray) -> "torch.Tensor":
        """Return the mean cross-entropy over the premises that have exactly one entailed hypothesis among several."""
        import torch

        found, start, entailed = [], 0, LABELS.index("entailment")
        for group in groups:
            labels = self._labels[group]
            part = scores[start : start + len(labels)]
            start += len(labels)
            right = np.flatnonzero(labels == entailed)
            if len(labels) > 1 and len(right) == 1:
                found.append(torch.logsumexp(part, 0) - part[right[0]])
        return torch.stack(found).mean() * (len(found) / len(groups)) if found else scores.sum() * 0


Row = tuple[np.ndarray, np.ndarray]


def tokenize(tokenizer: Any, premises: Sequence[Premise], max_tokens: int) -> list[list[Row]]:
    """Return (token ids, token types) of every pair of every premise; types are 0 where the tokenizer names none."""
    first = [premise.text for premise in premises for _ in premise.pairs]
    second = [hypothesis for premise in premises for hypothesis, _ in premise.pairs]
    made = tokenizer(first, second, truncation="longest_first", max_length=max_tokens, return_token_type_ids=True)
    flat = iter(zip(made["input_ids"], made["token_type_ids"], strict=True))
    typed = "token_type_ids" in tokenizer.model_input_names
    rows = ((np.array(ids), np.array(kinds) * typed) for ids, kinds in flat)
    return [[next(rows) for _ in premise.pairs] for premise in premises]


def pad(rows: Sequence[Row], padding: int, device: Any) -> "dict[str, torch.Tensor]":
    """Return a batch of rows, filled on the right."""
    import torch

    longest = max(len(ids) for ids, _ in rows)
    ids = np.full((len(rows), longest), padding, np.int64)
    kinds, mask = np.zeros_like(ids), np.zeros_like(ids)
    for place, (tokens, types) in enumerate(rows):
        ids[place, : len(tokens)], kinds[place, : len(tokens)], mask[place, : len(tokens)] = tokens, types, 1
    named = {"input_ids": ids, "token_type_ids": kinds, "attention_mask": mask}
    return {name: torch.from_numpy(values).to(device) for name, values in named.items()}


BATCH_TOKENS = 8192


@dataclass(frozen=True, slots=True)
class PairQuality:
    """Quality on held-out pairs.

    Attributes:
        pairs: How many.
        accuracy: Share of right labels, 0 to 1.
        per_label: Share of right ones among the pairs of each label that occurs.
        majority: What always giving the most frequent label would reach.
    """

    pairs: int
    accuracy: float
    per_label: dict[str, float]
    majority: float


def pair_logits(model: Any, tokenizer: Any, premises: Sequence[Premise], max_tokens: int) -> np.ndarray:
    """Return float32 [pairs, labels], in the order of the premises and their pairs."""
    import torch

    rows = [row for group in tokenize(tokenizer, premises, max_tokens) for row in group]
    order = np.argsort([-len(ids) for ids, _ in rows], kind="stable")
    found = np.zeros((len(rows), int(model.config.num_labels)), np.float32)
    start = 0
    with torch.inference_mode():
        while start < len(order):
            part = order[start : start + max(1, BATCH_TOKENS // len(rows[order[start]][0]))]
            batch = pad([rows[place] for place in part], tokenizer.pad_token_id, model.device)
            found[part] = model(**batch).logits.float().cpu().numpy()
            start += len(part)
    return found


def evaluate_pairs(model: Any, tokenizer: Any, premises: Sequence[Premise], max_tokens: int) -> PairQuality:
    """Compare a model's most likely labels with the true ones."""
    names = {int(place): str(name).lower() for place, name in model.config.id2label.items()}
    given = pair_logits(model, tokenizer, premises, max_tokens).argmax(1)
    truth = np.array([label for premise in premises for _, label in premise.pairs])
    right = np.array([names[int(place)] for place in given]) == truth
    present = [label for label in LABELS if (truth == label).any()]
    return PairQuality(
        pairs=len(truth),
        accuracy=float(right.mean()),
        per_label={label: float(right[truth == label].mean()) for label in present},
        majority=max(float((truth == label).mean()) for label in present),
    )


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
            **self.report.to_dict(),
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
    check_share(share)
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
