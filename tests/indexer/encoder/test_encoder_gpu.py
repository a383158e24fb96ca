"""The encoder on a GPU: half precision near float32, and several replicas on one card."""

from typing import Any

import numpy as np
import pytest
import torch
from tiny_models import TEXTS, save_transformer

from sonde.indexer.encoder import load_encoder, load_encoder_for

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")]


def test_half_precision_is_near_float32():
    half = load_encoder(device="cuda")
    assert half.spec.dtype == "float16"
    exact = load_encoder(device="cpu")
    texts = [*TEXTS, *(f"Sentence number {number}." * (number % 7 + 1) for number in range(200))]
    assert (half.encode_texts(texts) * exact.encode_texts(texts)).sum(axis=1).min() > 0.999


def test_float32_equals_the_cpu(tmp_path):
    folder = str(save_transformer(tmp_path))
    ours, exact = load_encoder(folder, device="cuda", dtype="float32"), load_encoder(folder, device="cpu")
    np.testing.assert_allclose(ours.encode_texts(TEXTS), exact.encode_texts(TEXTS), atol=1e-4)


def test_two_replicas_on_one_card_and_back_on_the_cpu():
    one, two = load_encoder(device="cuda"), load_encoder(device="cuda:0,cuda:0")
    two.batch_tokens = 500
    texts = TEXTS * 20
    np.testing.assert_allclose(one.encode_texts(texts), two.encode_texts(texts), atol=2e-3)
    again = load_encoder_for(one.spec, device="cpu")
    assert (again.encode_texts(texts) * one.encode_texts(texts)).sum(axis=1).min() > 0.999


def test_a_batch_that_is_too_large_is_halved(monkeypatch):
    encoder = load_encoder(device="cuda")
    replica: Any = encoder.replicas[0]
    forward, refused = replica._forward, []

    def small_memory(features):
        if len(features["input_ids"]) > 2:
            refused.append(1)
            raise torch.OutOfMemoryError("too large")
        return forward(features)

    monkeypatch.setattr(replica, "_forward", small_memory)
    found = encoder.encode_texts(TEXTS)
    monkeypatch.undo()
    assert refused
    np.testing.assert_allclose(found, encoder.encode_texts(TEXTS), atol=2e-3)
