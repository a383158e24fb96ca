"""What a run over shards tells: each line names its shard; and the FAISS indexes of shards, told as one."""

import re
from pathlib import Path
from typing import Any

import pytest
from fake_encoder import FakeEncoder

from sonde.app.api import index
from sonde.indexer.ann.settings import AnnInfo
from sonde.indexer.ingest import BuildReport
from sonde.indexer.progress import Progress
from sonde.indexer.sharded import build
from sonde.indexer.sharded.info import joined_ann


def told(source: list[dict[str, str]], folder: Path) -> list[Progress | str]:
    events, encoder = list[Progress | str](), FakeEncoder()
    given: Any = encoder
    index(source, folder, shards=2, encoder=given, progress=events.append)
    return events


def test_lines_name_their_shard_and_its_size(tmp_path: Path) -> None:
    rows = [{"id": str(number), "text": f"apple number {number}"} for number in range(80)]
    found = []
    for count in (40, 80):
        lines = [event for event in told(rows[:count], tmp_path / "c.sonde") if isinstance(event, str)]
        pattern = re.compile(r"shard (\d\d) \([12] of 2\): FAISS index: (\d+) vectors: exact")
        faiss = [pattern.match(line) for line in lines if "FAISS" in line]
        assert [each and each[1] for each in faiss] == ["00", "01"]
        found.append(sum(int(each[2]) for each in faiss if each))
    assert found == [40, 80]


def test_a_run_that_continues_a_stopped_one_counts_only_its_own_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One shard was published when the run was stopped; its documents are unchanged, as in one collection."""
    rows = [{"id": str(number), "text": f"apple number {number}"} for number in range(80)]
    folder, encoder, real = tmp_path / "c.sonde", FakeEncoder(), build.build_shard
    given: Any = encoder

    def stopped(task: Any, *rest: Any) -> Any:
        if task.shard:
            raise KeyboardInterrupt("stopped here")
        return real(task, *rest)

    with monkeypatch.context() as patched:
        patched.setattr(build, "build_shard", stopped)
        with pytest.raises(KeyboardInterrupt, match="stopped here"):
            index(rows, folder, shards=2, encoder=given)
    report = index(rows, folder, shards=2, encoder=given).report
    assert isinstance(report, BuildReport)
    assert 0 < report.unchanged < 80
    assert (report.added, report.embedded) == (80 - report.unchanged, 80 - report.unchanged)
    assert (report.tokens > 0, report.replaced, report.deleted) == (True, 0, 0)


def test_a_shard_with_nothing_to_embed_says_nothing_of_it(tmp_path: Path) -> None:
    rows = [{"id": str(number), "text": f"apple number {number}"} for number in range(40)]
    told(rows, tmp_path / "c.sonde")
    rows[7]["text"] = "a pear"
    events = [event for event in told(rows, tmp_path / "c.sonde") if isinstance(event, Progress)]
    begun = [event.stage for event in events if event.stage.endswith("embedding") and not event.done]
    assert len(begun) == 1


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
