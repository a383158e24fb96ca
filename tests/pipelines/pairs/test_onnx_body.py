"""Pair models of BERT's kind on a CPU: the encoder in ONNX Runtime gives the logits of the whole model in torch."""

from typing import Any

import numpy as np
import pytest
import torch
from thinned import thinned
from tiny_models import TEXTS
from tiny_pairs import KINDS, build_pairs

from sonde.indexer.errors import SondeError
from sonde.pipelines.pairs import onnx_body
from sonde.pipelines.pairs.bundled.loading import load_bundled
from sonde.pipelines.pairs.model import PairModel
from sonde.pipelines.pairs.onnx_body import with_onnx_body

OURS = {"bert", "roberta", "xlm_roberta"}
PAIRS = [(first, second) for first in TEXTS[:6] for second in TEXTS[3:9]]


def in_torch(model: Any, tokenizer: Any, monkeypatch: pytest.MonkeyPatch) -> np.ndarray:
    with monkeypatch.context() as patch:
        patch.setattr("sonde.pipelines.pairs.model.with_onnx_body", lambda _: None)
        return PairModel(model, tokenizer).logits(PAIRS)


@pytest.mark.parametrize("kind", thinned([*KINDS], 2))
def test_kinds_and_logits(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model, tokenizer = build_pairs(kind)
    assert (with_onnx_body(model) is not None) == (kind in OURS)
    np.testing.assert_allclose(
        PairModel(model, tokenizer).logits(PAIRS), in_torch(model, tokenizer, monkeypatch), atol=1e-5
    )


@pytest.mark.long
def test_the_bundled_model(monkeypatch: pytest.MonkeyPatch) -> None:
    model, tokenizer, _ = load_bundled("nli")
    assert with_onnx_body(model) is not None
    np.testing.assert_allclose(
        PairModel(model, tokenizer).logits(PAIRS), in_torch(model, tokenizer, monkeypatch), atol=1e-4
    )


def test_half_precision_and_padding_on_the_left_stay_in_torch() -> None:
    model, tokenizer = build_pairs("bert")
    assert with_onnx_body(model.to(torch.bfloat16)) is None  # type: ignore[arg-type]
    model, tokenizer = build_pairs("bert")
    expected = PairModel(model, tokenizer).logits(PAIRS)
    tokenizer.padding_side = "left"
    left: Any = PairModel(model, tokenizer)
    assert left._replicas[0].model.__class__ is model.__class__
    assert not any(isinstance(each, onnx_body.BertSession) for each in vars(left._replicas[0].model.bert).values())
    assert expected.shape == left.logits(PAIRS).shape


def test_a_model_that_gives_other_logits_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_body, "agree", lambda *_: False)
    assert with_onnx_body(build_pairs("bert")[0]) is None
    monkeypatch.undo()
    monkeypatch.setattr(onnx_body.BertSession, "run", _refused)
    assert with_onnx_body(build_pairs("bert")[0]) is None


def _refused(*_: object) -> None:
    raise SondeError("the weights do not fit")
