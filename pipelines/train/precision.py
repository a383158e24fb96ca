"""Training in bfloat16 with float32 master weights: on a CPU with AMX several times as fast as float32."""

from collections.abc import Callable
from typing import Any

import torch


def training_dtype(wanted: str, device: str) -> str:
    """Return "bfloat16" or "float32": the wanted one or, for "auto", what the device multiplies fast."""
    if wanted != "auto":
        return wanted
    if device.startswith("cuda"):
        return "bfloat16" if torch.cuda.is_bf16_supported() else "float32"
    fast = getattr(torch.cpu, "_is_amx_tile_supported", lambda: False)()  # there is no public way to ask
    return "bfloat16" if device == "cpu" and fast else "float32"


class MasterWeights:
    """AdamW over float32 copies of a model's trainable weights, written back in the model's precision.

    Attributes:
        weights: The float32 weights by name.
        optimizer: The AdamW over them.
    """

    def __init__(self, model: Any, dtype: str, decay: float) -> None:
        """Copy the parameters and bring the model, which is in float32, to the precision to train in."""
        self._model = model
        named = dict(model.named_parameters())
        self._frozen = {name: weight.detach().clone() for name, weight in named.items() if not weight.requires_grad}
        self._own: dict[str, Any] = {name: weight for name, weight in named.items() if weight.requires_grad}
        self.weights = {name: weight.detach().float().clone() for name, weight in self._own.items()}
        model.to(getattr(torch, dtype))
        matrices = [weight for weight in self.weights.values() if weight.dim() > 1]
        vectors = [weight for weight in self.weights.values() if weight.dim() <= 1]
        groups = [{"params": matrices, "weight_decay": decay}, {"params": vectors, "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, lr=0.0, betas=(0.9, 0.98), eps=1e-6, fused=True)

    def step(self, rate: float, clip: float) -> None:
        """Apply the gradients that lie in the model, and clear them."""
        for name, weight in self._own.items():
            self.weights[name].grad = None if weight.grad is None else weight.grad.float()
            weight.grad = None
        torch.nn.utils.clip_grad_norm_(list(self.weights.values()), clip)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.step()
        self.write()

    def write(self) -> None:
        """Copy the master weights into the model."""
        with torch.no_grad():
            for name, weight in self._own.items():
                weight.copy_(self.weights[name])

    def finish(self) -> None:
        """Bring the model back to float32, with nothing rounded that was trained or held still."""
        self._model.float()
        self.write()
        named = dict(self._model.named_parameters())
        with torch.no_grad():
            for name, weight in self._frozen.items():
                named[name].copy_(weight)

    def state(self) -> "dict[str, torch.Tensor]":
        """Return everything that a resumed run needs, as named tensors."""
        found = {f"weight.{name}": weight for name, weight in self.weights.items()}
        for name, weight in self.weights.items():
            for key, value in self.optimizer.state.get(weight, {}).items():
                found[f"{key}.{name}"] = value if isinstance(value, torch.Tensor) else torch.tensor(value)
        return found

    def restore(self, state: "dict[str, torch.Tensor]") -> None:
        """Take what `state` returned."""
        with torch.no_grad():
            for name, weight in self.weights.items():
                weight.copy_(state[f"weight.{name}"])
                keys = ("step", "exp_avg", "exp_avg_sq")
                self.optimizer.state[weight] = {key: state[f"{key}.{name}"].clone() for key in keys}
        self.write()


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
