"""BERT-like pair models on a CPU: their encoder runs in ONNX Runtime, like that of a bi-encoder.

The head remains a small torch module over the first token or over all tokens.
"""

import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from ...indexer.encoder.bert import BertShape, BertWeights
from ...indexer.encoder.onnx_replica import BertSession
from ...indexer.errors import SondeError
from .first_token import agree

if TYPE_CHECKING:
    import torch

FIRST = ("BertForSequenceClassification", "RobertaForSequenceClassification", "XLMRobertaForSequenceClassification")
"""Classes whose head looks at the first token only,"""
ALL = ("PooledPairClassifier",)
"""and those whose head looks at all."""


def with_onnx_body(model: Any) -> Any:
    """Return a model with the same head whose encoder runs in ONNX Runtime; None where that cannot be.

    It is taken only if it gives the same logits for a probe.

    Args:
        model: A `…ForSequenceClassification` on the CPU.
    """
    import torch

    kind = type(model).__name__
    if kind not in (*FIRST, *ALL) or model.dtype != torch.float32:
        return None
    body = getattr(model, model.base_model_prefix)
    shape = _shape(model)
    if shape is None:
        return None
    session = BertSession(shape, lambda: _weights(body, shape), 1, first_only=kind in FIRST)
    shared = {id(each): each for each in (*model.parameters(), *model.buffers())} | {id(body): body}
    fast = copy.deepcopy(model, shared)
    setattr(fast, model.base_model_prefix, _body(body, session))
    try:
        return fast if agree(model, fast) else None
    except SondeError:  # the weights do not fit the configuration, which torch may allow
        return None


def _shape(model: Any) -> BertShape | None:
    try:
        return BertShape.of(model.config.to_dict())
    except (LookupError, TypeError, ValueError):
        return None


@contextmanager
def _weights(body: Any, shape: BertShape) -> Iterator[BertWeights]:
    yield BertWeights(Arrays({name: value.numpy() for name, value in body.state_dict().items()}), shape)


class Arrays:
    """Arrays in memory, as an open file of weights."""

    def __init__(self, arrays: Mapping[str, np.ndarray]) -> None:
        self._arrays = arrays

    def keys(self) -> list[str]:
        """Return the names."""
        return list(self._arrays)

    def get_tensor(self, name: str) -> np.ndarray:
        """Return an array."""
        return self._arrays[name]


def _body(body: Any, session: BertSession) -> Any:
    """Return a module that does what `body` does, but for padding, whose vectors are undefined."""
    import torch
    from transformers.modeling_outputs import BaseModelOutputWithPooling

    class OnnxBody(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.pooler = getattr(body, "pooler", None)

        def forward(
            self,
            input_ids: "torch.Tensor",
            attention_mask: "torch.Tensor",
            token_type_ids: "torch.Tensor | None" = None,
            **_: Any,
        ) -> BaseModelOutputWithPooling:
            features = {"ids": input_ids, "lengths": attention_mask.sum(1)}
            if token_type_ids is not None:
                features["types"] = token_type_ids
            hidden = torch.from_numpy(session.run({name: value.int().numpy() for name, value in features.items()}))
            pooled = self.pooler(hidden) if self.pooler is not None else None
            return BaseModelOutputWithPooling(last_hidden_state=hidden, pooler_output=pooled)  # type: ignore[arg-type]

    return OnnxBody()
