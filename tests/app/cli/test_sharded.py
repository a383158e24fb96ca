"""The command line over a sharded collection: what works as on any other, and what is refused in one line."""

import inspect
from pathlib import Path
from shutil import copytree

import pytest
from command_line import Command
from fake_encoder import FakeEncoder
from small_reviews import ROWS, lines

from sonde.app.api import Collection
from sonde.app.api.opened import WITH_SHARDS
from sonde.indexer.errors import UsageError


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


REFUSED = {
    "cluster": (), "topics": (), "map": (), "compact": (), "repair": (), "late": (), "duplicates": (),
    "tag": ("t", "--where", "stars > 1"), "label": ("--labels", "good,bad"), "runs": (),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_is_not_possible_yet_is_one_line(sonde: Command, sharded: Path, name: str):
    found = sonde(name, sharded, *REFUSED[name])
    found.failed("sharded collections do not support this yet: to use it, index", "without --shards", code=2)


def test_the_web_ui_is_refused(sonde: Command, sharded: Path):
    sonde("ui", sharded).refused("the web UI does not support sharded collections yet", "sonde search", code=2)


def test_the_web_ui_is_refused_for_an_address_too(sonde: Command):
    sonde("ui", "s3://team/reviews.sonde").refused("search s3://team/reviews.sonde with `sonde search`", code=2)


def test_verify_gives_advice_that_is_possible(sonde: Command, sharded: Path):
    [path, *_] = sharded.glob("shards/*/*/vectors/*.npy")
    path.write_bytes(path.read_bytes()[:-2] + b"\0\1")
    found = sonde("verify", sharded)
    assert found.code == 1
    assert found.said[-1].endswith("restore the collection from a backup, or index its sources into a new folder")


METHODS = sorted(
    name
    for name, value in inspect.getmembers(Collection, inspect.isfunction)
    if not name.startswith("_") and name not in WITH_SHARDS
)


@pytest.mark.parametrize("name", METHODS)
def test_every_other_method_is_refused(name: str, sharded: Path, encoder: FakeEncoder):
    """Whatever its arguments: a method that reads only one shard would be worse than none."""
    opened = Collection.open(sharded, encoder=encoder)  # type: ignore[arg-type]
    needed = [
        "x"
        for parameter in inspect.signature(getattr(opened, name)).parameters.values()
        if parameter.default is inspect.Parameter.empty
        and parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.POSITIONAL_ONLY)
    ]
    with pytest.raises(UsageError, match="sharded collections do not support this yet") as raised:
        getattr(Collection, name).__wrapped__(opened, *needed)
    assert f"{name} " not in str(raised.value)


def test_options_that_contradict(sonde: Command, sharded: Path, reviews: Path, tmp_path: Path):
    source = tmp_path / "reviews.jsonl"
    sonde("index", source, "--to", sharded, "--shards", "3").refused("has 2 shards, not 3", code=2)
    sonde("index", source, "--to", reviews, "--shards", "3").refused("is one collection without shards", code=2)
    sonde("index", source, "--to", sharded, "--late").refused("late index is not supported", code=2)
    sonde("index", source, "--to", sharded, "--estimate").refused("sharded collections do not support estimates")
    sonde("index", source, "--to", tmp_path / "n.sonde", "--shards", "0").refused("--shards is 0", code=2)
    assert not (tmp_path / "n.sonde").exists()
