"""A run that takes another column for the text says so, and one that would do so unasked is refused."""

from pathlib import Path
from typing import Any

import pytest
from fake_encoder import FakeEncoder

from sonde.app.api import index
from sonde.indexer.errors import UsageError

ROWS = [{"id": "1", "remark": "late", "body": "My parcel came late"}, {"id": "2", "remark": "ok", "body": "Fine"}]
SAID = "note: the column 'remark' becomes the text; so far, {} has it as metadata: if you did not mean that, choose"


@pytest.mark.parametrize(("text", "shards", "said"), [("remark", None, True), ("remark", 2, True), ("body", 2, False)])
def test_a_column_that_was_metadata_becomes_the_text(tmp_path: Path, text: str, shards: int | None, said: bool) -> None:
    encoder: Any = FakeEncoder()
    notes: list[str] = []
    index(ROWS, tmp_path / "c.sonde", text="body", encoder=encoder, shards=shards)
    index(ROWS, tmp_path / "c.sonde", text=text, encoder=encoder, progress=lambda each: notes.append(str(each)))
    assert sum(note.startswith(SAID.format(tmp_path / "c.sonde")) for note in notes) == said


@pytest.mark.parametrize("shards", [None, 2])
def test_a_source_without_the_texts_is_refused(tmp_path: Path, shards: int | None) -> None:
    encoder: Any = FakeEncoder()
    kept = index(ROWS, tmp_path / "c.sonde", id="id", text="body", encoder=encoder, shards=shards)
    (tmp_path / "more.csv").write_text("id,remark\n1,It came at last and all is well now\n2,Still fine with me\n")
    said = (
        "more.csv: the text would be the column 'remark', which is metadata in .*c.sonde: nothing was changed; choose"
    )
    with pytest.raises(UsageError, match=said):
        index(tmp_path / "more.csv", tmp_path / "c.sonde", encoder=encoder)
    assert [(kept.get(id).text, kept.get(id).metadata["remark"]) for id in "12"] == [
        ("My parcel came late", "late"), ("Fine", "ok"),
    ]  # fmt: skip
