"""Train an NLI model with the pooled head, an average of the weights, lower rates for lower layers.

`make_pooled.py` calls `train`. Batches have one of few shapes (a length, and as many pairs as the budget allows),
because a CPU compiles its matrix products anew for each shape. A killed run goes on from its last checkpoint.
"""

import math
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoConfig, AutoTokenizer, BertModel

from sonde.pipelines.pairs.bundled.loading import PooledPairClassifier
from sonde.pipelines.train.loop import Checkpoint, load_checkpoint, save_checkpoint
from sonde.pipelines.train.pairs import LABELS, Premise

WIDTH = 256
BLOCK = 8  # lengths are rounded up to a multiple of it


@dataclass(frozen=True)
class Recipe:
    """How to train.

    Attributes:
        rate: The highest rate of the last layer; the head's is ten times that.
        fall: What each lower layer's rate is multiplied by.
        decay: Weight decay.
        dropout: Of hidden states, in layers and head.
        smooth: Label smoothing.
        average: How much of the averaged weights each step keeps.
        compare: Weight of the comparison between the hypotheses of one premise.
        batch_tokens: Tokens of a batch.
        max_tokens: A longer pair is cut.
        warmup: Share of the steps over which the rate rises.
        seed: Decides order and new weights.
    """

    rate: float = 1.5e-4
    fall: float = 0.9
    decay: float = 0.05
    dropout: float = 0.1
    smooth: float = 0.0
    average: float = 0.998
    compare: float = 0.5
    batch_tokens: int = 2048
    max_tokens: int = 128
    warmup: float = 0.06
    seed: int = 11


def new_model(base: Path, recipe: Recipe) -> PooledPairClassifier:
    """Return the classifier with a bi-encoder's layers and a new head; word embeddings are held still."""
    torch.manual_seed(recipe.seed)
    config = AutoConfig.from_pretrained(base, local_files_only=True)
    config.num_labels, config.id2label = len(LABELS), dict(enumerate(LABELS))
    config.label2id = {name: number for number, name in enumerate(LABELS)}
    config.pair_width, config.architectures = WIDTH, [PooledPairClassifier.__name__]
    config.hidden_dropout_prob, config.attention_probs_dropout_prob = recipe.dropout, 0.0
    config._attn_implementation = "eager"  # with a gradient, faster than the fused kernel on a CPU
    model = PooledPairClassifier(config)
    found = BertModel.from_pretrained(base, add_pooling_layer=False, local_files_only=True)
    model.bert.load_state_dict(found.state_dict())
    model.get_input_embeddings().weight.requires_grad_(False)
    return model


def train(
    epochs: Sequence[Sequence[Premise]], base: Path, work: Path, recipe: Recipe, run: str,
    on_step: Callable[[int, int, float], object] = lambda *_: None,
) -> tuple[PooledPairClassifier, Any]:  # fmt: skip
    """Return the trained model, with averaged weights, and its tokenizer.

    Args:
        epochs: The premises of each pass, which need not be the same ones.
        base: The bi-encoder's folder.
        work: Where the checkpoint goes.
        recipe: How.
        run: A digest of data and recipe.
        on_step: Called with the steps done, all steps and the loss.
    """
    model: Any = new_model(base, recipe)
    tokenizer = AutoTokenizer.from_pretrained(base, local_files_only=True)
    plan = [batch for number, one in enumerate(epochs) for batch in _batches(one, tokenizer, recipe, number)]
    own = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
    exact = {name: weight.detach().clone() for name, weight in own.items()}
    average = {name: weight.clone() for name, weight in exact.items()}
    layers = int(model.config.num_hidden_layers)
    groups = [{"params": [w], "share": _share(name, layers, recipe), **_decay(w, recipe)} for name, w in exact.items()]
    optimizer = torch.optim.AdamW(groups, lr=0.0, betas=(0.9, 0.98), eps=1e-6, fused=True)
    words = model.get_input_embeddings().weight.detach().clone()
    model.to(torch.bfloat16).train()
    start, saved = _restore(work, run, exact, average, optimizer), time.monotonic()
    _write(own, exact)
    for step in range(start, len(plan)):
        torch.manual_seed(recipe.seed * 1_000_000 + step)
        loss = _loss(model, plan[step], recipe)
        loss.backward()
        for name, weight in own.items():
            exact[name].grad = None if weight.grad is None else weight.grad.float()
            weight.grad = None
        torch.nn.utils.clip_grad_norm_(list(exact.values()), 1.0)
        for group in optimizer.param_groups:
            group["lr"] = group["share"] * _rate(step, len(plan), recipe)
        optimizer.step()
        _write(own, exact)
        keep = min(recipe.average, (step + 1) / (step + 10))
        for name, weight in average.items():
            weight.lerp_(exact[name].detach(), 1 - keep)
        on_step(step + 1, len(plan), float(loss.detach()))
        if time.monotonic() - saved > 60:
            saved = time.monotonic()
            save_checkpoint(work, Checkpoint(step + 1, float(loss.detach()), _state(exact, average, optimizer)), run)
    model.float().eval()
    _write(own, average)
    with torch.no_grad():
        model.get_input_embeddings().weight.copy_(words)
    return model, tokenizer


