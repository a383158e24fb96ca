"""The forward pass of BERT-like models in torch over one stream of tokens, without padding between the texts."""

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .plain import BertShape, PlainModel, bert_weights
from .tokenizer import Tokens

if TYPE_CHECKING:
    import torch

Attention = Callable[["torch.Tensor", "torch.Tensor", "torch.Tensor", "torch.Tensor", int], "torch.Tensor"]
"""From queries, keys and values [tokens, heads, numbers], where texts start [texts + 1] and the longest text."""

FEWEST_TOKENS, FEWEST_TEXTS, SHORTEST = 64, 8, 32
WIDEST_HEAD, HEAD_STEP = 256, 8
"""Size of a head for the flash kernels: the maximum, and the number that it must be a multiple of."""
OLDEST_CARD = (8, 0)
"""Compute capability of the oldest cards that the flash kernels run on (Ampere)."""


@dataclass(frozen=True, slots=True)
class Room:
    """The size of a stream, in powers of two: few sizes occur, so each can be captured as a CUDA graph.

    Attributes:
        tokens: Tokens of all texts together.
        texts: Number of texts.
        longest: Tokens of the longest text.
    """

    tokens: int
    texts: int
    longest: int

    @classmethod
    def of(cls, batch: Sequence[Tokens]) -> Self:
        """Return the smallest room that holds a batch."""
        lengths = [len(text.ids) for text in batch]
        total, longest = sum(lengths), max(lengths)
        return cls(_power(total, FEWEST_TOKENS), _power(len(batch), FEWEST_TEXTS), _power(longest, SHORTEST))

    def pack(self, batch: Sequence[Tokens]) -> np.ndarray:
        """Return int32 [2 * tokens + texts + 1], as `parts` divides it; the rest belongs to no text."""
        stream = np.zeros(2 * self.tokens + self.texts + 1, np.int32)
        ids, places, bounds = self.parts(stream)
        ends = np.cumsum([len(text.ids) for text in batch], dtype=np.int32)
        used = int(ends[-1])
        bounds[1 : len(batch) + 1], bounds[len(batch) + 1 :] = ends, used
        starts = bounds[: len(batch)]
        ids[:used] = np.concatenate([text.ids for text in batch])
        places[:used] = np.arange(used, dtype=np.int32) - np.repeat(starts, ends - starts)
        return stream

    def parts(self, stream: Any) -> tuple[Any, Any, Any]:
        """Return views of an array or tensor: token ids, their places in their texts, and where each text starts."""
        return stream[: self.tokens], stream[self.tokens : 2 * self.tokens], stream[2 * self.tokens :]


def _power(number: int, least: int) -> int:
    return max(least, 1 << (number - 1).bit_length())


def flash(
    query: "torch.Tensor", key: "torch.Tensor", value: "torch.Tensor", bounds: "torch.Tensor", longest: int
) -> "torch.Tensor":
    """Attention inside each text by torch's flash kernels (Dao et al., 2022); what belongs to no text is undefined."""
    from torch.nn.attention.varlen import varlen_attn

    return varlen_attn(query, key, value, bounds, bounds, longest, longest)  # type: ignore[return-value]


def one_by_one(
    query: "torch.Tensor", key: "torch.Tensor", value: "torch.Tensor", bounds: "torch.Tensor", longest: int
) -> "torch.Tensor":
    """The same on any device and in any precision, one text after the other."""
    import torch

    found = torch.zeros_like(query)
    for start, end in pairwise(bounds.tolist()):
        if start < end:
            q, k, v = (each[start:end].transpose(0, 1)[None] for each in (query, key, value))
            found[start:end] = torch.nn.functional.scaled_dot_product_attention(q, k, v)[0].transpose(0, 1)
    return found


def runs_flash(shape: BertShape, device: str, precision: str) -> bool:
    """Whether a model's attention can run in torch's flash kernels on a device."""
    if not device.startswith("cuda") or precision not in ("float16", "bfloat16"):
        return False
    import torch

    size = shape.hidden // shape.heads
    fits = size <= WIDEST_HEAD and size % HEAD_STEP == 0
    known = importlib.util.find_spec("torch.nn.attention.varlen") is not None and torch.version.hip is None
    return fits and known and torch.cuda.get_device_capability(device) >= OLDEST_CARD


