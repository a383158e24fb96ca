"""LoRA: a low-rank change of a transformer's matrices, merged into them at the end (Hu et al., ICLR 2022)."""

from typing import Any


def add(model: Any, rank: int, seed: int) -> None:
    """Put adapters of some rank beside every linear layer of a bi-encoder's transformer, and train nothing else."""
    import torch
    from peft import LoraConfig, inject_adapter_in_model

    torch.manual_seed(seed)
    config = LoraConfig(r=rank, lora_alpha=2 * rank, lora_dropout=0.0, target_modules="all-linear", bias="none")
    for weight in model.parameters():
        weight.requires_grad_(False)
    inject_adapter_in_model(config, model.transformers_model)


def merge(model: Any) -> None:
    """Add the adapters' products to the matrices that they belong to, and take the adapters away."""
    from peft.tuners.tuners_utils import BaseTunerLayer

    for name, module in list(model.named_modules()):
        if isinstance(module, BaseTunerLayer):
            module.merge()
            parent, _, child = name.rpartition(".")
            setattr(model.get_submodule(parent), child, module.get_base_layer())
