"""What a person brought stays as it is: no command writes over the file that a collection was made from."""

import json
from pathlib import Path

import pytest
from command_line import Command
from small_reviews import ROWS, encoder, lines, sonde  # noqa: F401  (fixtures)


@pytest.mark.parametrize("shards", [[], ["--shards", 2]])
@pytest.mark.parametrize("command", ["export", "duplicates"])
def test_the_source_is_not_overwritten(sonde: Command, tmp_path: Path, command: str, shards: list[object]) -> None:  # noqa: F811
    source = lines(tmp_path / "reviews.jsonl", ROWS)
    before = source.read_bytes()
    assert sonde("index", source, "--to", tmp_path / "r.sonde", *shards).code == 0
    told = f"{source} is the file that the collection was made from: write to another file"
    sonde(command, tmp_path / "r.sonde", "--to", source).failed(told, code=2)
    assert source.read_bytes() == before
    for _ in range(2):
        assert sonde(command, tmp_path / "r.sonde", "--to", tmp_path / "other.jsonl").code == 0


@pytest.mark.parametrize("together", [True, False])
def test_none_of_several_sources_is_overwritten(sonde: Command, tmp_path: Path, together: bool) -> None:  # noqa: F811
    """Only the first source of the first run was known, and none of several: an export replaced the others."""
    sources = [lines(tmp_path / f"{n}.jsonl", [row | {"id": f"{n}{row['id']}"} for row in ROWS]) for n in "abc"]
    before = [source.read_bytes() for source in sources]
    for some in [sources] if together else [[source] for source in sources]:
        assert sonde("index", *some, "--to", tmp_path / "r.sonde").code == 0
    for source in sources:
        told = f"{source} is a file that the collection was made from: write to another file"
        sonde("export", tmp_path / "r.sonde", "--to", source).failed(told, code=2)
    assert [source.read_bytes() for source in sources] == before


def test_corrections_do_not_overwrite_the_source(sonde: Command, tmp_path: Path) -> None:  # noqa: F811
    source = lines(tmp_path / "reviews.jsonl", ROWS)
    before, folder = source.read_bytes(), tmp_path / "r.sonde"
    assert sonde("index", source, "--to", folder).code == 0
    id = json.loads(sonde("search", folder, "a", "-k", "1", "--json").out)["id"]
    assert sonde("runs", "correct", folder, id, "--label", "good", "--run", "tone").code == 0
    told = f"{source} is the file that the collection was made from: write to another file"
    sonde("runs", "correct", folder, "--run", "tone", "--to", source).failed(told, code=2)
    assert source.read_bytes() == before
    other = tmp_path / "corrections.csv"
    ran = sonde("runs", "correct", folder, "--run", "tone", "--to", other)
    assert (ran.code, ran.err) == (0, f"1 correction written to {other}\n")
    assert other.read_text().splitlines() == ["id,label", f"{id},good"]


def test_both_can_be_moved_together(sonde: Command, tmp_path: Path) -> None:  # noqa: F811
    (tmp_path / "one").mkdir()
    source = lines(tmp_path / "one" / "reviews.jsonl", ROWS)
    assert sonde("index", source, "--to", tmp_path / "one" / "r.sonde").code == 0
    (tmp_path / "one").rename(tmp_path / "two")
    sonde("export", tmp_path / "two" / "r.sonde", "--to", tmp_path / "two" / "reviews.jsonl").failed(
        "made from", code=2
    )
    assert sonde("export", tmp_path / "two" / "r.sonde", "--to", tmp_path / "reviews.jsonl").code == 0


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "xlsx"])
def test_a_filter_that_nothing_passes_leaves_the_file(sonde: Command, tmp_path: Path, suffix: str) -> None:  # noqa: F811
    folder, to = tmp_path / "r.sonde", tmp_path / f"good.{suffix}"
    assert sonde("index", lines(tmp_path / "reviews.jsonl", ROWS), "--to", folder).code == 0
    nothing = ("export", folder, "--to", to, "--where", "id = 'none'")
    assert sonde(*nothing).err.endswith(f"0 documents written to {to}\n")
    assert sonde("export", folder, "--to", to).code == 0
    before = to.read_bytes()
    ran = sonde(*nothing)
    ran.failed(f"there is no document to write, and {to} exists: it stays as it is", code=1)
    assert "note: no document passes the filter" in ran.err
    assert to.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["r.sonde", "reviews.jsonl", to.name])


def test_an_address_makes_no_folder(sonde: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    monkeypatch.chdir(tmp_path)
    source = lines(tmp_path / "reviews.jsonl", ROWS)
    sonde("index", source, "--to", "gs://bucket/r.sonde").refused("or s3://BUCKET/NAME.sonde", code=2)
    assert [path.name for path in tmp_path.iterdir()] == ["reviews.jsonl"]
