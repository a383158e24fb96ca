"""A small collection of reviews and the command line over it, for tests that must find it as it was."""

import json
from collections.abc import Iterator
from pathlib import Path
from shutil import copytree

import pytest
from command_line import Command, command, contents, inject, problems
from fake_encoder import FakeEncoder

ROWS = [
    {"id": "1", "text": "The battery died after a week.", "stars": 1},
    {"id": "2", "text": "Great phone, lasts for days.", "stars": 5},
    {"id": "3", "text": "The screen broke on the first day.", "stars": 2},
]


@pytest.fixture
def encoder(monkeypatch: pytest.MonkeyPatch) -> FakeEncoder:
    encoder = FakeEncoder()
    inject(monkeypatch, encoder)
    return encoder


@pytest.fixture
def sonde(encoder: FakeEncoder, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    return command(capsys, monkeypatch)


def lines(path: Path, rows: list[dict[str, object]] | list[dict[str, str]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def reviews(sonde: Command, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small collection, beside its source: a copy of one that is indexed once, since many tests take one."""
    source = lines(tmp_path / "reviews.jsonl", ROWS)
    made = tmp_path_factory.getbasetemp() / "reviews.sonde"
    if not made.exists():
        assert sonde("index", source, "--to", made).code == 0
    return copytree(made, tmp_path / "reviews.sonde")


@pytest.fixture
def unchanged(reviews: Path) -> Iterator[Path]:
    """The collection, which must be the same when the test ends."""
    before = contents(reviews)
    yield reviews
    assert contents(reviews) == before
    assert problems(reviews) == []
    assert list(reviews.rglob("*.tmp")) == []


def folder_of(path: Path, **files: bytes) -> Path:
    path.mkdir()
    for name, content in files.items():
        (path / name.replace("_", ".")).write_bytes(content)
    return path


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path
