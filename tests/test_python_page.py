"""The examples of docs/python.md run, one after the other."""

import re
from pathlib import Path
from typing import Any

import pytest
from command_line import inject
from fake_encoder import FakeEncoder

import sonde

PAGE = Path(__file__).resolve().parent.parent / "docs" / "python.md"


def test_the_examples_of_the_page_run_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    encoder: Any = FakeEncoder()
    inject(monkeypatch, encoder)
    reviews = [{"id": str(n), "text": f"The battery died, a noisy fan, late delivery {n}"} for n in range(12)]
    sonde.index(reviews, "reviews.sonde", id="id", encoder=encoder)
    known: dict[str, Any] = {}
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    for block in blocks:
        exec(block, known)
    assert len(blocks) == 7
    assert sorted(row["id"] for row in known["shop"].rows()) == ["r1", "r3", "r4"]
    assert known["matrix"].shape == (2, known["fans"].info().dimension)
    assert sum(known["labels"].counts.values()) == 3
