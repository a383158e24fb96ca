"""A filter finds documents by the name that the column of the ids has in the source."""

from pathlib import Path

import pytest
from command_line import Command


@pytest.mark.parametrize("shards", [(), ("--shards", "2")])
def test_the_ids_under_the_name_of_their_column(tmp_path: Path, sonde: Command, shards: tuple[str, ...]) -> None:
    path, to = tmp_path / "tickets.csv", tmp_path / "t.sonde"
    path.write_text("Kunden-Nr,text\n" + "".join(f"K{n:03},This is text number {n}\n" for n in range(20)))
    sonde("index", path, "--to", to, "--id", "Kunden-Nr", *shards)
    for where in ("\"Kunden-Nr\" = 'K007'", "\"kunden-nr\" = 'K007'", "id = 'K007'"):
        assert sonde("count", to, "--where", where).out == "1 document\n", where
    said = 'write the column in double quotes: "Kunden-Nr" = …'
    sonde("count", to, "--where", "Kunden-Nr = 'K007'").refused(said, code=2)
    assert "Kunden-Nr is never 'K7': did you mean" in sonde("count", to, "--where", "\"Kunden-Nr\" = 'K7'").err


def test_metadata_and_built_in_names_go_first(tmp_path: Path, sonde: Command) -> None:
    path, to = tmp_path / "rows.csv", tmp_path / "t.sonde"
    path.write_text("Title,text\n" + "".join(f"T{n:03},This is text number {n}\n" for n in range(20)))
    sonde("index", path, "--to", to, "--id", "Title", "--title", "")
    assert sonde("count", to, "--where", "Title IS NULL").out == "20 documents\n"
