"""The option --on where Ray is not used: mistakes are found before anything is read."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from command_line import Command
from small_reviews import ROWS, lines

from sonde.app.ray.connect import connected, named
from sonde.indexer.errors import SondeError


def test_on_needs_shards(sonde: Command, tmp_path: Path):
    source = lines(tmp_path / "reviews.jsonl", ROWS)
    sonde("index", source, "--to", tmp_path / "c.sonde", "--on", "ray").refused("--on needs --shards", code=2)
    assert not (tmp_path / "c.sonde").exists()


@pytest.mark.parametrize("address", ["spark", "ray://", "ray://host", "http://host:10001"])
def test_an_address_that_is_none(sonde: Command, tmp_path: Path, address: str):
    source = lines(tmp_path / "reviews.jsonl", ROWS)
    found = sonde("index", source, "--to", tmp_path / "c.sonde", "--shards", "2", "--on", address)
    found.refused(f"--on is {address!r}: give ray, or ray://HOST:PORT for a running cluster", code=2)
    assert not (tmp_path / "c.sonde").exists()


def test_without_ray_installed(sonde: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    source = lines(tmp_path / "reviews.jsonl", ROWS)
    found = sonde("index", source, "--to", tmp_path / "c.sonde", "--shards", "2", "--on", "ray")
    found.refused("--on ray needs Ray, which is not installed: pip install 'sonde[distributed]'")
    assert not (tmp_path / "c.sonde").exists()


def test_ray_that_does_not_start_on_this_machine(monkeypatch: pytest.MonkeyPatch):
    def init(**_: object) -> None:
        raise ConnectionError("The port is taken.\nMore lines.")

    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(init=init))
    said = r"Ray does not start on this machine \(The port is taken\): try again, or work without Ray"
    with pytest.raises(SondeError, match=said), connected("ray"):
        pass


def test_what_messages_call_ray():
    assert [named("ray"), named("ray://head:10001")] == ["Ray on this machine", "Ray at ray://head:10001"]
