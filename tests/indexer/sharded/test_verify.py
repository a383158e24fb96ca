"""A verification beside writers reports damage, and nothing that a writer was just replacing."""

from pathlib import Path
from typing import Any

import pytest
from other_encoder import loaded
from two_ways import TwoWays, rows

from sonde.app.api import Collection
from sonde.indexer.sharded import upkeep


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A sharded collection of 40 documents."""
    TwoWays(tmp_path, 3).index(rows(40))
    return tmp_path / "sharded.sonde"


def opened(folder: Path) -> Collection:
    return Collection.open(folder, loader=loaded)  # type: ignore[arg-type]


@pytest.mark.parametrize("times", [1, 9], ids=["once", "at-every-attempt"])
def test_what_writers_remove_during_a_verification_is_no_fault(
    folder: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    """It reported indexes and embeddings as missing which later commits had replaced."""
    beside, left, real = opened(folder), [times], upkeep.verify

    def overtaken(part: Any) -> list[Any]:
        if left[0]:
            left[0] -= 1
            for number in range(3):
                beside.put([{"id": "new", "text": f"text {left[0]} {number}"}])
                beside.compact()
        return real(part)

    monkeypatch.setattr(upkeep, "verify", overtaken)
    assert opened(folder).verify() == []
    assert left == [0]
    newest = max((folder / "shards").glob("*/*/vectors/*.npy"), key=lambda path: path.stat().st_mtime_ns)
    newest.unlink()
    assert any(newest.name in finding.problem for finding in opened(folder).verify())
