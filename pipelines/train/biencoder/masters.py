"""AdamW over float32 copies of weights that the model holds in bfloat16, as an optimizer that a trainer can drive."""

from collections.abc import Callable
from typing import Any

import torch


class MasterAdamW(torch.optim.AdamW):
    """Steps float32 copies and writes them back: a step too small for bfloat16 is not lost.

    Attributes:
        masters: The float32 weight of each of the model's trainable parameters, by name.
    """

    def __init__(self, model: torch.nn.Module, rate: float, decay: float) -> None:
        """Copy the model's trainable parameters; weight decay is for matrices only."""
        self._own = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
        self.masters = {name: weight.detach().float().clone() for name, weight in self._own.items()}
        matrices = [weight for weight in self.masters.values() if weight.dim() > 1]
        vectors = [weight for weight in self.masters.values() if weight.dim() <= 1]
        groups = [{"params": matrices, "weight_decay": decay}, {"params": vectors, "weight_decay": 0.0}]
        super().__init__([group for group in groups if group["params"]], lr=rate)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:  # type: ignore[override]
        """Apply the gradients that lie in the model."""
        for name, weight in self._own.items():
            self.masters[name].grad = None if weight.grad is None else weight.grad.float()
        found = super().step(closure)
        self.write()
        return found

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear the model's gradients and those of the copies."""
        super().zero_grad(set_to_none)
        for weight in self._own.values():
            weight.grad = None

    def write(self) -> None:
        """Copy the master weights into the model, in whatever precision it is."""
        with torch.no_grad():
            for name, weight in self._own.items():
                weight.copy_(self.masters[name])

    def restore(self, masters: dict[str, torch.Tensor]) -> None:
        """Take master weights that were saved."""
        with torch.no_grad():
            for name, weight in self.masters.items():
                weight.copy_(masters[name])
        self.write()
