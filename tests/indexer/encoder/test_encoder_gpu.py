"""The encoder on a GPU: half precision near float32, and several replicas on one card."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch
from tiny_models import TEXTS, save_transformer

from sonde.indexer.encoder import load_encoder, load_encoder_for
from sonde.indexer.encoder.packed_bert import flash
from sonde.indexer.encoder.packed_replica import MOST_GRAPHS, PackedReplica

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


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_streams_without_padding_are_captured_and_near_float32(dtype):
    encoder, exact = load_encoder(device="cuda", dtype=dtype), load_encoder(device="cpu")
    replica = encoder.replicas[0]
    assert isinstance(replica, PackedReplica)
    assert replica._bert._attention is flash
    texts = [*TEXTS, "", "word " * 600, *(f"Sentence number {number}. " * (number % 30 + 1) for number in range(3_000))]
    expected = exact.encode_texts(texts[:300])
    for _ in range(3):
        found = encoder.encode_texts(texts)
        assert (found[:300] * expected).sum(axis=1).min() >= 0.9995
    assert 0 < len(replica._captured) <= MOST_GRAPHS
    assert replica._graphs is not None


def test_tokens_have_the_library_s_vectors():
    ours, library = (load_encoder(device="cuda", engine=engine) for engine in ("auto", "torch"))
    for found, expected in zip(*(each.token_vectors(each.tokenize(TEXTS)) for each in (ours, library)), strict=True):
        assert found.places.tolist() == expected.places.tolist()
        assert (found.vectors * expected.vectors).sum(axis=1).min() >= 0.999


def test_threads_share_a_replica():
    encoder = load_encoder(device="cuda")
    texts = [f"Question {number}?" for number in range(64)]
    expected = encoder.encode_texts(texts)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda text: encoder.encode_texts([text])[0], texts * 4))
    assert (np.array(found) * np.tile(expected, (4, 1))).sum(axis=1).min() >= 0.999


def test_a_batch_that_is_too_large_is_split(monkeypatch):
    encoder = load_encoder(device="cuda", engine="torch")
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
