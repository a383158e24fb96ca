"""EVoC is imported without its searches of int8 and binary embeddings, and nobody misses them."""

import sys
from types import ModuleType

import pytest
from extras import needs

from sonde.pipelines.topics.lean_evoc import UNUSED, lean_evoc

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
