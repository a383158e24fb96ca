"""EVoC is imported without its searches of int8 and binary embeddings, and nobody misses them."""

import os
import subprocess
import sys
from types import ModuleType

import pytest
from extras import needs

from sonde.pipelines.topics.layers import UNUSED, lean_evoc

pytestmark = needs("evoc")


def test_what_sonde_does_not_use_is_neither_imported_nor_left_as_a_placeholder() -> None:
    evoc = lean_evoc()
    assert evoc.EVoC is not None
    assert [name for name in UNUSED if name in sys.modules] == []
    assert lean_evoc() is evoc


@pytest.mark.parametrize("kind", ["int8", "uint8"])
def test_who_calls_it_gets_the_real_one(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = ModuleType(f"evoc.{kind}_nndescent")
    vars(real)[f"make_{kind}_forest"] = lambda *args, **options: (args, options)
    monkeypatch.setitem(sys.modules, real.__name__, real)
    graph = sys.modules[f"{lean_evoc().__name__}.knn_graph"]
    assert getattr(graph, f"make_{kind}_forest")("data", depth=3) == (("data",), {"depth": 3})


FIT = """
import numpy as np
from sonde.pipelines.topics.layers import evoc_layers
vectors = np.random.default_rng(0).normal(size=(60, 8)).astype(np.float32)
vectors += np.repeat(np.eye(3, 8, dtype=np.float32) * 6, 20, axis=0)
layers = evoc_layers(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), 0)
found = [(layer.k, round(layer.persistence, 3)) for layer in layers]
"""


@pytest.mark.long
def test_layers_are_the_same_where_numba_has_no_openmp() -> None:
    """In a container without libgomp, the process was aborted."""
    ran = subprocess.run(
        [sys.executable, "-c", FIT + "print(found)"],
        env=os.environ | {"NUMBA_THREADING_LAYER": "workqueue"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    names: dict[str, object] = {}
    exec(FIT, names)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, f"{names['found']}\n", "")
    assert names["found"]
