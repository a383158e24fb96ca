"""The encoder against the library's own `encode`: every architecture, pooling, precision and number of workers."""

import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from tiny_models import ARCHITECTURES, TEXTS, WINDOW, save_router, save_static, save_transformer

from sonde.indexer.encoder import Encoder, ModelSpec, load_encoder, load_encoder_for
from sonde.indexer.encoder.forward import Crew, plan_batches
from sonde.indexer.encoder.tokenizer import FastTokenizer
from sonde.indexer.errors import SondeError, UsageError


@pytest.fixture(scope="session")
def tiny(tmp_path_factory) -> Path:
    """A tiny BERT with mean pooling and prompts."""
    return save_transformer(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def default() -> Encoder:
    return load_encoder()


def same(ours: np.ndarray, theirs: np.ndarray) -> None:
    np.testing.assert_allclose(ours, theirs, atol=2e-5)
    cosines = (ours * theirs).sum(axis=1) / np.linalg.norm(ours, axis=1) / np.linalg.norm(theirs, axis=1)
    assert cosines.min() > 0.9999
    # Vectors that are all alike would hide a mistake.
    assert np.abs(ours[0] - ours[4]).max() > 0.01


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_architecture_equals_the_library(architecture, tmp_path):
    folder = save_transformer(tmp_path, architecture)
    peer = SentenceTransformer(str(folder), device="cpu")
    encoder = load_encoder(str(folder), normalize=False)
    encoder.batch_tokens = 150
    same(encoder.encode_texts(TEXTS), peer.encode_document(TEXTS))
    same(encoder.encode_texts(TEXTS, query=True), peer.encode_query(TEXTS))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_features_are_those_of_the_library(architecture, tmp_path):
    folder = save_transformer(tmp_path, architecture)
    encoder = load_encoder(str(folder), engine="torch")
    expected = SentenceTransformer(str(folder), device="cpu").preprocess(TEXTS, prompt="query: ")
    found = encoder.tokenizer.collate(encoder.tokenize(TEXTS, query=True))
    assert set(found) == set(expected)
    for name, value in expected.items():
        assert torch.equal(found[name], value) if isinstance(value, torch.Tensor) else found[name] == value


@pytest.mark.parametrize("pooling", ["cls", "max", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"])
def test_every_pooling_equals_the_library(pooling, tmp_path):
    folder = save_transformer(tmp_path, pooling=pooling)
    same(load_encoder(str(folder), normalize=False).encode_texts(TEXTS), _peer(folder).encode_document(TEXTS))


@pytest.mark.parametrize("architecture", ["bert", "xlnet"])
def test_pooling_that_leaves_the_prompt_out(architecture, tmp_path):
    folder = save_transformer(tmp_path, architecture, include_prompt=False)
    encoder = load_encoder(str(folder), normalize=False)
    same(encoder.encode_texts(TEXTS, query=True), _peer(folder).encode_query(TEXTS))
    tokens = encoder.tokenize(TEXTS, query=True) + encoder.tokenize(TEXTS)
    both = encoder.encode(tokens)
    same(both[: len(TEXTS)], _peer(folder).encode_query(TEXTS))
    same(both[len(TEXTS) :], _peer(folder).encode_document(TEXTS))


def test_default_model_equals_the_library(default):
    texts = [*TEXTS, "word " * 400, *(f"Sentence number {number} of some." * (number % 9 + 1) for number in range(60))]
    theirs = _peer(default.library()).encode(texts)
    same(default.encode_texts(texts), theirs)
    assert default.spec.name == "all-MiniLM-L6-v2"
    assert (default.spec.dimension, default.spec.max_tokens, default.spec.dtype) == (384, 256, "float32")


def test_default_model_knows_what_belongs_together(default):
    query = default.encode_texts(["how to change a flat tyre"], query=True)
    texts = ["Replacing a punctured wheel on your car", "Boiling eggs", "The treaty of 1648"]
    assert int((default.encode_texts(texts) @ query[0]).argmax()) == 0


def _peer(model: Path | SentenceTransformer) -> SentenceTransformer:
    return model if isinstance(model, SentenceTransformer) else SentenceTransformer(str(model), device="cpu")


def test_truncation_comes_before_normalisation(tiny):
    ours = load_encoder(str(tiny), truncate_dim=8).encode_texts(TEXTS)
    theirs = _peer(tiny).encode_document(TEXTS, truncate_dim=8, normalize_embeddings=True)
    same(ours, theirs)
    np.testing.assert_allclose(np.linalg.norm(ours, axis=1), 1, atol=1e-6)


def test_static_and_routed_models_equal_the_library(tmp_path):
    for folder in (save_static(tmp_path), save_router(tmp_path)):
        encoder, texts = load_encoder(str(folder)), [text for text in TEXTS if text]
        for query in (False, True):
            peer = _peer(folder).encode_query if query else _peer(folder).encode_document
            np.testing.assert_allclose(
                encoder.encode_texts(texts, query=query), peer(texts, normalize_embeddings=True), atol=1e-6
            )
    assert load_encoder(str(save_static(tmp_path / "again"))).spec.kind == "static"


def test_static_model_gives_an_empty_text_zeros(tmp_path):
    assert not load_encoder(str(save_static(tmp_path))).encode_texts(["", "a refund"])[0].any()


def test_order_and_batches_do_not_matter(tiny):
    encoder = load_encoder(str(tiny))
    texts = TEXTS * 9
    straight = encoder.encode_texts(texts)
    for budget in (1, 70, 10_000):
        encoder.batch_tokens = budget
        np.testing.assert_allclose(encoder.encode_texts(texts[::-1])[::-1], straight, atol=1e-6)


def test_several_devices_give_the_same_in_order(tiny):
    one, three = load_encoder(str(tiny)), load_encoder(str(tiny), device="cpu,cpu,cpu")
    three.batch_tokens = 60
    seen: list[int] = []
    tokens = three.tokenize(TEXTS * 9)
    np.testing.assert_allclose(three.encode(tokens, on_batch=seen.append), one.encode_texts(TEXTS * 9), atol=1e-6)
    assert sum(seen) == len(tokens)
    assert len(three.replicas) == 3
    assert three.devices == ["cpu"]


def test_workers_leave_the_number_of_threads_alone(tiny):
    before, crew, found = torch.get_num_threads(), Crew(3, 1), {}
    crew.run(lambda number: found.update({number: torch.get_num_threads()}))
    assert found == {0: 1, 1: 1, 2: 1}
    assert torch.get_num_threads() == before
    newcomer = threading.Thread(target=lambda: found.update(new=torch.get_num_threads()))
    newcomer.start()
    newcomer.join()
    assert found["new"] == before


def test_two_crews_that_gather_at_once_leave_the_number_as_it_was(monkeypatch):
    before, found, really = torch.get_num_threads(), [], torch.set_num_threads

    def slowly(count):
        really(count)
        time.sleep(0.02)

    def gather(seconds):
        time.sleep(seconds)
        Crew(1, before + 1).run(lambda _: None)
        found.append(torch.get_num_threads())

    monkeypatch.setattr(torch, "set_num_threads", slowly)
    for seconds in ((0, 0.01), (0,)):
        threads = [threading.Thread(target=gather, args=[each]) for each in seconds]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    assert found == [before] * 3


def test_a_worker_that_fails_is_heard(tiny, monkeypatch):
    encoder = load_encoder(str(tiny), device="cpu,cpu")
    encoder.batch_tokens = 60

    def fail(batch):
        raise SondeError("the second device is gone")

    monkeypatch.setattr(encoder.replicas[1], "run", fail)
    monkeypatch.setattr(encoder.replicas[0], "run", fail)
    with pytest.raises(SondeError, match="second device is gone"):
        encoder.encode_texts(TEXTS * 3)


def test_threads_may_share_an_encoder(tiny):
    encoder = load_encoder(str(tiny))
    expected, wrong = encoder.encode_texts(TEXTS), []

    def use() -> None:
        for _ in range(5):
            if not np.allclose(encoder.encode_texts(TEXTS), expected, atol=1e-5):
                wrong.append(1)

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_tokens_count_what_is_cut_and_keep_the_end(tiny):
    encoder = load_encoder(str(tiny), document_prompt="")
    assert isinstance(encoder.tokenizer, FastTokenizer)
    short, long = encoder.tokenize(["refund", "How do I reset my password? " * 12])
    assert (short.total, short.cut, list(short.ids[[0, -1]])) == (len(short.ids), 0, [2, 3])
    assert (len(long.ids), list(long.ids[[0, -1]])) == (WINDOW, [2, 3])
    assert long.cut == long.total - WINDOW > 0
    whole = encoder.tokenizer.backend.encode("How do I reset my password? " * 12).ids
    assert long.total == len(whole)
    assert list(long.ids) == [*whole[: WINDOW - 1], 3]


def test_a_text_of_megabytes_is_counted_in_slices(tiny):
    encoder = load_encoder(str(tiny), document_prompt="")
    sentence = "How do I reset my password? "
    each = encoder.tokenizer.counts([sentence])[0]
    long, short = encoder.tokenize([sentence * 40_000, "refund"])
    assert long.total == 40_000 * each + 2
    assert list(long.ids) == list(encoder.tokenize([sentence * 20])[0].ids)
    assert encoder.tokenizer.counts([sentence * 40_000, "refund"]) == [40_000 * each, short.total - 2]


def test_batches_keep_the_budget_and_hold_every_text_once(tiny):
    tokens = load_encoder(str(tiny)).tokenize(TEXTS * 5)
    batches = plan_batches(tokens, 100)
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(tokens)))
    sizes = [len(batch) * max(len(tokens[place].ids) for place in batch) for batch in batches]
    assert max(sizes) <= 100
    assert [len(tokens[batch[0]].ids) for batch in batches] == sorted(
        (len(tokens[batch[0]].ids) for batch in batches), reverse=True
    )


def test_nothing_to_encode(tiny):
    assert load_encoder(str(tiny)).encode_texts([]).shape == (0, 32)


def test_spec_says_everything_and_comes_back(tiny):
    encoder = load_encoder(str(tiny), max_tokens=32, truncate_dim=16, query_prompt="find: ", normalize=False)
    spec = encoder.spec
    assert (spec.max_tokens, spec.dimension, spec.truncate_dim) == (32, 16, 16)
    assert (spec.query_prompt, spec.document_prompt, spec.similarity) == ("find: ", "passage: ", "cosine")
    again = load_encoder_for(ModelSpec.from_dict(spec.to_dict()))
    assert again.spec == spec
    np.testing.assert_array_equal(again.encode_texts(TEXTS[:3]), encoder.encode_texts(TEXTS[:3]))


def test_fingerprint_changes_with_what_changes_vectors(tiny, tmp_path):
    spec = load_encoder(str(tiny)).spec
    options: list[dict[str, Any]] = [
        {"max_tokens": 32},
        {"normalize": False},
        {"document_prompt": ""},
        {"dtype": "bfloat16"},
    ]
    changed = [load_encoder(str(tiny), **option).spec.fingerprint for option in options]
    assert len({spec.fingerprint, *changed}) == 5
    assert ModelSpec.from_dict({**spec.to_dict(), "name": "elsewhere"}).fingerprint == spec.fingerprint
    other = save_transformer(tmp_path, "distilbert")
    assert load_encoder(str(other)).spec.digest != spec.digest


def test_other_weights_than_the_collection_had(tiny):
    spec = load_encoder(str(tiny)).spec
    old = ModelSpec.from_dict({**spec.to_dict(), "digest": "ab" * 32})
    with pytest.raises(SondeError, match=f"built with .* of digest abababababab…, but .* has {spec.digest[:12]}…"):
        load_encoder_for(old)
    with pytest.raises(SondeError, match="another version \\(fields: kind\\)"):
        ModelSpec.from_dict({name: value for name, value in spec.to_dict().items() if name != "kind"})


def test_half_precision_of_a_gpu_is_computed_in_float32_on_a_cpu(tiny):
    encoder = load_encoder(str(tiny))
    half = load_encoder_for(ModelSpec.from_dict({**encoder.spec.to_dict(), "dtype": "float16"}), device="cpu")
    np.testing.assert_array_equal(half.encode_texts(TEXTS), encoder.encode_texts(TEXTS))
    assert half.spec.dtype == "float16"


def test_bfloat16_is_close(tiny):
    ours, exact = (load_encoder(str(tiny), dtype=dtype).encode_texts(TEXTS) for dtype in ("bfloat16", "float32"))
    assert 0.98 < (ours * exact).sum(axis=1).min() < 0.999999


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"device": "gpu"}, "unknown device 'gpu': give auto, cpu, cuda"),
        ({"device": "cpu,tpu"}, "unknown device 'tpu'"),
        ({"device": "cuda:99"}, "this machine has no device 'cuda:99': it has .*cpu"),
        ({"dtype": "float8"}, "unknown dtype 'float8': give auto, float32"),
        ({"truncate_dim": 33}, "truncate_dim 33 does not fit the model: give 1 to 32"),
        ({"truncate_dim": 0}, "truncate_dim 0 does not fit"),
        ({"max_tokens": 500}, f"max_tokens 500 does not fit the model: give 8 to {WINDOW}"),
        ({"document_prompt": "word " * 99}, f"document prompt fills the model's window of {WINDOW} tokens"),
    ],
)
def test_settings_that_cannot_be(tiny, options, message):
    with pytest.raises(UsageError, match=message):
        load_encoder(str(tiny), **options)


def test_numbers_that_are_not_finite(tiny):
    encoder = load_encoder(str(tiny), engine="torch")
    with torch.no_grad():
        encoder.library()[0].model.embeddings.word_embeddings.weight.fill_(float("nan"))
    assert not encoder.finite()
    with pytest.raises(SondeError, match="non-finite numbers in float32: its weights are damaged: get the model again"):
        encoder.encode_texts(["refund"])


def test_loading_prints_nothing_and_leaves_the_settings_alone(tiny):
    code = f"""
import logging, sys
from transformers.utils import logging as verbosity
from huggingface_hub.utils import are_progress_bars_disabled
state = lambda: (verbosity.get_verbosity(), verbosity.is_progress_bar_enabled(), are_progress_bars_disabled(),
                 logging.root.manager.disable, logging.root.level, logging.root.handlers[:])
before = state()
from sonde.indexer.encoder import load_encoder
load_encoder({str(tiny)!r}).encode_texts(["a"])
sys.exit(0 if state() == before else f"{{before}} {{state()}}")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_importing_the_package_loads_no_torch():
    code = "import sonde.indexer.encoder, sonde.indexer.ingest.chunker, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
