"""Two ways in which BERT-like pair models classify faster, with the same logits but for rounding.

On a CPU, their encoder runs in ONNX Runtime, like that of a bi-encoder. The head remains a small torch module over the
first token or over all tokens.

Elsewhere, BERT and its kin classify by their first token, so their last layer need not be computed for the others. The
last layer still reads every token (keys and values); its queries, its output and its feed-forward part, five sixths of
the layer, are computed for the first token alone.
"""

import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from ...indexer.encoder.onnx_replica import BertSession
from ...indexer.encoder.plain import BertShape, BertWeights
from ...indexer.errors import SondeError

if TYPE_CHECKING:
    import torch

FIRST = ("BertForSequenceClassification", "RobertaForSequenceClassification", "XLMRobertaForSequenceClassification")
"""Classes whose head looks at the first token only,"""
ALL = ("PooledPairClassifier",)
"""and those whose head looks at all."""

KINDS = ("Bert", "Roberta", "XLMRoberta", "Camembert", "Electra")
"""Families whose `…ForSequenceClassification` looks at the first token only, and whose layers are built like BERT's."""
ATTENTION = ("sdpa", "eager")
CLOSE = 1e-3


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


def first_token_only(model: Any) -> Any:
    """Return a model over the same weights that skips what its classifier does not look at, or the model itself.

    It is taken only if it gives the same logits for a probe, so that another version of transformers costs speed and
    nothing else.
    """
    if not _fits(model):
        return model
    shared = {id(each): each for each in (*model.parameters(), *model.buffers())}
    lean = copy.deepcopy(model, shared)
    layers = getattr(lean, lean.base_model_prefix).encoder.layer
    layers[len(layers) - 1] = _first_token_layer(layers[len(layers) - 1])
    return lean if agree(model, lean) else model


def _fits(model: Any) -> bool:
    kind = type(model).__name__.removesuffix("ForSequenceClassification")
    attention = getattr(model.config, "_attn_implementation", None)
    return kind in KINDS and attention in ATTENTION and not getattr(model.config, "is_decoder", False)


def _first_token_layer(layer: Any) -> Any:
    """Return a module that does what BERT's layer does, for the first token."""
    import torch

    class FirstTokenLayer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = layer

        def forward(
            self, hidden: "torch.Tensor", attention_mask: "torch.Tensor | None" = None, *_: Any, **__: Any
        ) -> "torch.Tensor":
            attention, first = self.layer.attention, hidden[:, :1]
            own = getattr(attention, "self")  # noqa: B009 - "self" is what transformers calls it
            heads = (own.num_attention_heads, own.attention_head_size)
            query, key, value = (
                linear(given).unflatten(-1, heads).transpose(1, 2)
                for linear, given in ((own.query, first), (own.key, hidden), (own.value, hidden))
            )
            mask = attention_mask if attention_mask is None else attention_mask[:, :, :1]
            read = torch.nn.functional.scaled_dot_product_attention(query, key, value, mask, scale=own.scaling)
            joined = attention.output(read.transpose(1, 2).flatten(2), first)
            return self.layer.feed_forward_chunk(joined)

    return FirstTokenLayer()


def agree(model: Any, lean: Any) -> bool:
    """Whether two models give the same logits for a probe, but for rounding."""
    import torch

    size = min(int(model.config.vocab_size), 100)
    ids = (torch.arange(12, device=model.device).reshape(2, 6) + size // 2) % size  # none of them is the padding
    mask = torch.tensor([[1] * 6, [1] * 4 + [0] * 2], device=model.device)
    try:
        with torch.inference_mode():
            found, wanted = (each.eval()(input_ids=ids, attention_mask=mask).logits.float() for each in (lean, model))
    except (AttributeError, RuntimeError, TypeError):  # layers that are built otherwise than they were
        return False
    scale = max(1.0, float(wanted.abs().max()))
    return (
        found.shape == wanted.shape
        and float((found - wanted).abs().max()) < (CLOSE if model.dtype == torch.float32 else 50 * CLOSE) * scale
    )
