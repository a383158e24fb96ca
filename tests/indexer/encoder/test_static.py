"""Static models: the recipe by hand, the vectors of the library's StaticEmbedding, and what is left to torch."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Normalize
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from tiny_models import TEXTS, save_static, save_transformer, wordpiece

from sonde.indexer.encoder import Encoder, ModelSpec, load_encoder, load_encoder_for
from sonde.indexer.encoder.static import principal_components, read_static, zipf_weights
from sonde.indexer.errors import MissingExtraError, SondeError, UsageError

MIXED = [*TEXTS, "", "battery " * 700, "x", "The battery, the refund; the battery?"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_static(tmp_path_factory.mktemp("static"))


def test_the_vectors_of_static_embedding(folder: Path) -> None:
    encoder = load_encoder(str(folder), normalize=False)
    assert (encoder.engine, encoder.spec.kind, encoder.spec.dimension) == ("numpy", "static", 16)
    short = [text for text in MIXED if len(text) < 2_000]  # the library has no window
    theirs = SentenceTransformer(str(folder), device="cpu").encode(short)
    np.testing.assert_allclose(encoder.encode_texts(short), theirs, atol=1e-6)


@pytest.mark.parametrize(
    "options",
    [{}, {"normalize": False}, {"truncate_dim": 5}, {"max_tokens": 8}, {"document_prompt": "passage: "}],
    ids=lambda each: ",".join(each) or "plain",
)
def test_both_engines_agree(folder: Path, options: dict[str, object]) -> None:
    ours, theirs = (load_encoder(str(folder), engine=engine, **options) for engine in ("auto", "torch"))  # type: ignore[arg-type]
    assert (ours.engine, theirs.engine) == ("numpy", "torch")
    assert ours.spec == theirs.spec
    np.testing.assert_allclose(ours.encode_texts(MIXED), theirs.encode_texts(MIXED), atol=1e-5)
    for one, other in zip(_of_tokens(ours), _of_tokens(theirs), strict=True):
        np.testing.assert_array_equal(one.ids, other.ids)
        np.testing.assert_allclose(one.vectors, other.vectors, atol=1e-6)


def _of_tokens(encoder: Encoder):
    return encoder.token_vectors(encoder.tokenize(MIXED))


def test_one_pass_gives_vectors_and_tokens(folder: Path) -> None:
    encoder, taken = load_encoder(str(folder)), {}
    tokens = encoder.tokenize(MIXED)
    found = encoder.encode_with_tokens(
        tokens, lambda places, each: taken.update(zip(places.tolist(), each, strict=True))
    )
    np.testing.assert_array_equal(found, encoder.encode(tokens))
    for place, alone in enumerate(encoder.token_vectors(tokens)):
        np.testing.assert_array_equal(taken[place].vectors, alone.vectors)


def test_a_text_without_tokens_gets_zeros(folder: Path) -> None:
    encoder = load_encoder(str(folder))
    assert not encoder.encode_texts([""]).any()
    [tokens] = encoder.token_vectors(encoder.tokenize([""]))
    assert (tokens.vectors.shape, tokens.vectors.any()) == ((1, 16), np.False_)


def test_a_model_that_normalises(tmp_path: Path) -> None:
    module = StaticEmbedding(wordpiece().backend_tokenizer, embedding_dim=16)
    SentenceTransformer(modules=[module, Normalize()], device="cpu").save(str(tmp_path), create_model_card=False)
    encoder = load_encoder(str(tmp_path), normalize=False)
    assert encoder.engine == "numpy"
    np.testing.assert_allclose(
        np.linalg.norm(encoder.encode_texts(list(filter(str.strip, TEXTS))), axis=1), 1, atol=1e-6
    )


@pytest.mark.parametrize("change", ["model2vec", "bfloat16", "another module", "no tokenizer"])
def test_what_is_left_to_the_library(folder: Path, tmp_path: Path, change: str) -> None:
    copied = tmp_path / "copy"
    copied.mkdir()
    for file in folder.iterdir():
        (copied / file.name).write_bytes(file.read_bytes())
    assert read_static(copied) is not None
    table = load_file(str(copied / "model.safetensors"))["embedding.weight"]
    if change == "model2vec":
        save_file({"embeddings": table}, str(copied / "model.safetensors"))
    elif change == "bfloat16":
        save_file({"embedding.weight": table.to(torch.bfloat16)}, str(copied / "model.safetensors"))
    elif change == "no tokenizer":
        (copied / "tokenizer.json").unlink()
    else:
        modules = json.loads((copied / "modules.json").read_text())
        modules[0]["type"] = "mine.StaticEmbedding"
        (copied / "modules.json").write_text(json.dumps(modules))
    assert read_static(copied) is None
    assert read_static(save_transformer(tmp_path)) is None
    if change in ("model2vec", "bfloat16"):
        encoder = load_encoder(str(copied))
        assert encoder.engine == "torch"
        texts = list(filter(str.strip, TEXTS))
        wanted = load_encoder(str(folder)).encode_texts(texts)
        cosines = (encoder.encode_texts(texts) * wanted).sum(axis=1)
        assert cosines.min() > (0.99999 if change == "model2vec" else 0.999)


def test_int8_is_refused(folder: Path) -> None:
    with pytest.raises(UsageError, match="is a static model, and dtype int8 does not make it faster: use float32"):
        load_encoder(str(folder), dtype="int8")


def test_without_torch_another_model_names_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = StaticEmbedding(wordpiece().backend_tokenizer, embedding_dim=16)
    model = SentenceTransformer(modules=[module], device="cpu")
    model.save(str(tmp_path), create_model_card=False)
    table = load_file(str(tmp_path / "model.safetensors"))["embedding.weight"]
    save_file({"embeddings": table}, str(tmp_path / "model.safetensors"))
    monkeypatch.setitem(__import__("sys").modules, "sentence_transformers", None)
    with pytest.raises(MissingExtraError, match=r"needs Sentence-Transformers, .* pip install 'sonde\[all\]'"):
        load_encoder(str(tmp_path))


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
