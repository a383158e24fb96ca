"""An encoding that the user gives: named where a row cannot be read, and refused where it is plainly another one."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import Command

from sonde.indexer.document import Document, Skipped
from sonde.indexer.errors import UsageError
from sonde.indexer.readers import ReadOptions, read_source
from sonde.indexer.readers.read import preview

ROWS = "id,text\n" + "".join(f"{n},{'Á la carte' if n in (2, 5) else 'plain text'} {n}\n" for n in range(1, 41))


def written(folder: Path, name: str, data: bytes) -> Path:
    (folder / name).write_bytes(data)
    return folder / name


def test_a_few_rows_that_are_not_of_the_encoding_are_skipped_and_say_so(tmp_path: Path) -> None:
    """The reason was "broken UTF-8", although the file was read as cp1252."""
    path = written(tmp_path, "t.csv", ROWS.encode())
    for encoding, shown in (("cp1252", "cp1252"), ("Windows-1252", "Windows-1252")):
        items = list(read_source(path, options=ReadOptions(encoding=encoding)))
        assert [item for item in items if isinstance(item, Skipped)] == [
            Skipped(f"row {n}", f"not valid {shown}: byte 0x81 at character 2 of the text") for n in (2, 5)
        ]
    assert all(isinstance(item, Document) for item in read_source(path))
    broken = written(tmp_path, "u.csv", ROWS.encode().replace(b"plain text 9", b"bad \xff"))
    reason = "broken UTF-8: byte 0xff at character 5 of the text"
    assert Skipped("row 9", reason) in list(read_source(broken, options=ReadOptions(encoding="utf8")))


def test_an_encoding_that_was_found_is_named_too(tmp_path: Path) -> None:
    good = "Où êtes-vous allés à Noël, été, forêt, garçon?\n".encode("cp1252") * 25_000  # more than the sample
    *_, last = read_source(written(tmp_path, "t.csv", b"text\n" + good + b"Bad \x81 byte\n"))
    assert last == Skipped("row 25001", "not valid cp1252: byte 0x81 at character 5 of the text")


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl"])
def test_an_encoding_that_more_than_one_row_in_twenty_lacks_is_refused(tmp_path: Path, name: str) -> None:
    rows = [f"{'Á' if n % 10 == 4 else 'x'} text {n}" for n in range(40)]
    lines = ["text", *rows] if name == "t.csv" else [f'{{"text": "{row}"}}' for row in rows]
    path = written(tmp_path, name, "\n".join(lines).encode())
    place = "row" if name == "t.csv" else "line"
    said = f"{name}: 4 of the first 40 rows are not valid cp1252, the first is {place} 5: leave out encoding to detect"
    looks: list[Callable[[ReadOptions], Any]] = [lambda given: read_source(path, options=given)]
    looks.append(lambda given: preview([path], given))
    for look in looks:
        with pytest.raises(UsageError, match=said) as caught:
            look(ReadOptions(encoding="cp1252"))
        assert (caught.value.field, caught.value.value) == ("encoding", "cp1252")
    assert len(list(read_source(path))) == 40


def test_nothing_is_stored_of_a_file_in_another_encoding(tmp_path: Path, sonde: Command) -> None:
    path = written(tmp_path, "t.csv", ("text\n" + "Ápropos, Íslenska, Ýmir\n" * 30).encode())
    ran = sonde("index", path, "--to", tmp_path / "t.sonde", "--encoding", "cp1252")
    ran.refused("30 of the first 30 rows are not valid cp1252", "leave out --encoding to detect it", code=2)
    assert not (tmp_path / "t.sonde").exists()
