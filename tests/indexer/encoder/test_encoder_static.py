"""The static tier: the recipe against a computation by hand, the same bytes twice, and the cache."""

import hashlib

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from tiny_models import TEXTS, save_static, save_transformer

from sonde.indexer.encoder import ModelSpec, load_encoder, load_encoder_for
from sonde.indexer.encoder.static import principal_components, zipf_weights
from sonde.indexer.errors import SondeError, UsageError


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return save_transformer(tmp_path_factory.mktemp("tiny"), normalize=True)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SONDE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_the_recipe_by_hand(tiny, cache):
    encoder = load_encoder(f"static:{tiny}")
    base = SentenceTransformer(str(tiny), device="cpu")
    vocabulary = base.tokenizer.get_vocab()
    ids = sorted(number for token, number in vocabulary.items() if not token.startswith("["))
    hidden = []
    with torch.inference_mode():
        for number in ids:
            features = {"input_ids": torch.tensor([[2, number, 3]]), "attention_mask": torch.ones(1, 3)}
            hidden.append(base[0](features)["token_embeddings"][0].mean(0).numpy())
    centred = np.array(hidden, dtype=np.float64) - np.mean(hidden, axis=0)
    _, _, right = np.linalg.svd(centred, full_matrices=False)
    scores = np.abs(centred @ right.T)
    ranks = np.arange(len(ids)) + 2
    frequency = (1 / ranks) / (1 / ranks).sum()
    expected = scores * (1e-4 / (1e-4 + frequency))[:, None]
    found = encoder.library()[0].embedding.weight.detach().numpy()
    np.testing.assert_allclose(np.abs(found[ids]), expected, rtol=1e-3, atol=1e-5)
    assert not found[[0, 1, 2, 3, 4]].any()


def test_vectors_are_the_mean_of_the_tokens(tiny, cache):
    encoder = load_encoder(f"static:{tiny}")
    table = encoder.library()[0].embedding.weight.detach().numpy()
    tokens = encoder.tokenize(["The battery died.", "refund"])
    for text, vector in zip(tokens, encoder.encode(tokens), strict=True):
        mean = table[text.ids].mean(axis=0)
        np.testing.assert_allclose(vector, mean / np.linalg.norm(mean), atol=1e-6)
    assert (encoder.spec.kind, encoder.spec.max_tokens, encoder.spec.dimension) == ("static", 512, 32)


def test_the_same_bytes_twice_and_once_from_the_cache(tiny, cache, tmp_path, monkeypatch):
    said = []
    spec = load_encoder(f"static:{tiny}", notify=said.append).spec
    assert said == [f"distilling the static model from {tiny.resolve()} (only once; about half a minute on two cores)"]
    assert load_encoder(f"static:{tiny}", notify=said.append).spec == spec
    assert len(said) == 1
    monkeypatch.setenv("SONDE_CACHE", str(tmp_path / "other"))
    assert load_encoder_for(ModelSpec.from_dict(spec.to_dict())).spec.fingerprint == spec.fingerprint
    digests = {hashlib.sha256(file.read_bytes()).hexdigest() for file in tmp_path.glob("*/static/*/model.safetensors")}
    assert len(digests) == 1


def test_a_kill_leaves_no_half_model(tiny, cache, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt("killed")

    with monkeypatch.context() as patch:
        patch.setattr("sonde.indexer.encoder.loading.distil", stop)
        with pytest.raises(KeyboardInterrupt, match="killed"):
            load_encoder(f"static:{tiny}")
    assert list((cache / "static").iterdir()) == []
    assert load_encoder(f"static:{tiny}").encode_texts(TEXTS[:1]).shape == (1, 32)


def test_a_cache_that_cannot_be_written(tiny, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("SONDE_CACHE", str(tmp_path / "file"))
    with pytest.raises(SondeError, match=r"cannot be written .*: set SONDE_CACHE"):
        load_encoder(f"static:{tiny}")
    assert load_encoder(str(tiny)).encode_texts(["a"]).shape == (1, 32)


def test_a_static_model_is_no_base(tmp_path, cache):
    with pytest.raises(UsageError, match="cannot be distilled: the static tier needs a transformer"):
        load_encoder(f"static:{save_static(tmp_path)}")


def test_principal_components_keep_distances_and_fix_signs():
    points = np.random.default_rng(3).normal(size=(50, 6))
    scores = principal_components(points, 6)
    distances = [np.linalg.norm(each[:, None] - each[None], axis=2) for each in (points, scores)]
    np.testing.assert_allclose(distances[0], distances[1])
    assert (np.diff(scores.var(axis=0)) <= 0).all()
    assert (scores.max(axis=0) >= -scores.min(axis=0)).all()


def test_zipf_weights_rise_with_rarity():
    weights = zipf_weights(3)
    inverse = np.array([1 / 2, 1 / 3, 1 / 4])
    np.testing.assert_allclose(weights, 1e-4 / (1e-4 + inverse / inverse.sum()))
    assert (np.diff(weights) > 0).all()
