"""Bundled models as models of transformers: loading them, and writing them."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from transformers import (
    AutoConfig,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    BertModel,
    BertPreTrainedModel,
)
from transformers.modeling_outputs import SequenceClassifierOutput

from ....indexer.encoder.loading import quiet
from ....indexer.encoder.model_folder import weights_digest
from ....indexer.files import write_durably
from .bundles import CHANGE, CODE, SCALE, WINDOW, Packed, open_bundle, unpack


def pack(trained: "Mapping[str, torch.Tensor]", base: "Mapping[str, torch.Tensor]") -> "dict[str, torch.Tensor]":
    """Return the tensors of a bundle.

    Args:
        trained: The fine-tuned weights by name.
        base: The base's weights under the same names; what it lacks is stored whole.

    Returns:
        For a matrix, int8 codes [out, in] and float16 scales [out, 1] of its change; for a vector, its change in
        float16; what is new, in float16; nothing for what is equal to the base.
    """
    packed: dict[str, torch.Tensor] = {}
    for name, weight in trained.items():
        old = base.get(name)
        if old is None:
            packed[name] = weight.to(torch.float16)
        elif torch.equal(weight.float(), old.float()):
            continue
        elif weight.dim() < 2:
            packed[name + CHANGE] = (weight.float() - old.float()).to(torch.float16)
        else:
            change = weight.float() - old.float()
            scale = (change.abs().amax(1, keepdim=True) / 127).clamp_min(2**-24).to(torch.float16)
            packed[name + CODE] = (change / scale.float()).round().clamp(-127, 127).to(torch.int8)
            packed[name + SCALE] = scale
    return packed


def write_bundle(model: Any, base: Path, path: Path) -> None:
    """Write a fine-tuned model of transformers as its difference from a base.

    Args:
        model: A `…ForSequenceClassification` that began as the base.
        base: The base's folder, with one model.safetensors.
        path: The safetensors file to write; its metadata hold the configuration and the base's digest.
    """
    from safetensors.torch import save

    words = model.get_input_embeddings().weight
    # Word embeddings are never trained; reduced precision may still have rounded them.
    frozen = {name for name, weight in model.named_parameters() if weight is words}
    trained = {name: value for name, value in model.state_dict().items() if name not in frozen}
    packed = pack(trained, base_weights(base, model))
    ordered = {name: packed[name].contiguous() for name in sorted(packed)}
    about = json.dumps({"config": config_of(model), "base": weights_digest(base)}, sort_keys=True)
    content = save(ordered, metadata={"bundle": about})  # one entry: the order of several is left to chance
    write_durably(path, lambda stream: stream.write(content))


def base_weights(folder: Path, model: Any) -> "dict[str, torch.Tensor]":
    """Return a base's tensors under the names that they have inside `model`."""
    from safetensors.torch import load_file

    known = model.state_dict()
    named = {
        f"{model.base_model_prefix}.{name}": tensor for name, tensor in load_file(folder / "model.safetensors").items()
    }
    return {name: tensor for name, tensor in named.items() if name in known}


def config_of(model: Any) -> dict[str, Any]:
    """Return a model's configuration without what depends on where it was saved or loaded."""
    config = model.config.to_diff_dict()
    return {
        name: value for name, value in config.items() if name not in ("_name_or_path", "dtype", "transformers_version")
    }


class PooledPairClassifier(BertPreTrainedModel):
    """BERT, then [u, v, |u - v|, u * v] of the two texts' mean vectors, a layer, and the classes (Conneau 2017).

    `config.pair_width` is the layer's width. The texts are told apart by their token types.
    """

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.num_labels = config.num_labels
        self.bert = BertModel(config, add_pooling_layer=False)
        width = int(config.pair_width)
        self.compare = torch.nn.Linear(4 * int(config.hidden_size), width)
        self.dropout = torch.nn.Dropout(config.hidden_dropout_prob)
        self.classifier = torch.nn.Linear(width, int(config.num_labels or 3))
        self.post_init()

    def forward(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor, token_type_ids: torch.Tensor, **_: Any
    ) -> SequenceClassifierOutput:
        """Return logits [pairs, labels]."""
        tokens = self.bert(input_ids, attention_mask, token_type_ids).last_hidden_state
        first = _mean(tokens, attention_mask * (token_type_ids == 0))
        second = _mean(tokens, attention_mask * (token_type_ids == 1))
        both = torch.cat([first, second, (first - second).abs(), first * second], dim=1)
        hidden = torch.nn.functional.gelu(self.compare(both))
        return SequenceClassifierOutput(logits=self.classifier(self.dropout(hidden)))


def _mean(tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Return the mean of the masked tokens, [pairs, dimensions]; zeros where there are none."""
    weights = mask.unsqueeze(2).to(tokens.dtype)
    return (tokens * weights).sum(1) / weights.sum(1).clamp(min=1)


def load_bundled(name: str, notify: Callable[[str], object] = lambda _: None) -> tuple[Any, Any, Any]:
    """Load a bundled model on the CPU in float32, ready for inference.

    Args:
        name: "nli": a cross-encoder whose `config.id2label` names entailment, neutral and contradiction.
        notify: Receives sentences that the user should read.

    Returns:
        The model, a `PreTrainedModel` of transformers, its tokenizer and its config.

    Raises:
        UsageError: There is no such bundled model.
        SondeError: The default model that it builds on is not available, or a file is not the one it should be.
    """
    return assemble_bundled(open_bundle(name, notify))


def assemble_bundled(packed: Packed) -> tuple[Any, Any, Any]:
    """Return model, tokenizer and config of a bundle."""
    with quiet():
        config = AutoConfig.for_model(**packed.config)
        pooled = PooledPairClassifier.__name__ in (config.architectures or ())
        model = PooledPairClassifier(config) if pooled else AutoModelForSequenceClassification.from_config(config)
        base = {name: tensor.numpy() for name, tensor in base_weights(packed.base, model).items()}
        weights = unpack(packed.arrays, base)
        model.load_state_dict({name: torch.from_numpy(weight) for name, weight in weights.items()})
        tokenizer = AutoTokenizer.from_pretrained(packed.base, local_files_only=True)
    tokenizer.model_max_length = min(tokenizer.model_max_length, WINDOW)
    return model.eval(), tokenizer, config
