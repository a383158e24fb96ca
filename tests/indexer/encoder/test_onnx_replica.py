"""Models of BERT's kind run in ONNX Runtime without torch: which ones, with which vectors, and from which graph."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from safetensors.numpy import load_file, save_file
from tiny_models import ARCHITECTURES, TEXTS, save_transformer

from sonde.indexer.encoder import Encoder, load_encoder
from sonde.indexer.encoder.onnx_replica import INT32, _made, given_array, onnx_node, onnx_value, whole_number
from sonde.indexer.encoder.plain import BertShape, read_plain
from sonde.indexer.errors import SondeError

OURS = {"bert", "distilbert", "roberta", "xlm_roberta"}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SONDE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def same(found: np.ndarray, expected: np.ndarray) -> None:
    np.testing.assert_allclose(found, expected, atol=2e-6)


def both(folder: Path, **options: Any) -> tuple[Encoder, Encoder]:
    ours, library = load_encoder(str(folder), **options), load_encoder(str(folder), engine="torch", **options)
    assert (ours.engine, library.engine) == ("onnxruntime", "torch")
    assert ours.spec == library.spec
    return ours, library


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_engine_of_each_architecture(tmp_path: Path, architecture: str) -> None:
    encoder = load_encoder(str(save_transformer(tmp_path, architecture)))
    assert encoder.engine == ("onnxruntime" if architecture in OURS else "torch")


@pytest.mark.parametrize("pooling", ["mean", "cls"])
@pytest.mark.parametrize("architecture", sorted(OURS))
def test_the_vectors_of_torch(tmp_path: Path, architecture: str, pooling: str) -> None:
    ours, library = both(save_transformer(tmp_path, architecture, pooling, normalize=pooling == "cls"))
    texts = [*TEXTS, "word " * 90, *("A sentence of some words." * (number % 7 + 1) for number in range(40))]
    for query in (False, True):
        same(ours.encode_texts(texts, query), library.encode_texts(texts, query))
        same(ours.encode_texts(texts[:1], query), library.encode_texts(texts[:1], query))


@pytest.mark.parametrize(
    "options", [{"truncate_dim": 8}, {"normalize": False}, {"max_tokens": 12, "query_prompt": "ask: "}]
)
def test_settings_mean_the_same(tmp_path: Path, options: dict[str, Any]) -> None:
    ours, library = both(save_transformer(tmp_path, normalize=True), **options)
    same(ours.encode_texts(TEXTS, query=True), library.encode_texts(TEXTS, query=True))


def test_vectors_of_tokens(tmp_path: Path) -> None:
    ours, library = both(save_transformer(tmp_path))
    pairs = zip(*(each.token_vectors(each.tokenize(TEXTS)) for each in (ours, library)), strict=True)
    for found, expected in pairs:
        assert (found.ids.tolist(), found.places.tolist()) == (expected.ids.tolist(), expected.places.tolist())
        same(found.vectors, expected.vectors)


@pytest.mark.parametrize("pooling", ["max", "lasttoken", ["mean", "max"]])
def test_another_pooling_runs_in_torch(tmp_path: Path, pooling: Any) -> None:
    assert load_encoder(str(save_transformer(tmp_path, pooling=pooling))).engine == "torch"


def changed(folder: Path, name: str, **values: object) -> Path:
    (folder / name).write_text(json.dumps(json.loads((folder / name).read_text()) | values))
    return folder


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("config.json", {"hidden_act": "relu"}),
        ("tokenizer_config.json", {"padding_side": "left"}),
        ("tokenizer_config.json", {"truncation_side": "left"}),
        ("1_Pooling/config.json", {"include_prompt": False}),
    ],
)
def test_what_the_graph_has_not_runs_in_torch(tmp_path: Path, name: str, values: dict[str, object]) -> None:
    assert load_encoder(str(changed(save_transformer(tmp_path), name, **values))).engine == "torch"


def test_weights_in_half_precision(tmp_path: Path) -> None:
    folder = save_transformer(tmp_path)
    weights = load_file(folder / "model.safetensors")
    save_file({name: value.astype(np.float16) for name, value in weights.items()}, folder / "model.safetensors")
    ours, library = both(folder)
    same(ours.encode_texts(TEXTS), library.encode_texts(TEXTS))


def test_weights_that_do_not_fit_are_refused_in_one_line(tmp_path: Path) -> None:
    folder = save_transformer(tmp_path)
    weights = load_file(folder / "model.safetensors")
    wide = next(name for name in weights if name.endswith("0.intermediate.dense.weight"))
    save_file(weights | {wide: weights[wide][:, :-1].copy()}, folder / "model.safetensors")
    with pytest.raises(SondeError, match=r"^the model cannot be loaded: its weights do not fit its config\.json"):
        load_encoder(str(folder)).encode_texts(["refund"])


def test_weights_of_other_names_are_left_to_the_library(tmp_path: Path) -> None:
    folder = save_transformer(tmp_path)
    weights = load_file(folder / "model.safetensors")
    save_file({f"x{number}": value for number, value in enumerate(weights.values())}, folder / "model.safetensors")
    assert read_plain(folder) is None


def test_numbers_that_are_not_finite(tmp_path: Path) -> None:
    folder = save_transformer(tmp_path)
    weights = load_file(folder / "model.safetensors")
    words = next(name for name in weights if name.endswith("word_embeddings.weight"))
    save_file(weights | {words: np.full_like(weights[words], np.nan)}, folder / "model.safetensors")
    encoder = load_encoder(str(folder))
    assert encoder.engine == "onnxruntime"
    with pytest.raises(SondeError, match="non-finite numbers in float32"):
        encoder.encode_texts(["refund"])


def test_the_graph_is_kept_and_made_again(tmp_path: Path, cache: Path) -> None:
    folder = save_transformer(tmp_path)
    first = load_encoder(str(folder)).encode_texts(TEXTS[:1])
    [kept] = cache.glob("graphs/*.onnx")
    assert kept.stat().st_size < 20_000
    for content in (kept.read_bytes(), b"damaged", kept.read_bytes()[:-1] + b"x"):
        kept.write_bytes(content)
        same(load_encoder(str(folder)).encode_texts(TEXTS[:1]), first)


def test_no_torch_is_loaded(tmp_path: Path) -> None:
    folder = save_transformer(tmp_path)
    code = f"""
