"""Types that the user gives to columns, in the collection: remembered, changed later, and kept to."""

from datetime import date
from pathlib import Path
from typing import Any

import pytest
from command_line import Command
from fake_encoder import FakeEncoder
from stored import opened

from sonde import ReadOptions, UsageError
from sonde.app.api import Collection, index

DIRTY = "id,text,n,day,version\n" + "".join(
    f"{n},Text number {n} is here,{'unknown' if n == 3 else n},0{1 + n % 9}/04/2024,1.{n}0\n" for n in range(12)
)
TYPES = {"n": "integer", "day": "date:%d/%m/%Y", "version": "text"}


def run(folder: Path, content: str = DIRTY, types: dict[str, str] | None = None, **given: Any) -> list[str]:
    """Index a table; return what was said."""
    (folder / "t.csv").write_text(content)
    said: list[str] = []
    encoder: Any = FakeEncoder()
    reading = ReadOptions(type=types or {})
    index(
        folder / "t.csv",
        folder / "t.sonde",
        read=reading,
        encoder=encoder,
        progress=lambda each: said.append(str(each)),
        **given,
    ).close()
    return [
        sentence for sentence in said if "changes from" in sentence or "stays" in sentence or "left out" in sentence
    ]


def fields(folder: Path) -> dict[str, str]:
    with Collection.open(folder / "t.sonde") as collection:
        assert collection.verify() == []
        return dict(collection.info().fields)


@pytest.mark.parametrize("shards", [None, 2])
def test_types_are_given_and_remembered(tmp_path: Path, shards: int | None) -> None:
    left_out = (
        f"note: {tmp_path / 't.csv'}: 1 value of 'n' does not fit the type integer and was left out: 'unknown' (row 4)"
    )
    assert run(tmp_path, types=TYPES, shards=shards) == [left_out]
    assert fields(tmp_path) == {"n": "integer", "day": "date", "version": "text"}
    with Collection.open(tmp_path / "t.sonde") as collection:
        assert [collection.matching(where)[0] for where in ("n >= 10", "n IS NULL")] == [2, 1]
        assert collection.get("0").metadata == {"n": 0, "day": date(2024, 4, 1), "version": "1.00"}
    assert run(tmp_path) == [left_out]
    more = "id,text,n,day,version\n90,Another text,many,28/02/2024,2\n"
    assert run(tmp_path, more)[0].endswith(
        "1 value of 'n' does not fit the type integer and was left out: 'many' (row 1)"
    )
    assert fields(tmp_path) == {"n": "integer", "day": "date", "version": "text"}
    with Collection.open(tmp_path / "t.sonde") as collection:
        assert collection.get("90").metadata == {"day": date(2024, 2, 28), "version": "2"}


def test_a_field_gets_another_type_later(tmp_path: Path) -> None:
    run(tmp_path)
    assert fields(tmp_path) == {"n": "text", "day": "text", "version": "real"}
    said = run(tmp_path, types=TYPES)
    assert sorted(said[:3]) == [
        "day changes from type text to date, as set",
        "n changes from type text to integer, as set",
        "version changes from type real to text, as set",
    ]
    assert fields(tmp_path) == {"n": "integer", "day": "date", "version": "text"}
    assert list(opened(tmp_path / "t.sonde").rows())[11]["version"] == "1.110"
    run(tmp_path, types={"n": "real"})
    assert fields(tmp_path)["n"] == "real"
    assert run(tmp_path, types={"n": "text"})[0] == "n changes from type real to text, as set"
    assert run(tmp_path) == []
    assert list(opened(tmp_path / "t.sonde").rows())[3]["n"] == "unknown"


def test_a_document_that_does_not_fit_is_named(tmp_path: Path) -> None:
    run(tmp_path)
    others = "id,text,n,day,version\n0,Text number 0 is here,0,01/04/2024,1\n"
    said = "n stays text, because 'unknown' of document '3' is not an integer: correct or delete that document, and "
    assert run(tmp_path, others, {"n": "integer"}) == [said + "index again"]
    with Collection.open(tmp_path / "t.sonde", device="cpu") as collection:
        collection.delete(["3"])
    assert run(tmp_path, others) == ["n changes from type text to integer, as set"]
    assert fields(tmp_path)["n"] == "integer"


@pytest.mark.parametrize("shards", [None, 2])
def test_the_format_of_dates_that_was_found_is_kept(tmp_path: Path, shards: int | None) -> None:
    """In a small file of the next week, day and month can be either way round."""
    run(tmp_path, "id,text,day\n1,A text,25/12/2023\n2,Another,03/04/2024\n", {"day": "date"}, shards=shards)
    for types in ({}, {"day": "date"}):
        run(tmp_path, "id,text,day\n3,A third text,05/06/2024\n", types)
    with Collection.open(tmp_path / "t.sonde") as collection:
        assert [collection.get(id).metadata["day"] for id in "23"] == [date(2024, 4, 3), date(2024, 6, 5)]


def test_shards_keep_the_types_that_they_were_given(tmp_path: Path) -> None:
    run(tmp_path, types=TYPES, shards=2)
    said = "t.sonde is in shards, whose columns keep the types that they were given when it was made: leave out type"
    with pytest.raises(UsageError, match=said):
        run(tmp_path, types={"n": "real"})
    run(tmp_path, types={"n": "integer"})
    assert fields(tmp_path) == {"n": "integer", "day": "date", "version": "text"}


def test_on_the_command_line(tmp_path: Path, sonde: Command) -> None:
    (tmp_path / "t.csv").write_text(DIRTY)
    index_it = ("index", tmp_path / "t.csv", "--to", tmp_path / "t.sonde", "--type")
    said = "--type 'integer' is not COLUMN=TYPE: write, for example, --type stars=integer"
    sonde(*index_it, "integer").refused(said, code=2)
    sonde(*index_it, "m=integer").refused("the typed column 'm' does not exist", code=2)
    assert not (tmp_path / "t.sonde").exists()
