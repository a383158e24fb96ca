"""The report says which files of a folder were left out."""

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import Command
from fake_encoder import FakeEncoder

from sonde.app.api import index

SAID = "3 files of kinds that Sonde does not read were left out: 2 .rtf, 1 without a suffix"


@pytest.fixture
def src(tmp_path: Path) -> Path:
    folder = tmp_path / "src"
    folder.mkdir()
    for name in ("a.txt", "b.rtf", "c.rtf", "README", ".x"):
        (folder / name).write_text("A text.")
    return folder


@pytest.mark.parametrize("shards", [None, 2])
def test_the_report_counts_and_says_them(src: Path, shards: int | None) -> None:
    encoder: Any = FakeEncoder()
    with index(src, src.parent / "c.sonde", encoder=encoder, shards=shards) as made:
        assert made.report
        assert made.report.unread_files == {".rtf": 2, "hidden": 1, "without a suffix": 1}
        assert made.report.notes == (SAID, "1 hidden file was left out")


def test_on_the_command_line(src: Path, sonde: Command) -> None:
    ran = sonde("index", src, "--to", src.parent / "c.sonde")
    assert f"\n{SAID}\n1 hidden file was left out\ntry: sonde search" in ran.out
    report = json.loads(sonde("index", src, "--to", src.parent / "c.sonde", "--json").out)
    assert report["unread_files"] == {".rtf": 2, "hidden": 1, "without a suffix": 1}
    assert report["notes"] == [SAID, "1 hidden file was left out"]
