"""A model on one device: features of a batch in, vectors out."""

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import SondeError
from .tokens import TextTokenizer, Tokens

if TYPE_CHECKING:
    import torch


class Replica:
    """Runs batches on its device; vectors stay there until they are fetched, so that a GPU never waits."""

    def __init__(
        self, model: Any, tokenizer: TextTokenizer, device: str, truncate: int | None, normalize: bool
    ) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.device = device
        self.truncate = truncate
        self.normalize = normalize

    def run(self, batch: list[Tokens]) -> "torch.Tensor":
        """Return float32 [texts, dimension] on the device, without waiting for it.

        Raises:
            SondeError: One text alone is too much for the device's memory.
        """
        import torch

        try:
            with torch.inference_mode():
                return self._forward(self.tokenizer.collate(batch))
        except torch.OutOfMemoryError as error:
            if len(batch) == 1:
                raise SondeError(f"{self.device} has too little memory for one text: use --device cpu") from error
        torch.cuda.empty_cache()
        half = len(batch) // 2
        return torch.cat([self.run(batch[:half]), self.run(batch[half:])])

    def _forward(self, features: dict[str, Any]) -> "torch.Tensor":
        import torch

        vectors = self.model({name: self.moved(value) for name, value in features.items()})["sentence_embedding"]
        vectors = vectors[:, : self.truncate].float()
        return torch.nn.functional.normalize(vectors, dim=1) if self.normalize else vectors

    def moved(self, value: Any) -> Any:
        """Return a tensor on the device, without waiting for it; anything else as it is."""
        import torch

        if self.device == "cpu" or not isinstance(value, torch.Tensor):
            return value
        source = value.pin_memory() if self.device.startswith("cuda") else value
        return source.to(self.device, non_blocking=True)


def fetch(results: "list[tuple[np.ndarray, torch.Tensor]]", into: np.ndarray) -> None:
    """Copy the vectors of all batches of one device to their places, in one transfer."""
    import torch

    if results:
        places = np.concatenate([places for places, _ in results])
        into[places] = torch.cat([vectors for _, vectors in results]).cpu().numpy()
