"""An encoding that was given is used for later files of the collection that are not UTF-8."""

from pathlib import Path
from typing import Any

import pytest
from fake_encoder import FakeEncoder

from sonde import ReadOptions
from sonde.app.api import Collection, index

POLISH = ["Kraków: był późno", "Łódź: jakość dobra", "Gdańsk: żółta paczka"]
"""Such bytes in cp1250 are taken for cp1250; a user may know better."""


def run(path: Path, encoding: str | None = None, **given: Any) -> str:
    """Index a file; return the line that says how it was read."""
    said: list[str] = []
    engine: Any = FakeEncoder()
    reading = ReadOptions(encoding=encoding)
    to = path.parent / "t.sonde"
    index(path, to, read=reading, encoder=engine, progress=lambda each: said.append(str(each)), **given).close()
    return next(line for line in said if line.startswith(str(path)))


def table(path: Path, encoding: str, texts: list[str] = POLISH) -> Path:
    path.write_bytes("".join(["id;text\n", *(f"{n};{text}\n" for n, text in enumerate(texts))]).encode(encoding))
    return path


def texts(folder: Path) -> list[str]:
    with Collection.open(folder / "t.sonde") as collection:
        return [collection.get(str(n)).text for n in range(3)]


@pytest.mark.parametrize("shards", [None, 2])
def test_an_encoding_that_was_given_is_used_again(tmp_path: Path, shards: int | None) -> None:
    path = table(tmp_path / "t.csv", "cp1250")
    wrong = [text.encode("cp1250").decode("cp1252") for text in POLISH]
    assert run(path, "cp1252", shards=shards).endswith("read as: delimiter ';', cp1252")
    assert texts(tmp_path) == wrong
    assert run(path).endswith("read as: delimiter ';', cp1252, as before")
    assert texts(tmp_path) == wrong


def test_a_file_in_utf8_is_read_as_utf8_and_another_encoding_can_be_given(tmp_path: Path) -> None:
    path = table(tmp_path / "t.csv", "cp1250")
    run(path, "cp1252")
    table(path, "utf-8")
    assert run(path).endswith("read as: delimiter ';', utf-8")
    assert run(path, "utf-8").endswith("read as: delimiter ';', utf-8")
    assert texts(tmp_path) == POLISH
    table(path, "cp1250", POLISH[::-1])
    assert run(path).endswith("read as: delimiter ';', cp1252, as before")
    assert run(path, "cp1250").endswith("read as: delimiter ';', cp1250")
    assert run(path).endswith("read as: delimiter ';', cp1250, as before")
    assert texts(tmp_path) == POLISH[::-1]


def test_a_file_that_is_not_valid_in_it_is_detected(tmp_path: Path) -> None:
    path = table(tmp_path / "t.csv", "cp1250")
    run(path, "cp1252")
    table(path, "cp1250", ["Ťažký", *POLISH[1:]])  # the byte of Ť is none of cp1252
    assert run(path).endswith("read as: delimiter ';', cp1250")


def test_lines_of_json_and_texts_are_read_as_before(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes("".join(f'{{"id": "{n}", "text": "{text}"}}\n' for n, text in enumerate(POLISH)).encode("cp1250"))
    run(path, "cp1250")
    assert run(path).endswith("read as: cp1250, as before")
    assert texts(tmp_path) == POLISH
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a.txt").write_bytes("Größe".encode("cp1250"))
    (folder / "b.html").write_bytes('<meta charset="cp1252"><p>Size ³'.encode("cp1252"))
    (folder / "c.txt").write_bytes("ł".encode("cp1250"))
    index(folder, tmp_path / "u.sonde", read=ReadOptions(encoding="cp1250"), encoder=FakeEncoder()).close()  # type: ignore[arg-type]
    index(folder, tmp_path / "u.sonde", encoder=FakeEncoder()).close()  # type: ignore[arg-type]
    with Collection.open(tmp_path / "u.sonde") as collection:
        assert [collection.get(name).text for name in ("a.txt", "b.html", "c.txt")] == ["Größe", "Size ³", "ł"]
