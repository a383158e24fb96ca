"""Damaged files of every format are read, skipped or refused in one line. benchmarks/fuzz_readers.py tries more."""

from itertools import islice
from pathlib import Path

import pytest
from mutations import SEEDS, mutations, read_here

from sonde.indexer.document import Skipped
from sonde.indexer.errors import SondeError
from sonde.indexer.readers import ReadOptions
from sonde.indexer.readers.bytestream import ByteStream
from sonde.indexer.readers.formats import table_source
from sonde.indexer.readers.text_files import read_text_file


@pytest.mark.parametrize("name", SEEDS)
def test_damaged_files(tmp_path: Path, name: str) -> None:
    path = tmp_path / f"file.{'txt' if name == 'lines' else name}"
    for data in islice(mutations(name, seed=1), 100):
        path.write_bytes(data)
        assert read_here(path, name) == ""
    assert list(tmp_path.iterdir()) == [path]


def test_utf_16_that_ends_within_a_character(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_bytes(b"\xff\xfea")
    said = (
        "a.md cannot be decoded ('utf-16-le' codec can't decode byte 0x61 in position 2: truncated data): set encoding"
    )
    assert read_text_file("a.md", path, ReadOptions()) == Skipped("a.md", said)


def test_a_parquet_file_of_types_that_arrow_does_not_know(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    def refuse(path: str) -> None:
        raise pa.ArrowNotImplementedError("Integers with more than 64 bits not implemented")

    monkeypatch.setattr(pq, "read_metadata", refuse)
    path = tmp_path / "t.parquet"
    path.write_bytes(b"PAR1")
    with pytest.raises(
        SondeError, match=r"t.parquet is not a valid Parquet file, or is truncated: get a new copy \(Int"
    ):
        table_source(ByteStream("t.parquet", path), ReadOptions())