class PackedBert:
    """A plain model on one device in one precision."""

    def __init__(self, model: PlainModel, device: str, precision: str, truncate: int | None, normalize: bool) -> None:
        """Load the weights."""
        import torch

        self._model = model
        self._truncate = truncate
        self._normalize = normalize
        kind = getattr(torch, precision)
        self._attention: Attention = flash if runs_flash(model.shape, device, precision) else one_by_one
        with bert_weights(model.folder, model.shape) as weights:
            arrays = {name: torch.from_numpy(array) for name, array in weights.arrays()}
        if "types.rows" in arrays:  # a single text's tokens are all of the first type
            arrays["positions"] = arrays["positions"] + arrays.pop("types.rows")[0]
        self._arrays = {name: _stored(name, array).to(device, kind) for name, array in arrays.items()}

    def tokens(self, stream: "torch.Tensor", room: Room) -> "torch.Tensor":
        """Return the vectors of all tokens [tokens, hidden]; rows that belong to no text are undefined."""
        import torch

        arrays, functional = self._arrays, torch.nn.functional
        ids, places, bounds = room.parts(stream)
        hidden = functional.embedding(ids, arrays["words"]) + functional.embedding(places, arrays["positions"])
        hidden = self._norm(hidden, "norm")
        for number in range(self._model.shape.layers):
            seen = self._seen(hidden, f"{number}.attention", bounds, room.longest)
            hidden = self._norm(hidden + self._linear(seen, f"{number}.mixed"), f"{number}.first_norm")
            wide = functional.gelu(self._linear(hidden, f"{number}.wide"))
            hidden = self._norm(hidden + self._linear(wide, f"{number}.narrow"), f"{number}.second_norm")
        return hidden

    def vectors(self, stream: "torch.Tensor", room: Room) -> "torch.Tensor":
        """Return the texts' vectors, float32 [texts, dimension]; those beyond the batch's own are undefined."""
        return self.pooled(self.tokens(stream, room), stream, room)

    def pooled(self, hidden: "torch.Tensor", stream: "torch.Tensor", room: Room) -> "torch.Tensor":
        """Return the texts' vectors, as `vectors` does, from those of their tokens."""
        import torch

        bounds = room.parts(stream)[2]
        starts = bounds[:-1]
        if self._model.pooling == "cls":
            found = hidden[starts.clamp(max=room.tokens - 1)].float()
        else:
            sums = torch.segment_reduce(hidden.float(), "sum", offsets=bounds, axis=0, unsafe=True, initial=0.0)
            found = sums / (bounds[1:] - starts).clamp(min=1)[:, None]
        found = (_of_length_one(found) if self._model.normalized else found)[:, : self._truncate]
        return _of_length_one(found) if self._normalize else found

    def _seen(self, hidden: "torch.Tensor", name: str, bounds: "torch.Tensor", longest: int) -> "torch.Tensor":
        shape = self._model.shape
        three = self._linear(hidden, name).view(len(hidden), 3, shape.heads, shape.hidden // shape.heads)
        return self._attention(three[:, 0], three[:, 1], three[:, 2], bounds, longest).flatten(1)

    def _linear(self, hidden: "torch.Tensor", name: str) -> "torch.Tensor":
        import torch

        return torch.nn.functional.linear(hidden, self._arrays[name], self._arrays[f"{name}.bias"])

    def _norm(self, hidden: "torch.Tensor", name: str) -> "torch.Tensor":
        import torch

        scale, shift = self._arrays[f"{name}.scale"], self._arrays[f"{name}.shift"]
        return torch.nn.functional.layer_norm(hidden, scale.shape, scale, shift, self._model.shape.epsilon)


def _stored(name: str, array: "torch.Tensor") -> "torch.Tensor":
    """Return the matrix of a linear layer with a row for each output; anything else as it is."""
    linear = array.dim() > 1 and name not in ("words", "positions")
    return array.T.contiguous() if linear else array


def _of_length_one(vectors: "torch.Tensor") -> "torch.Tensor":
    import torch

    return torch.nn.functional.normalize(vectors, dim=1)
