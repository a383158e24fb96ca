"""What the command line prints holds no control character, whatever a stranger wrote into a collection."""

import json
import re
import sys
from io import StringIO
from pathlib import Path
from typing import Any, cast

import pytest
from command_line import Command, command, inject
from fake_encoder import FakeEncoder
from hostile import CONTROLS, hostile

from sonde.app.cli.output import VisibleStream, unchanged

ORDERS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
SHOWN = r"a\u001b]0;owned\u0007b\u001b[2Jc\u009b31md\u202ee\u2066f\u0008g h i j\u007fk l"
"""The hostile text as it is printed: line breaks of a name as blanks, other control characters as escapes."""


@pytest.fixture
def sonde(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    inject(monkeypatch, FakeEncoder())
    monkeypatch.setattr(sys, "stdout", sys.stdout)  # `main` puts others in their place
    monkeypatch.setattr(sys, "stderr", sys.stderr)
    return command(capsys, monkeypatch)


COLUMN, ID = f"column {CONTROLS}", f"0 {CONTROLS}"
WHERE = f"\"{COLUMN}\" = 'two {CONTROLS}'"
COMMANDS: list[tuple[object, ...]] = [
    ("info",), ("verify",), ("runs",), ("export",), ("repair",), ("compact",),
    ("search", "parcel late", "--explain", "-k", "20"), ("search", CONTROLS), ("search", "x", "--where", CONTROLS),
    ("search", "parcel", "--where", WHERE), ("similar", ID), ("similar", CONTROLS),
    ("runs", f"clusters {CONTROLS}"), ("runs", f"clusters {CONTROLS}", "--by", COLUMN), ("runs", "--delete", CONTROLS),
    ("runs", f"labels {CONTROLS}"), ("runs", CONTROLS),
    ("topic",), ("topic", "0"), ("topic", "--tree"), ("topic", "--over", "day"), ("topic", "--over", COLUMN),
    ("topic", CONTROLS), ("map",), ("tag",), ("tag", CONTROLS), ("tag", f"tag {CONTROLS}"),
    ("correct",), ("correct", "--unsure"), ("correct", ID, CONTROLS), ("judge",), ("judge", CONTROLS),
    ("duplicates",), ("compare", "--where", WHERE, "--where", "theme = 'screen'"), ("compare", CONTROLS, CONTROLS),
    ("label", CONTROLS, "y"), ("cluster", "--name", CONTROLS), ("delete", CONTROLS), ("curve",),
    ("evaluate", "labels", "--truth", COLUMN), ("evaluate", "clusters", "--truth", COLUMN), ("evaluate", "search"),
    ("tune",), ("export", "--to", CONTROLS), ("export", "--to", f"{CONTROLS}.csv"), (CONTROLS,), (f"--{CONTROLS}",),
]  # fmt: skip
"""Commands and what follows; the collection is put behind the command."""


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile") / "c.sonde"
    hostile(folder, CONTROLS).close()
    return folder


def line(words: tuple[object, ...], folder: Path) -> list[object]:
    """Return a command line: the collection after the command, which has two words for `evaluate`."""
    place = 2 if words[0] == "evaluate" else 1
    return [*words[:place], folder, *words[place:]]


@pytest.mark.parametrize("words", COMMANDS, ids=[str(number) for number in range(len(COMMANDS))])
def test_no_command_prints_a_control_character(
    sonde: Command, collection: Path, words: tuple[object, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for json_lines in ((), ("--json",)):
        ran = sonde(*line(words, collection), *json_lines)
        assert "Traceback" not in ran.err
        if words[0] != "export":
            assert ORDERS.findall(ran.out) == []
        assert ORDERS.findall(ran.err) == []


def test_it_is_shown_as_an_escape_and_json_keeps_its_value(sonde: Command, collection: Path) -> None:
    assert f"column {SHOWN}" in sonde("info", collection).out
    ran = sonde("info", collection, "--json")
    assert COLUMN in json.loads(ran.out)["fields"]
    hits = [json.loads(each) for each in sonde("search", collection, "parcel", "-k", 100, "--json").out.splitlines()]
    assert ID in [hit["id"] for hit in hits]


def test_an_export_is_unchanged_unless_it_goes_to_a_terminal(
    sonde: Command, collection: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert sonde("export", collection, "--to", tmp_path / "all.jsonl").code == 0
    written = (tmp_path / "all.jsonl").read_text("utf-8")
    assert "\x9b" in written and "\u202e" in written
    assert sonde("export", collection).out == written
    monkeypatch.setattr(unchanged(sys.stdout), "isatty", lambda: True)
    shown = sonde("export", collection).out
    assert ORDERS.findall(shown) == []
    assert [json.loads(each) for each in shown.splitlines()] == [json.loads(each) for each in written.split("\n")[:-1]]


def test_a_progress_bar_moves_the_cursor_and_sentences_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    from sonde.app.cli.output import progress
    from sonde.indexer.progress import Progress

    class Terminal(StringIO):
        def isatty(self) -> bool:
            return True

    plain = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", cast(Any, VisibleStream(plain)))
    with progress() as notify:
        notify(Progress(f"stage {CONTROLS} [bold]", 1, 2, "units"))
        notify(f"sentence {CONTROLS}")
    assert "\x1b[2K" in plain.getvalue() or "\x1b[?25l" in plain.getvalue()
    for order in ("\x1b]0;", "\x1b[2J", "\x9b", "\u202e", "\x08"):
        assert order not in plain.getvalue()
    assert f"sentence {SHOWN}"[:40] in plain.getvalue().replace("\n", "")
