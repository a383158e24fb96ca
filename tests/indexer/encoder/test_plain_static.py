"""Static models in NumPy: the vectors of Sentence-Transformers' StaticEmbedding, and what is left to torch."""

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

from sonde.indexer.encoder import Encoder, load_encoder
from sonde.indexer.encoder.plain_static import read_static
from sonde.indexer.errors import MissingExtraError, UsageError

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
