"""Commits come by time: a killed run repeats little, however small the collection or slow the model."""

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from killed_early import run

from sonde.indexer.document import Document, Skipped
from sonde.indexer.encoder import Tokens
from sonde.indexer.ingest.chunker import PassageInput
from sonde.indexer.ingest.plan import Batch, PlannedDocument
from sonde.indexer.ingest.run import FIRST_TOKENS, GROWTH, SECONDS, Pace
from sonde.indexer.store.writing import Identity

RUNNER = Path(__file__).parents[2] / "support" / "killed_early.py"


@pytest.mark.parametrize("shards", [0, 2], ids=["one", "shards"])
@pytest.mark.parametrize("phase", ["index", "model"])
def test_a_killed_run_embeds_only_the_rest(tmp_path: Path, phase: str, shards: int) -> None:
    folder, whole, log = tmp_path / "c.sonde", tmp_path / "whole.sonde", tmp_path / "log"
    for each in (whole, folder) if phase == "model" else ():
        run("index", shards, each, tmp_path / "before")
    total = run(phase, shards, whole, tmp_path / "whole")
    command = [sys.executable, str(RUNNER), phase, str(shards), str(folder), str(log), "200"]
    assert subprocess.run(command).returncode == -9
    done = log.stat().st_size
    assert 0 < done <= 200
    assert run(phase, shards, folder, log) == total - done


def passage(tokens: int) -> PassageInput:
    return PassageInput(0, 1, "x", Tokens(np.zeros(tokens, np.int32), tokens, False), 0)


def planned(*tokens: int) -> list[PlannedDocument]:
    return [
        PlannedDocument(str(place), Document("x"), Identity(b"", b""), False, [passage(n)])
        for place, n in enumerate(tokens)
    ]


def sizes(given: Pace, batch: Batch, clock: list[float], rate: float) -> list[int]:
    """The tokens of each part, if a model embeds `rate` tokens a second."""
    found = []
    for part in given.parts(batch):
        found.append(sum(len(each.tokens.ids) for planned in part.documents for each in planned.passages or []))
        clock[0] += found[-1] / rate
    return found


@pytest.mark.parametrize(
    ("rate", "documents", "last"), [(100.0, 150, 800), (1_000.0, 800, 8_000), (10_000_000.0, 1_500, 2_048 * 4**2)]
)
def test_a_commit_takes_some_seconds(monkeypatch: pytest.MonkeyPatch, rate: float, documents: int, last: int) -> None:
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    found = sizes(Pace(), Batch(planned(*[32] * documents), read=documents), clock, rate)
    assert found[0] == FIRST_TOKENS and sum(found) == 32 * documents
    assert found[-2] == last and (last == SECONDS * rate or last == FIRST_TOKENS * GROWTH**2)


def test_parts_hold_all_that_a_batch_holds() -> None:
    batch = Batch(planned(2_000, 100, 5_000, 10), [Skipped("row 1", "the text is empty")], 3, 1, 9)
    parts = list(Pace().parts(batch))
    assert [[each.key for each in part.documents] for part in parts] == [["0", "1"], ["2", "3"]]
    assert [part.read for part in parts] == [7, 2]
    assert [(part.unchanged, part.duplicate_ids, len(part.skipped)) for part in parts] == [(3, 1, 1), (0, 0, 0)]
    [only] = Pace().parts(Batch(unchanged=5, read=5))
    assert (only.unchanged, only.read, only.documents) == (5, 5, [])