Batch = list[list[tuple[np.ndarray, np.ndarray, int]]]
"""Groups of pairs of one premise, each with its token ids, token types and label."""


def _batches(premises: Sequence[Premise], tokenizer: Any, recipe: Recipe, epoch: int) -> list[Batch]:
    chance = random.Random(recipe.seed * 1000 + epoch)
    shapes: dict[tuple[int, int], list[Any]] = {}
    flat = [(premise.text, hypothesis) for premise in premises for hypothesis, _ in premise.pairs]
    made = tokenizer(
        [first for first, _ in flat], [second for _, second in flat], truncation="longest_first",
        max_length=recipe.max_tokens, return_token_type_ids=True,
    )  # fmt: skip
    rows = iter(zip(made["input_ids"], made["token_type_ids"], strict=True))
    for premise in premises:
        group = []
        for _, label in premise.pairs:
            ids, kinds = next(rows)
            group.append((np.array(ids), np.array(kinds), LABELS.index(label)))
        shapes.setdefault((_length(group), len(group)), []).append(group)
    batches = []
    for (length, size), groups in sorted(shapes.items()):
        chance.shuffle(groups)
        count = max(1, recipe.batch_tokens // (length * size))
        for start in range(0, len(groups), count):
            part = groups[start : start + count]
            batches.append(part + chance.choices(groups, k=count - len(part)))
    chance.shuffle(batches)
    return batches


def _length(group: list[Any]) -> int:
    longest = max(len(ids) for ids, _, _ in group)
    block = BLOCK if longest <= 64 else 2 * BLOCK
    return -(-longest // block) * block


def _loss(model: Any, batch: Batch, recipe: Recipe) -> torch.Tensor:
    rows = [row for group in batch for row in group]
    shape = len(rows), max(map(_length, batch))
    ids, kinds, mask = (np.zeros(shape, np.int64) for _ in range(3))
    for place, (tokens, types, _) in enumerate(rows):
        ids[place, : len(tokens)], kinds[place, : len(tokens)], mask[place, : len(tokens)] = tokens, types, 1
    logits = model(*(torch.from_numpy(each) for each in (ids, mask, kinds))).logits.float()
    labels = torch.tensor([label for _, _, label in rows])
    loss = torch.nn.functional.cross_entropy(logits, labels, label_smoothing=recipe.smooth)
    size = len(batch[0])
    if size == 1:
        return loss
    right = (labels == LABELS.index("entailment")).reshape(-1, size)
    one = right.sum(1) == 1
    if not one.any():
        return loss
    entailed = logits[:, LABELS.index("entailment")].reshape(-1, size)[one]
    return loss + recipe.compare * torch.nn.functional.cross_entropy(entailed, right[one].int().argmax(1))


def _share(name: str, layers: int, recipe: Recipe) -> float:
    if "encoder.layer." in name:
        return recipe.fall ** (layers - 1 - int(name.partition("encoder.layer.")[2].partition(".")[0]))
    return recipe.fall**layers if "embeddings" in name else 10.0


def _decay(weight: torch.Tensor, recipe: Recipe) -> dict[str, float]:
    return {"weight_decay": recipe.decay if weight.dim() > 1 else 0.0}


def _rate(step: int, steps: int, recipe: Recipe) -> float:
    rise = max(1, round(steps * recipe.warmup))
    if step < rise:
        return recipe.rate * (step + 1) / rise
    return recipe.rate * 0.5 * (1 + math.cos(math.pi * (step - rise) / max(1, steps - rise)))


def _write(own: dict[str, Any], weights: dict[str, torch.Tensor]) -> None:
    with torch.no_grad():
        for name, weight in own.items():
            weight.copy_(weights[name])


def _state(exact: dict[str, Any], average: dict[str, Any], optimizer: Any) -> dict[str, torch.Tensor]:
    found = {f"exact.{name}": weight.detach() for name, weight in exact.items()}
    found |= {f"average.{name}": weight for name, weight in average.items()}
    for name, weight in exact.items():
        found |= {f"{key}.{name}": value for key, value in optimizer.state[weight].items()}
    return found


def _restore(work: Path, run: str, exact: dict[str, Any], average: dict[str, Any], optimizer: Any) -> int:
    done = load_checkpoint(work, run)
    if done is None:
        return 0
    with torch.no_grad():
        for name, weight in exact.items():
            weight.copy_(done.state[f"exact.{name}"])
            average[name].copy_(done.state[f"average.{name}"])
            optimizer.state[weight] = {
                key: done.state[f"{key}.{name}"].clone() for key in ("step", "exp_avg", "exp_avg_sq")
            }
    return done.step
