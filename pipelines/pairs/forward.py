"""A pair model on one device: a batch in, logits out."""

import inspect
from typing import TYPE_CHECKING, Any

import numpy as np

from ...indexer.errors import SondeError
from .tokens import PairTokenizer, TokenPairs

if TYPE_CHECKING:
    import torch


class PairReplica:
    """Runs batches on its device; logits stay there until they are fetched, so that a GPU never waits."""

    def __init__(self, model: Any, tokenizer: PairTokenizer, device: str) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.device = device
        # Decoders would build a cache that nothing reads.
        cached = "use_cache" in inspect.signature(model.forward).parameters
        self._options = {"use_cache": False} if cached else {}

    def run(self, pairs: TokenPairs, batch: np.ndarray) -> "torch.Tensor":
        """Return float32 [pairs, labels] on the device, without waiting for it.

        Raises:
            SondeError: One pair alone is too much for the device's memory.
        """
        import torch

        try:
            with torch.inference_mode():
                features = self.tokenizer.collate(pairs, batch)
                moved = {name: self._moved(value) for name, value in features.items()}
                return self.model(**moved, **self._options).logits.float()
        except torch.OutOfMemoryError as error:
            if len(batch) == 1:
                raise SondeError(f"{self.device} has too little memory for one pair: use --device cpu") from error
        torch.cuda.empty_cache()
        half = len(batch) // 2
        return torch.cat([self.run(pairs, batch[:half]), self.run(pairs, batch[half:])])

    def _moved(self, value: "torch.Tensor") -> "torch.Tensor":
        if self.device == "cpu":
            return value
        source = value.pin_memory() if self.device.startswith("cuda") else value
        return source.to(self.device, non_blocking=True)
