"""The models that come with Sonde: packed without loss that matters, checked, and of a stated quality."""

import gzip
import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tiny_models
import torch
from default_model import default_model
from transformers import AutoConfig, AutoTokenizer, BertModel

from sonde.indexer.errors import SondeError, UsageError
from sonde.pipelines.pairs import PairModel
from sonde.pipelines.pairs.bundled import BUNDLED, bundles, load_plain_bundled, unpack
from sonde.pipelines.pairs.bundled.loading import (
    PooledPairClassifier,
    assemble_bundled,
    load_bundled,
    pack,
    write_bundle,
)
from sonde.pipelines.train.nli import new_classifier

needs_default = pytest.mark.skipif(not default_model(), reason="the default model's package is not installed")
FLOOR = 0.54
"""Accuracy on LingNLI that the shipped weights must keep; benchmarks/README.md has what they reach."""


def test_packing_keeps_a_change_to_half_a_step_and_leaves_out_what_did_not_change() -> None:
    torch.manual_seed(1)
    base = {"a.weight": torch.randn(6, 40), "a.bias": torch.randn(6), "same": torch.randn(3, 3)}
    change = torch.randn(6, 40) * torch.tensor([0.1, 0.001, 0.0, 1.0, 0.02, 1e-7])[:, None]
    trained = {"a.weight": base["a.weight"] + change, "a.bias": base["a.bias"] + 0.01, "same": base["same"].clone()}
    trained["new"] = torch.randn(2, 6)
    packed = pack(trained, base)
    assert {name: tensor.dtype for name, tensor in packed.items()} == {
        "a.weight.code": torch.int8, "a.weight.scale": torch.float16, "a.bias.change": torch.float16,
        "new": torch.float16,
    }  # fmt: skip
    arrays = [{name: tensor.numpy() for name, tensor in each.items()} for each in (packed, base)]
    found = {name: torch.from_numpy(array) for name, array in unpack(*arrays).items()}
    wrong = (found["a.weight"] - trained["a.weight"]).abs().amax(1)
    steps = change.abs().amax(1) / 127
    assert (wrong <= steps * 0.51 + 1e-6).all(), wrong / steps
    assert torch.equal(found["same"], base["same"])
    assert torch.allclose(found["a.bias"], trained["a.bias"], atol=1e-5)
    assert torch.allclose(found["new"], trained["new"], atol=2e-3)


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, torch.nn.Module]:
    """A tiny base, a changed copy of it packed as the bundled model "tiny", and the copy itself."""
    base = tiny_models.save_transformer(tmp_path)
    model, _ = new_classifier(str(base), seed=3)
    torch.manual_seed(5)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "word_embeddings" not in name:
                weight.add_(0.02 * torch.randn_like(weight))
    (tmp_path / "tiny").mkdir()
    write_bundle(model, base, tmp_path / "tiny" / bundles.WEIGHTS)
    bundle = replace(BUNDLED["nli"], name="tiny", digest=bundles.sha256(tmp_path / "tiny" / bundles.WEIGHTS))
    monkeypatch.setattr(bundles, "FOLDER", tmp_path)
    monkeypatch.setitem(BUNDLED, "tiny", bundle)
    located = type("Located", (), {"folder": base})
    monkeypatch.setattr(bundles, "locate", lambda name, notify: located)
    return tmp_path / "tiny" / bundles.WEIGHTS, model.eval()


PAIRS = [("The battery died after a week.", "refund"), ("How do I reset my password?", "like sun and water")]


def test_a_bundle_reproduces_the_logits(shipped: tuple[Path, torch.nn.Module]) -> None:
    model, tokenizer, config = load_bundled("tiny")
    whole = PairModel(shipped[1], tokenizer).logits(PAIRS)
    assert np.abs(PairModel(model, tokenizer).logits(PAIRS) - whole).max() < 5e-3
    assert (config.id2label[0], config.label2id["contradiction"]) == ("entailment", 2)


def test_without_torch_the_logits_are_the_same(shipped: tuple[Path, torch.nn.Module]) -> None:
    model, tokenizer, _ = load_bundled("tiny")
    plain = load_plain_bundled("tiny", "bundled")
    assert plain is not None
    whole = PairModel(model, tokenizer)
    assert (plain.name, plain.id2label, plain.num_labels) == ("bundled", whole.id2label, 3)
    assert (plain.dtype, plain.devices, plain.activation) == (whole.dtype, whole.devices, whole.activation)
    pairs = [*PAIRS, ("long " * 600, "a refund"), ("", "empty"), ("a [SEP] b", "[CLS]")] * 9
    for cut in ("first", "longest"):
        np.testing.assert_allclose(plain.logits(pairs, cut=cut), whole.logits(pairs, cut=cut), atol=1e-5)


@pytest.mark.long
@needs_default
def test_the_shipped_model_without_torch() -> None:
    plain = load_plain_bundled("nli", "bundled")
    assert plain is not None
    assert plain.window == bundled().window == 256
    np.testing.assert_allclose(plain.logits(PAIRS * 20), bundled().logits(PAIRS * 20), atol=1e-4)


