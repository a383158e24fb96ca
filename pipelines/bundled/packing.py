"""A fine-tuned model as the difference from its base: 8 bits a weight, a scale for each output, nothing twice.

A difference is small beside the weight itself, so its rounding error is too: far smaller than that of 8-bit weights.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...indexer.files import write_durably

if TYPE_CHECKING:
    import torch

CODE, SCALE, CHANGE = ".code", ".scale", ".change"


def pack(trained: "Mapping[str, torch.Tensor]", base: "Mapping[str, torch.Tensor]") -> "dict[str, torch.Tensor]":
    """Return the tensors of a bundle.

    Args:
        trained: The fine-tuned weights by name.
        base: The base's weights under the same names; what it lacks is stored whole.

    Returns:
        For a matrix, int8 codes [out, in] and float16 scales [out, 1] of its change; for a vector, its change in
        float16; what is new, in float16; nothing for what is equal to the base.
    """
    import torch

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


def unpack(packed: "Mapping[str, torch.Tensor]", base: "Mapping[str, torch.Tensor]") -> "dict[str, torch.Tensor]":
    """Return the float32 weights that `pack` was given, as near as its codes allow."""
    weights = {name: weight.float() for name, weight in base.items()}
    for name, part in packed.items():
        if name.endswith(CODE):
            name = name.removesuffix(CODE)
            weights[name] = base[name].float() + part.float() * packed[name + SCALE].float()
        elif name.endswith(CHANGE):
            name = name.removesuffix(CHANGE)
            weights[name] = base[name].float() + part.float()
        elif not name.endswith(SCALE):
            weights[name] = part.float()
    return weights


def write_bundle(model: Any, base: Path, path: Path) -> None:
    """Write a fine-tuned model of transformers as its difference from a base.

    Args:
        model: A `…ForSequenceClassification` that began as the base.
        base: The base's folder, with one model.safetensors.
        path: The safetensors file to write; its metadata hold the configuration and the base's digest.
    """
    from safetensors.torch import save

    from ...indexer.encoder.weights import weights_digest

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
