"""A run that takes another column for the text says so."""

from pathlib import Path
from typing import Any

import pytest
from fake_encoder import FakeEncoder

from sonde.app.api import index

ROWS = [{"id": "1", "remark": "late", "body": "My parcel came late"}, {"id": "2", "remark": "ok", "body": "Fine"}]
SAID = "note: the column 'remark' becomes the text; so far, {} has it as metadata: if you did not mean that, choose"


@pytest.mark.parametrize(("text", "shards", "said"), [("remark", None, True), ("remark", 2, True), ("body", 2, False)])
def test_a_column_that_was_metadata_becomes_the_text(tmp_path: Path, text: str, shards: int | None, said: bool) -> None:
    encoder: Any = FakeEncoder()
    notes: list[str] = []
    index(ROWS, tmp_path / "c.sonde", text="body", encoder=encoder, shards=shards)
    index(ROWS, tmp_path / "c.sonde", text=text, encoder=encoder, progress=lambda each: notes.append(str(each)))
    assert sum(note.startswith(SAID.format(tmp_path / "c.sonde")) for note in notes) == said
