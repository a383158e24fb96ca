"""A column that gives the language of each text says it to the analysis, and stays a column of the user's."""

from pathlib import Path

import pytest
from fake_encoder import FakeEncoder

from sonde.app.api import index

ROWS = [
    {"id": "a", "text": "Hallo Welt", "lang": "de"},
    {"id": "b", "text": "hello world", "lang": "en"},
    {"id": "c", "text": "bonjour monde", "lang": "fr"},
    {"id": "d", "text": "hello moon", "lang": None},
]


@pytest.mark.parametrize("name", ["lang", "language", "Sprache"])
@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_it_is_exported_counted_and_read_again(tmp_path: Path, name: str, suffix: str) -> None:
    rows = [{name if key == "lang" else key: value for key, value in row.items()} for row in ROWS]
    first = index(rows, tmp_path / "first.sonde", encoder=FakeEncoder())  # type: ignore[arg-type]
    first.export(tmp_path / f"all{suffix}")
    again = index(tmp_path / f"all{suffix}", tmp_path / "again.sonde", encoder=FakeEncoder())  # type: ignore[arg-type]
    for found in (first, again):
        assert [row[name] for row in found.rows()] == ["de", "en", "fr", None]
        assert [found.get(id).language for id in "abcd"] == ["de", "en", "fr", None]
        assert dict(found.count_by(name).values) == {"de": 1, "en": 1, "fr": 1}
        for where in (f"\"{name}\" = 'de'", "language = 'de'"):
            assert [hit.id for hit in found.search("hallo", where=where)] == ["a"]
