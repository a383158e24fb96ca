"""int8: near float32, its loss stated, made once and kept."""

import json
import subprocess
import sys

import numpy as np
import pytest
from tiny_models import TEXTS, save_static, save_transformer

from sonde.indexer.encoder import ModelSpec, load_encoder, load_encoder_for
from sonde.indexer.errors import MissingExtraError, SondeError, UsageError

pytest.importorskip("onnxruntime", reason="needs the extra int8")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return save_transformer(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SONDE_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


MAKING = """
import json, logging, sys
from sonde.indexer.encoder import load_encoder
said, handlers = [], logging.root.handlers[:]
load_encoder(sys.argv[1], dtype="int8", notify=said.append)
print(json.dumps([said, logging.root.handlers == handlers]))
"""


@pytest.fixture(scope="module")
def quantized(tiny, cache):
    """The encoder, made in a process of its own, which printed nothing but what this one asked it for."""
    done = subprocess.run([sys.executable, "-c", MAKING, str(tiny)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr, done.stdout.count("\n")) == (0, "", 1), done
    said, same_handlers = json.loads(done.stdout)
    assert same_handlers
    assert said[0] == "quantizing the model to int8, once: some seconds"
    assert "cosine to float32's is" in said[1]
    return load_encoder(str(tiny), dtype="int8")


@pytest.mark.long
def test_vectors_are_near_and_the_loss_is_stated(tiny, quantized):
    exact = load_encoder(str(tiny)).encode_texts(TEXTS)
    cosines = (quantized.encode_texts(TEXTS) * exact).sum(axis=1)
    assert 0.9 < quantized.loss.least <= quantized.loss.mean <= 1
    assert cosines.mean() == pytest.approx(quantized.loss.mean, abs=0.03)
    assert not np.allclose(quantized.encode_texts(TEXTS), exact, atol=1e-4)
    assert quantized.spec.dtype == "int8"
    assert quantized.spec.fingerprint != load_encoder(str(tiny)).spec.fingerprint


def test_it_is_made_once_and_comes_back_for_a_collection(quantized):
    said = []
    again = load_encoder_for(ModelSpec.from_dict(quantized.spec.to_dict()), notify=said.append)
    assert len(said) == 1
    assert again.loss == quantized.loss
    np.testing.assert_array_equal(again.encode_texts(TEXTS), quantized.encode_texts(TEXTS))


def test_several_workers(tiny, quantized):
    spread = load_encoder(str(tiny), dtype="int8", device="cpu,cpu")
    spread.batch_tokens = 60
    # Dynamic quantization scales by batch: equal only to within the loss itself.
    cosines = (spread.encode_texts(TEXTS * 3) * quantized.encode_texts(TEXTS * 3)).sum(axis=1)
    assert cosines.min() > 0.95


def test_where_it_cannot_be(tiny, cache, tmp_path, monkeypatch):
    with pytest.raises(UsageError, match="static model, and dtype int8 does not make it faster"):
        load_encoder(str(save_static(tmp_path)), dtype="int8")
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    with pytest.raises(MissingExtraError, match=r"dtype int8 needs onnxscript, .* pip install 'sonde\[int8\]'"):
        load_encoder(str(tiny), dtype="int8")


def test_what_cannot_be_exported_is_one_plain_line(tmp_path, monkeypatch):
    """As XLNet's attention, whose exporter colours its messages."""

    def refused(*_):
        raise RuntimeError("Failed to decompose the graph. \x1b[96mThis is step 2/3\x1b[0m of exporting\nand more")

    monkeypatch.setattr("sonde.indexer.encoder.int8._export", refused)
    monkeypatch.setenv("SONDE_CACHE", str(tmp_path / "cache"))
    message = (
        r"cannot be quantized \(Failed to decompose the graph\. This is step 2/3 of exporting\): use dtype float32"
    )
    with pytest.raises(SondeError, match=message):
        load_encoder(str(save_transformer(tmp_path)), dtype="int8")
