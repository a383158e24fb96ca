"""A text is blank if nobody could read anything in it."""

from pathlib import Path

import pytest
from fake_encoder import FakeEncoder

from sonde.indexer.document import Document, is_blank
from sonde.indexer.ingest import index_documents


@pytest.mark.parametrize("text", ["", " \t\n", "\u200b", "\ufeff\u2060 \u00ad", "\u2003\u2028"])
def test_nothing_to_read(text: str) -> None:
    assert is_blank(text)


@pytest.mark.parametrize("text", ["a", " . ", "\u200b语\u200b", "🙂", "\u0301"])
def test_something_to_read(text: str) -> None:
    assert not is_blank(text)


def test_a_text_without_width_is_skipped(tmp_path: Path) -> None:
    texts = [Document("a late parcel", key="1"), Document("\u200b\u200b", key="2")]
    report = index_documents(texts, tmp_path / "c.sonde", encoder=FakeEncoder())  # type: ignore[arg-type]
    assert (report.added, report.skipped) == (1, 1)