import sys
from sonde.indexer.encoder import load_encoder
encoder = load_encoder({str(folder)!r}, device="cpu")
encoder.encode_texts(["one"] * 500), encoder.encode_texts(["two"], query=True)
print(sorted({{"torch", "transformers", "sentence_transformers", "onnx"}} & set(sys.modules)))
"""
    for _ in range(2):  # the graph is made once
        found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert found.stdout.strip() == "[]"


SHAPE = BertShape(kind="bert", hidden=384, heads=12, layers=2, epsilon=1e-12, first=0)
ARRAYS = {"words": (30_522, 384), "types.rows": (2, 384), "norm.scale": (384,)}


def test_a_node_an_input_and_an_array_are_those_of_the_helpers() -> None:
    node = onnx.NodeProto.FromString(
        onnx_node("Attention", ["a", "", "b"], ["out"], "com.microsoft", num_heads=12, epsilon=1e-12)
    )
    assert node == helper.make_node(
        "Attention", ["a", "", "b"], ["out"], domain="com.microsoft", num_heads=12, epsilon=1e-12
    )
    found = onnx.ValueInfoProto.FromString(onnx_value("ids", INT32, ("texts", 300)))
    assert found == helper.make_tensor_value_info("ids", TensorProto.INT32, ("texts", 300))
    array = TensorProto.FromString(given_array("words", (30_522, 384)))
    wanted = TensorProto(
        name="words", dims=[30_522, 384], data_type=TensorProto.FLOAT, data_location=TensorProto.EXTERNAL
    )
    wanted.external_data.add(key="location", value="given")
    assert array == wanted
    whole = TensorProto.FromString(whole_number("one", 1))
    assert whole == TensorProto(name="one", dims=[1], data_type=TensorProto.INT64, int64_data=[1])


@pytest.mark.parametrize("first_only", [False, True])
def test_a_whole_graph(first_only: bool) -> None:
    model = onnx.load_model_from_string(_made(SHAPE, ARRAYS, first_only))
    assert (model.ir_version, [(each.domain, each.version) for each in model.opset_import]) == (
        10, [("", 20), ("com.microsoft", 1)],
    )  # fmt: skip
    nodes = [each.op_type for each in model.graph.node]
    layer = ["Attention", "MatMul", "SkipLayerNormalization", "MatMul", "BiasGelu", "MatMul", "SkipLayerNormalization"]
    last = [layer[0], "Slice", "Slice", *layer[1:]] if first_only else layer
    assert nodes == ["EmbedLayerNormalization", *layer, *last]
    assert [each.name for each in model.graph.input] == ["ids", "lengths", "types"]
    assert [each.name for each in model.graph.output] == ["tokens"]
    arrays = {each.name: tuple(each.dims) for each in model.graph.initializer}
    assert arrays == ARRAYS | ({"zero": (1,), "one": (1,)} if first_only else {})