def test_the_pooled_model_compares_the_mean_vectors_of_both_texts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = tiny_models.save_transformer(tmp_path)
    config = AutoConfig.from_pretrained(base)
    config.num_labels, config.pair_width, config.architectures = 3, 8, ["PooledPairClassifier"]
    torch.manual_seed(2)
    model = PooledPairClassifier(config).eval()
    model.bert.load_state_dict(BertModel.from_pretrained(base, add_pooling_layer=False).state_dict())
    with torch.no_grad():
        for weight in (*model.bert.encoder.parameters(), *model.compare.parameters(), *model.classifier.parameters()):
            weight.add_(0.02 * torch.randn_like(weight))
    tokenizer = AutoTokenizer.from_pretrained(base)
    tokenizer.model_input_names = ["input_ids", "token_type_ids", "attention_mask"]
    found = PairModel(model, tokenizer).logits(PAIRS)
    for pair, logits in zip(PAIRS, found, strict=True):
        inputs = tokenizer(*pair, return_tensors="pt", return_token_type_ids=True)
        with torch.inference_mode():
            tokens = model.bert(**inputs).last_hidden_state[0]
            one, two = (tokens[inputs["token_type_ids"][0] == kind].mean(0) for kind in (0, 1))
            both = torch.cat([one, two, (one - two).abs(), one * two])
            wanted = model.classifier(torch.nn.functional.gelu(model.compare(both)))
        np.testing.assert_allclose(logits, wanted.numpy(), atol=1e-5)
    write_bundle(model, base, tmp_path / "w.safetensors")
    again, _, _ = assemble_bundled(bundles.read_bundle(tmp_path / "w.safetensors", BUNDLED["nli"], base))
    assert isinstance(again, PooledPairClassifier)
    np.testing.assert_allclose(PairModel(again, tokenizer).logits(PAIRS), found, atol=5e-3)
    monkeypatch.setattr(
        "sonde.pipelines.pairs.bundled.bundles.open_bundle",
        lambda *_: bundles.read_bundle(tmp_path / "w.safetensors", BUNDLED["nli"], base),
    )
    assert load_plain_bundled("nli", "bundled") is None


def test_the_same_model_makes_the_same_file(shipped: tuple[Path, torch.nn.Module], tmp_path: Path) -> None:
    write_bundle(shipped[1], tmp_path / "model", tmp_path / "again.safetensors")
    assert (tmp_path / "again.safetensors").read_bytes() == shipped[0].read_bytes()


def spoil(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(bytes(content))


@pytest.mark.parametrize(("damage", "says"), [(spoil, "not the file that came with sonde"), (Path.unlink, "missing")])
def test_a_damaged_file_is_refused(
    shipped: tuple[Path, torch.nn.Module], damage: Callable[[Path], None], says: str
) -> None:
    damage(shipped[0])
    with pytest.raises(SondeError, match=f"{says}.*install sonde again"):
        load_bundled("tiny")


def test_another_base_is_refused(shipped: tuple[Path, torch.nn.Module], tmp_path: Path) -> None:
    spoil(tmp_path / "model" / "model.safetensors")
    with pytest.raises(SondeError, match=r"builds on all-MiniLM-L6-v2 with the digest .*: install sonde again, or"):
        load_bundled("tiny")


def test_without_the_default_model_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(name: str, notify: object) -> None:
        raise SondeError("it is not in the cache")

    monkeypatch.setattr(bundles, "locate", gone)
    with pytest.raises(
        SondeError, match=r"builds on all-MiniLM-L6-v2, which is not available: install sonde again, or give"
    ):
        load_bundled("nli")


def test_an_unknown_name_is_a_mistake() -> None:
    with pytest.raises(UsageError, match="there is no bundled model 'nil'; available: nli"):
        load_bundled("nil")


@needs_default
@pytest.mark.parametrize(
    ("premise", "hypothesis", "label"),
    [
        ("A man is sleeping.", "A man is awake.", "contradiction"),
        ("A man is sleeping on a bench.", "A person is asleep.", "entailment"),
        ("A woman plays a guitar.", "A woman plays an instrument.", "entailment"),
        ("A man is outside.", "The man is waiting for his wife.", "neutral"),
        ("The parcel never arrived.", "The parcel arrived.", "contradiction"),
        ("Two dogs run on the beach.", "Animals are outdoors.", "entailment"),
        ("The team won the final 3-1.", "This example is about sport.", "entailment"),
        ("The team won the final 3-1.", "This example is about cooking.", "contradiction"),
    ],
)
def test_the_bundled_model_gets_plain_pairs_right(premise: str, hypothesis: str, label: str) -> None:
    model = bundled()
    assert model.id2label[int(model.logits([(premise, hypothesis)]).argmax())] == label


@pytest.mark.long
@needs_default
def test_the_bundled_model_keeps_its_accuracy(shared_data: Path) -> None:
    with gzip.open(shared_data / "nli/lingnli.jsonl.gz", "rt", encoding="utf-8") as file:
        rows = [row for row in map(json.loads, file) if row["split"] == "val"]
    rows = random.Random(7).sample(rows, 600)
    model = bundled()
    given = model.logits([(row["premise"], row["hypothesis"]) for row in rows]).argmax(1)
    right = [model.id2label[int(place)] == row["label"] for place, row in zip(given, rows, strict=True)]
    assert np.mean(right) >= FLOOR


_LOADED: list[PairModel] = []


def bundled() -> PairModel:
    """The bundled model, loaded once."""
    if not _LOADED:
        model, tokenizer, _ = load_bundled("nli")
        _LOADED.append(PairModel(model, tokenizer, name="bundled"))
    return _LOADED[0]
