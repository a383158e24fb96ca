"""The graph that Sonde writes by itself is what the package onnx reads, and what its helpers would write."""

import onnx
import pytest
from onnx import TensorProto, helper

from sonde.indexer.encoder.bert import BertShape
from sonde.indexer.encoder.bert_graph import INT32, _made, given_array, onnx_node, onnx_value, whole_number

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
