"""The FAISS indexes of shards, told as one."""

from typing import Any

from sonde.indexer.ann.settings import AnnInfo
from sonde.indexer.sharded.info import joined_ann


def described(kind: Any, rows: int, **values: Any) -> dict[str, Any]:
    return AnnInfo(kind, rows, rows, 4, "cosine", 0.98, 0, "", digest="ab", **values).to_dict()


def test_kinds_that_differ_are_all_named() -> None:
    exact = described("exact", 10, latency_ms=3.0, bytes=5)
    graphs = [
        described(
            "hnsw", 20, recall=recall, reached=recall > 0.98, parameters={"M": 16, "efSearch": breadth, "factor": 1}
        )
        for recall, breadth in ((0.99, 8), (0.97, 16))
    ]
    found = joined_ann([exact, *graphs])
    assert found
    assert (found["kind"], found["reason"]) == ("exact, hnsw", "3 shards: exact in 1, hnsw in 2")
    assert (found["rows"], found["vectors"], found["bytes"]) == (50, 50, 5)
    assert (found["recall"], found["reached"], found["latency_ms"]) == (0.97, False, 3.0)
    assert (found["parameters"], found["digest"]) == ({"factor": 1}, "")
    assert AnnInfo("exact", 1, 1, 4, "cosine", 0.98, 0, "").to_dict().keys() == found.keys()


def test_parameters_that_all_shards_share_stay() -> None:
    one = described("hnsw", 20, parameters={"M": 16, "efSearch": 8, "factor": 1})
    assert (joined_ann([one, one]) or {})["parameters"] == one["parameters"]
    assert joined_ann([None, None]) is None
    assert (joined_ann([one, None]) or {})["reason"] == "2 shards: hnsw in 1, none in 1"
