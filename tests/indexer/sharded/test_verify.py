"""A verification beside writers reports damage, and nothing that a writer was just replacing."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from other_encoder import loaded
from two_ways import TwoWays, rows

from sonde.app.api import Collection
from sonde.indexer.errors import SondeError
from sonde.indexer.sharded import upkeep


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A sharded collection of 40 documents."""
    TwoWays(tmp_path, 3).index(rows(40))
    return tmp_path / "sharded.sonde"


def opened(folder: Path) -> Collection:
    return Collection.open(folder, loader=loaded)  # type: ignore[arg-type]


@pytest.mark.parametrize("times", [1, pytest.param(9, marks=pytest.mark.long)], ids=["once", "at-every-attempt"])
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


def test_the_other_shards_are_verified_if_some_cannot_be_opened(folder: Path) -> None:
    """The first one that was lost was all that `sonde verify` said."""
    opened(folder).tag("all", where="stars >= 0")
    shutil.rmtree(folder / "shards" / "00")
    [vectors] = (folder / "shards" / "02").glob("*/vectors/*.npy")
    vectors.write_bytes(vectors.read_bytes()[:-4] + b"abcd")
    lost, *others = upkeep.verify_at(folder)
    assert lost.problem.startswith(f"shard 00: {folder}/shards/00/000001-")
    assert lost.problem.endswith(f" `sonde index SOURCES --to {folder} --rebuild`")
    assert all(each.problem.startswith("shard 02: ") and "000001.npy" in each.problem for each in others)
    [order] = (folder / "shards" / "01").glob("*/order.npy")
    order.write_bytes(b"no order")
    damaged, *_ = (each.problem for each in upkeep.verify_at(folder)[1:])
    assert damaged.startswith(f"shard 01: {order} is damaged")
    shutil.rmtree(folder / "shards")
    assert [each.problem[:9] for each in upkeep.verify_at(folder)] == ["shard 00:", "shard 01:", "shard 02:"]


def test_verify_of_what_is_no_shard(folder: Path) -> None:
    assert upkeep.verify_at(folder) == []
    with pytest.raises(SondeError, match="there is no collection at "):
        upkeep.verify_at(folder.with_name("other.sonde"))
    shutil.rmtree(folder / "generations")
    with pytest.raises(SondeError, match="has lost its generations, but not its shards"):
        upkeep.verify_at(folder)
