"""What a run over shards tells: each line names its shard, and a shard with nothing to do is silent."""

import re
from pathlib import Path
from typing import Any

from fake_encoder import FakeEncoder

from sonde.app.api import index
from sonde.indexer.progress import Progress


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
        pattern = re.compile(r"shard (\d) of 2: FAISS index: (\d+) vectors: exact")
        faiss = [pattern.match(line) for line in lines if "FAISS" in line]
        assert [each and each[1] for each in faiss] == ["1", "2"]
        found.append(sum(int(each[2]) for each in faiss if each))
    assert found == [40, 80]


def test_a_shard_with_nothing_to_embed_says_nothing_of_it(tmp_path: Path) -> None:
    rows = [{"id": str(number), "text": f"apple number {number}"} for number in range(40)]
    told(rows, tmp_path / "c.sonde")
    rows[7]["text"] = "a pear"
    events = [event for event in told(rows, tmp_path / "c.sonde") if isinstance(event, Progress)]
    begun = [event.stage for event in events if event.stage.endswith("embedding") and not event.done]
    assert len(begun) == 1
