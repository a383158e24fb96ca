"""The command line over a sharded collection: what works as on any other, and what is refused in one line."""

import json
import re
import shlex
from pathlib import Path
from shutil import copytree

import pytest
import themes
from command_line import Command
from small_reviews import ROWS, lines

from sonde.app.cli.output import quoted
from sonde.app.cli.taxonomy_forms import outside


@pytest.fixture
def sharded(sonde: Command, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of a collection that `sonde index` divided into two shards, beside its source."""
    source = lines(tmp_path / "reviews.jsonl", ROWS)
    made = tmp_path_factory.getbasetemp() / "sharded.sonde"
    if not made.exists():
        found = sonde("index", source, "--to", made, "--shards", "2")
        assert (found.code, found.out.splitlines()[0].partition(";")[0]) == (0, f"{made}: 3 added")
    return copytree(made, tmp_path / "s.sonde")


def test_search_and_similar(sonde: Command, sharded: Path, reviews: Path):
    for command in (("search", "battery week"), ("search", "phone", "--where", "stars > 1"), ("similar", "3")):
        name, *rest = command
        one, both = sonde(name, reviews, *rest, "--json"), sonde(name, sharded, *rest, "--json")
        assert both.code == 0, both.err
        assert _hits(one.out) == _hits(both.out)
    assert "2 shards" in sonde("search", sharded, "battery").err


def _hits(out: str) -> list[str]:
    return [line.split('"seconds"')[0] for line in out.splitlines()]


def test_commands_that_read(sonde: Command, sharded: Path, tmp_path: Path):
    assert "documents  3 in 2 shards" in sonde("info", sharded).out
    assert sonde("verify", sharded).said == [f"{sharded}: no problems found"]
    assert sonde("get", sharded, "2").out.splitlines()[0] == "2"
    assert sonde("count", sharded, "--where", "stars > 1").out == "2 documents\n"
    assert sonde("count", sharded, "--by", "stars").out.split()[:6] == ["1", "1", "2", "1", "5", "1"]
    assert sonde("export", sharded, "--to", tmp_path / "e.csv").code == 0
    assert sorted((tmp_path / "e.csv").read_text().splitlines())[0].startswith("1,,The battery died")


def test_updates_and_deletes_without_the_option(sonde: Command, sharded: Path, tmp_path: Path):
    source = lines(tmp_path / "more.jsonl", [{"id": "4", "text": "A new charger came.", "stars": 4}])
    assert sonde("index", source, "--to", sharded).out.startswith(f"{sharded}: 1 added;")
    assert sonde("delete", sharded, "1").code == 0
    assert sonde("get", sharded, "1").code == 1
    assert sonde("count", sharded).out == "3 documents\n"
    sonde("delete", sharded, "9").refused("there is no document with the id '9'")


COMMANDS = """
cluster C -k 4 --name k
label C --labels parcel,battery,screen,refund --name l
tag C late --where "stars <= 1"
topics C --name t
map C --name m
duplicates C
compare C --where "stars <= 1" --where "stars > 1"
check C --label theme
watch C --since 2024-04-01
taxonomy C --from k --name groups
taxonomy C
taxonomy rename C 0 parcels
taxonomy undo C
runs C
runs show C k
runs show C k 0
runs show C t
runs name C k 0 first
runs correct C parcel-3 --label battery --run l
runs correct C
runs update C k
evaluate labels C --run l --truth theme
evaluate clusters C --run k --truth theme
count C --by "cluster:k name"
runs delete C late
judge C "late parcel" parcel-1 parcel-2
judge C
repair C
verify C
export C --to OUT.csv
export C --page OUT.html
runs draw C m --to OUT.svg
"""


@pytest.mark.long
def test_analysis_prints_what_it_prints_for_one_collection(sonde: Command, tmp_path: Path):
    source = lines(tmp_path / "texts.jsonl", themes.rows(20))
    for name, options in (("one", ()), ("two", ("--shards", "3"))):
        assert sonde("index", source, "--to", tmp_path / f"{name}.sonde", *options).code == 0
    for command in COMMANDS.strip().splitlines():
        one, two = (_ran(sonde, command, tmp_path, name) for name in ("one", "two"))
        assert one == two, command
        assert one[0] == 0, command
    assert (tmp_path / "one.csv").read_bytes() == (tmp_path / "two.csv").read_bytes()


def _ran(sonde: Command, command: str, folder: Path, name: str) -> tuple[int, str, str]:
    """Run a command on a collection; return its exit code and what it printed, without times and the name."""
    place = str(folder / name)
    words = [f"{place}.sonde" if word == "C" else word.replace("OUT", place) for word in shlex.split(command)]
    ran = sonde(*words)
    out, err = (re.sub(r"\d+\.\d+ s|\d+ ms|\d\d:\d\d(:\d\d)?", "TIME", text) for text in (ran.out, ran.err))
    return ran.code, out.replace(place, "NAME"), err.replace(place, "NAME")


def test_runs_filter_searches_and_outlive_updates(sonde: Command, sharded: Path, tmp_path: Path):
    assert sonde("tag", sharded, "bad", "--where", "stars <= 2").code == 0
    found = sonde("search", sharded, "phone", "--where", '"tag:bad"', "--json").out
    assert {json.loads(line)["id"] for line in found.splitlines() if '"id"' in line} == {"1", "3"}
    source = lines(tmp_path / "more.jsonl", [{"id": "3", "text": "The screen is fine.", "stars": 4}])
    assert sonde("index", source, "--to", sharded).code == 0
    assert sonde("runs", sharded).out.split()[:4] == ["tag", "bad", "2", "documents"], "a tag stays"
    assert sonde("verify", sharded).said == [f"{sharded}: no problems found"]


def test_the_web_ui_is_refused_for_an_address(sonde: Command):
    sonde("ui", "s3://team/reviews.sonde").refused("search s3://team/reviews.sonde with `sonde search`", code=2)


def test_what_is_damaged_is_repaired(sonde: Command, sharded: Path):
    [path, *_] = sharded.glob("shards/*/*/vectors/*.npy")
    shard = int(path.parents[2].name)
    path.write_bytes(path.read_bytes()[:-2] + b"\0\1")
    found = sonde("verify", sharded)
    assert (found.code, found.said[-1].partition(": ")[2]) == (1, f"run `sonde repair {sharded}`")
    repaired = sonde("repair", sharded)
    assert (repaired.code, repaired.said[-1]) == (0, f"{sharded} is repaired")
    assert re.search(rf"shard {shard:02d}: embedded \d passages? of {path.name} again", repaired.out)
    assert sonde("verify", sharded).said == [f"{sharded}: no problems found"]
    assert sonde("repair", sharded).said == ["nothing to repair"]


def test_compact_removes_tombstones_of_all_shards(sonde: Command, sharded: Path):
    assert sonde("delete", sharded, "1", "2").code == 0
    assert sonde("info", sharded).out.count(", and 2 deleted that `sonde compact` removes\n") == 1
    assert sonde("compact", sharded).out.startswith("2 deleted passages removed, ")
    assert "2 deleted" not in sonde("info", sharded).out
    assert sonde("verify", sharded).code == 0
    assert _hits(sonde("search", sharded, "screen", "--json").out)[0].startswith('{"rank": 1, "id": "3"')


def test_an_estimate(sonde: Command, sharded: Path, tmp_path: Path):
    assert sonde("index", tmp_path / "reviews.jsonl", "--to", sharded, "--estimate").code == 0


def test_options_that_contradict(sonde: Command, sharded: Path, reviews: Path, tmp_path: Path):
    source = tmp_path / "reviews.jsonl"
    sonde("index", source, "--to", sharded, "--shards", "3").refused("has 2 shards, not 3", code=2)
    sonde("index", source, "--to", reviews, "--shards", "3").refused("is not a sharded collection", code=2)
    sonde("index", source, "--to", tmp_path / "n.sonde", "--shards", "0").refused("--shards is 0", code=2)
    assert not (tmp_path / "n.sonde").exists()


def test_a_command_line_that_is_suggested_has_both_slashes_of_an_address() -> None:
    assert quoted(Path("s3://team/my reviews.sonde")) == "'s3://team/my reviews.sonde'"
    assert quoted(Path("my reviews.sonde")) == "'my reviews.sonde'"
    assert outside(Path("s3://team/reviews.sonde"), "themes") == (
        "to list the documents in no group: sonde runs show s3://team/reviews.sonde themes -1"
    )
