"""Models of pairs: the same logits as transformers gives one pair at a time, whatever the tokenizer and the length."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_models import TEXTS, WINDOW, save_transformer
from tiny_pairs import KINDS, NLI, build_pairs, save_pairs

from sonde.indexer.errors import SondeError, UsageError
from sonde.pipelines.pairs import PairModel, load_pair_model
from sonde.pipelines.pairs.onnx_body import first_token_only
from sonde.pipelines.pairs.tokens import PairTokenizer, cut_to_fit

SECOND = ["This example is a refund.", "a battery", "Profits rose by eleven per cent."]
PAIRS = [(first, second) for first in TEXTS for second in SECOND]
FEW = [*PAIRS[:3], *PAIRS[-5:]]


@pytest.fixture(scope="module", params=sorted(KINDS))
def built(request: pytest.FixtureRequest) -> Any:
    return build_pairs(request.param)


def one_by_one(model: Any, tokenizer: Any, pairs: list[tuple[str, str]], strategy: str = "only_first") -> np.ndarray:
    """What transformers gives, a pair at a time, without padding."""
    found = []
    for pair in pairs:
        inputs = tokenizer(*pair, truncation=strategy, max_length=WINDOW, return_tensors="pt")
        inputs = {name: inputs[name] for name in tokenizer.model_input_names}
        with torch.inference_mode():
            found.append(model(**inputs).logits[0].numpy())
    return np.array(found)


def test_logits_equal_those_of_one_pair_at_a_time(built: Any) -> None:
    model, tokenizer = built
    naive = one_by_one(model, tokenizer, PAIRS)
    for budget in (64, 2_048):
        fast = PairModel(model, tokenizer, batch_tokens=budget)
        assert fast.tokenizer.template is not None
        np.testing.assert_allclose(fast.logits(PAIRS), naive, atol=1e-5)
    assert naive.std() > 0.01


@pytest.mark.parametrize("room", [2, 0])
def test_too_little_memory_means_smaller_batches_and_then_the_cpu(monkeypatch: pytest.MonkeyPatch, room: int) -> None:
    model: Any
    model, tokenizer = build_pairs("bert")
    naive, said = one_by_one(model, tokenizer, FEW), []
    pairs = PairModel(model.to(torch.bfloat16), tokenizer, notify=said.append)
    replica: Any = pairs._replicas[0]
    forward = replica.model.forward

    def small(input_ids: torch.Tensor, **given: Any) -> Any:
        if len(input_ids) > room and replica.model.dtype == torch.bfloat16:
            raise torch.OutOfMemoryError("too large")
        return forward(input_ids, **given)

    monkeypatch.setattr(replica.model, "forward", small)
    np.testing.assert_allclose(pairs.logits(FEW), naive, atol=0.1)
    said = list(dict.fromkeys(said))  # each replica says it for itself; there is one for each thread
    assert said[:1] == ["cpu has too little memory for batches of the usual size: using smaller ones"]
    assert said[1:] == ([] if room else ["cpu has too little memory even for one text: using the CPU"])
    assert replica.model.dtype == (torch.bfloat16 if room else torch.float32)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_model_that_does_not_fit_is_loaded_on_the_cpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dtype: str
) -> None:
    folder, said = str(save_pairs(tmp_path, "bert")), []
    monkeypatch.setattr("sonde.indexer.encoder.settings.available_devices", lambda: ["cuda:0", "cpu"])
    to = torch.nn.Module.to

    def full(module: torch.nn.Module, *given: Any, **named: Any) -> torch.nn.Module:
        if "cuda:0" in given:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return to(module, *given, **named)

    monkeypatch.setattr(torch.nn.Module, "to", full)
    model = load_pair_model(folder, device="cuda", dtype=dtype, notify=said.append)
    assert said == [f"{folder} does not fit into the memory of cuda:0: using the CPU"]
    assert (model.devices, model.dtype) == (["cpu"], "float32")
    np.testing.assert_allclose(model.logits(FEW), load_pair_model(folder, device="cpu").logits(FEW), atol=1e-6)


def test_the_last_layer_is_computed_for_the_first_token_alone() -> None:
    model: Any = build_pairs("bert")[0]
    lean = first_token_only(model)
    sizes: list[int] = []
    model.base_model.encoder.layer[-1].intermediate.register_forward_hook(lambda *seen: sizes.append(seen[2].shape[1]))
    lean.base_model.encoder.layer[-1].layer.intermediate.register_forward_hook(
        lambda *seen: sizes.append(seen[2].shape[1])
    )
    ids = torch.arange(2, 42).reshape(4, 10)
    with torch.inference_mode():
        wanted, found = (each(input_ids=ids).logits for each in (model, lean))
    assert sizes == [10, 1]
    np.testing.assert_allclose(found, wanted, atol=1e-6)
    assert all(one is two for one, two in zip(model.parameters(), lean.parameters(), strict=True))


def test_a_model_that_is_built_otherwise_runs_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in ("distilbert", "bart"):
        other, _ = build_pairs(kind)
        assert first_token_only(other) is other
    model: Any = build_pairs("bert")[0]
    own = model.base_model.encoder.layer[-1].attention.self
    monkeypatch.setattr(own, "scaling", 2 * own.scaling)
    assert first_token_only(model) is not model  # the scale is the layer's own
    monkeypatch.setattr(type(own), "forward", lambda self, hidden, *_, **__: (self.value(hidden), None))
    assert first_token_only(model) is model


def test_longest_first(built: Any) -> None:
    model, tokenizer = built
    pairs = [(TEXTS[-1], TEXTS[4]), (TEXTS[4], TEXTS[-1]), (TEXTS[-1], TEXTS[-1]), ("refund", TEXTS[-1]), *FEW]
    naive = one_by_one(model, tokenizer, pairs, "longest_first")
    np.testing.assert_allclose(PairModel(model, tokenizer).logits(pairs, cut="longest"), naive, atol=1e-5)


def test_a_tokenizer_without_a_template_goes_pair_by_pair(built: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sonde.pipelines.pairs.tokens.find_template", lambda _: None)
    model, tokenizer = built
    plain = PairModel(model, tokenizer)
    assert plain.tokenizer.template is None
    pairs = [*FEW, ("short", TEXTS[-1]), (TEXTS[-1], TEXTS[-1])]
    found = plain.logits(pairs)
    np.testing.assert_allclose(found[: len(FEW)], one_by_one(model, tokenizer, FEW), atol=1e-5)
    assert plain.tokenizer.tokenize(pairs, "first").lengths.max() <= WINDOW


@pytest.fixture(scope="module")
def each_alone() -> tuple[PairModel, dict[tuple[str, str], np.ndarray]]:
    """A model and its logits of every pair, each alone."""
    model = PairModel(*build_pairs("bert"))
    return model, {(one, two): model.logits([(one, two)])[0] for one in TEXTS for two in SECOND}


@settings(max_examples=20)
@given(st.lists(st.tuples(st.sampled_from(TEXTS), st.sampled_from(SECOND)), max_size=12), st.integers(16, 300))
def test_any_pairs_in_any_batches(each_alone: Any, pairs: list[tuple[str, str]], budget: int) -> None:
    model, alone = each_alone
    model.batch_tokens = budget
    found = model.logits(pairs)
    naive = [alone[pair] for pair in pairs]
    np.testing.assert_allclose(found, np.array(naive).reshape(-1, 3), atol=1e-5)


@given(st.integers(0, 100), st.integers(0, 100), st.integers(2, 100))
def test_a_pair_always_fits(first: int, second: int, room: int) -> None:
    for cut in ("first", "longest"):
        one, two = cut_to_fit(first, second, room, cut)
        assert 0 <= one <= first and 0 <= two <= second and one + two <= room
        assert one + two == min(first + second, room) or cut == "first"
        assert two == second or cut == "longest" or second >= room


def test_a_second_text_that_fills_the_window_is_cut_to_half_of_it() -> None:
    model, tokenizer = build_pairs("bert")
    long = TEXTS[-1]
    found = PairTokenizer(tokenizer, WINDOW).tokenize([(long, long), ("refund", long)], "first")
    assert found.lengths.tolist() == [WINDOW, 3 + 22 + len(tokenizer("refund", add_special_tokens=False).input_ids)]
    assert np.isfinite(PairModel(model, tokenizer).logits([(long, long)])).all()


def test_each_text_is_tokenised_once(monkeypatch: pytest.MonkeyPatch) -> None:
    model, tokenizer = build_pairs("bert")
    pairs = PairModel(model, tokenizer)
    seen: list[str] = []
    fast: Any = pairs.tokenizer._fast
    real = fast.tokenize
    monkeypatch.setattr(fast, "tokenize", lambda texts, query: seen.extend(texts) or real(texts, query))
    pairs.logits(PAIRS)
    assert sorted(seen) == sorted({*TEXTS, *SECOND})


def test_special_tokens_in_a_text_are_words() -> None:
    """BART refuses a batch whose texts hold different numbers of </s>; a text may say so all the same."""
    model, tokenizer = build_pairs("bart")
    found = PairModel(model, tokenizer).logits([("all </s> gone </s>", "a"), ("nothing", "b </s>")])
    assert np.isfinite(found).all()


def test_a_text_of_100_000_characters() -> None:
    model, tokenizer = build_pairs("bert")
    pairs = PairModel(model, tokenizer)
    long = "How do I reset my password? " * 4_000
    np.testing.assert_allclose(pairs.logits([(long, "a")]), pairs.logits([(long[:2_000], "a")]), atol=1e-6)


def test_no_pairs_and_empty_texts() -> None:
    model, tokenizer = build_pairs("bert")
    pairs = PairModel(model, tokenizer)
    assert pairs.logits([]).shape == (0, 3)
    assert np.isfinite(pairs.logits([("", "")])).all()
    with pytest.raises(UsageError, match="there is no cut 'both': use first or longest"):
        pairs.logits([], cut="both")  # type: ignore[arg-type]


def test_the_window_is_the_positions_that_a_model_has() -> None:
    model, tokenizer = build_pairs("roberta")
    tokenizer.model_max_length = int(1e30)
    assert PairModel(model, tokenizer).window == 62  # 64 positions, of which RoBERTa's kind skips two
    assert PairModel(model, tokenizer, window=20).window == 20
    long = [(TEXTS[-1] * 5, "a battery")]
    assert np.isfinite(PairModel(model, tokenizer).logits(long)).all()


def test_numbers_that_are_not_finite(monkeypatch: pytest.MonkeyPatch) -> None:
    model, tokenizer = build_pairs("bert")
    with torch.no_grad():
        model.classifier.bias.fill_(float("nan"))  # type: ignore[operator]
    with pytest.raises(SondeError, match="non-finite numbers in float32: its weights are damaged"):
        PairModel(model, tokenizer).logits([("a", "b")])


def test_bfloat16_is_a_choice(tmp_path: Path) -> None:
    folder = save_pairs(tmp_path)
    exact = load_pair_model(str(folder)).logits(PAIRS)
    half = load_pair_model(str(folder), dtype="bfloat16")
    assert half.dtype == "bfloat16"
    np.testing.assert_allclose(half.logits(PAIRS), exact, atol=0.15)


def test_what_a_model_says_of_itself(tmp_path: Path) -> None:
    loaded = load_pair_model(str(save_pairs(tmp_path)))
    assert (loaded.name, loaded.num_labels, loaded.id2label) == (str(tmp_path.resolve()), 3, NLI)
    assert (loaded.activation, loaded.devices, loaded.dtype, loaded.window) == ("Identity", ["cpu"], "float32", WINDOW)
    model, tokenizer = build_pairs("bert", {0: "score"})
    assert PairModel(model, tokenizer).activation == "Sigmoid"
    model.config.sentence_transformers = {"activation_fn": "torch.nn.modules.linear.Identity"}
    assert PairModel(model, tokenizer).activation == "Identity"
    model.config.sentence_transformers = {"activation_fn": "mine.Secret"}
    assert PairModel(model, tokenizer).activation == "Sigmoid"


def test_a_model_that_cannot_be_had(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"there is no model './gone': give model a model's folder or a hub name"):
        load_pair_model("./gone")
    with pytest.raises(UsageError, match="there is no model 'bart-large-mnly'"):
        load_pair_model("bart-large-mnly")
    with pytest.raises(SondeError, match="org/none is not in the hub's cache and HF_HUB_OFFLINE is set"):
        load_pair_model("org/none")
    with pytest.raises(SondeError, match=r"holds no model: there is no config.json"):
        load_pair_model(str(tmp_path))
    with pytest.raises(UsageError, match="int8 is for bi-encoders"):
        load_pair_model(str(tmp_path), dtype="int8")


def test_a_model_of_another_kind(tmp_path: Path) -> None:
    bi_encoder = save_transformer(tmp_path / "bi")
    with pytest.raises(SondeError, match="is a BertModel, not a model that scores pairs"):
        load_pair_model(str(bi_encoder))
    config = json.loads((bi_encoder / "config.json").read_text())
    (bi_encoder / "config.json").write_text(json.dumps(config | {"architectures": None}))
    with pytest.raises(SondeError, match=r"has no weights for classifier\.bias: it is no model that scores pairs"):
        load_pair_model(str(bi_encoder))


@pytest.mark.parametrize(
    ("file", "new", "said"),
    [
        ("config.json", {"num_hidden_layers": 10**9}, "has num_hidden_layers 1000000000: a model has -1,000 to 1,000"),
        (
            "config.json",
            {"num_labels": 10**9},
            "has num_labels 1000000000: a model has 0 to 100,000; use another model",
        ),
        ("config.json", {"hidden_size": 0}, "has hidden_size 0: a model has 1 to 65,536; use another model"),
        ("tokenizer.json", {"model": []}, "tokenizer.json holds no tokenizer: get the model again, or use another one"),
        (
            "tokenizer.json",
            {"normalizer": {"type": "Replace", "pattern": {"Regex": "."}, "content": "x" * 10**6}},
            "the model's tokenizer can make a text 1,000,001 times as long; the maximum is 64: use another model",
        ),
        ("tokenizer_config.json", {"model_max_length": "x"}, r"^cannot load the model in .*: get the model again"),
    ],
)
def test_hostile_folders_are_refused_in_one_line(tmp_path: Path, file: str, new: dict[str, Any], said: str) -> None:
    path = save_pairs(tmp_path) / file
    path.write_text(json.dumps(json.loads(path.read_text()) | new))
    with pytest.raises(SondeError, match=said) as refused:
        load_pair_model(str(tmp_path)).logits(FEW)
    assert "\n" not in str(refused.value)


def test_pickled_and_damaged_weights(tmp_path: Path) -> None:
    folder = save_pairs(tmp_path / "model")
    (folder / "model.safetensors").write_bytes(b"\0" * 40)
    with pytest.raises(SondeError, match=r"cannot be loaded as a model of pairs .*: get the model again"):
        load_pair_model(str(folder))
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(SondeError, match="pickled weights, which can run code"):
        load_pair_model(str(folder))
