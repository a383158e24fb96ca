"""Every tutorial is followed word by word, with the default model, in a folder of its own."""

import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from default_model import default_model

FOLDER = Path(__file__).parents[1] / "docs" / "tutorials"
PAGES = sorted(FOLDER.glob("*.md"))
BLOCK = re.compile(r'^```(console|python|text)(?: title="([^"]+)")?\n(.*?)^```', re.DOTALL | re.MULTILINE)
TIMES = re.compile(r"\b[\d,.]+ m?s\b")
ENOUGH = 900
LONG = ("faq", "folder", "labels", "model", "survey", "topics")
"""Tutorials of half a minute and more."""
SHORTER = {"--epochs 2": "--epochs 0.02 --batch 8"}
"""Only what takes minutes is shortened; `pytest -m slow tests/test_tutorials.py` runs it as it is."""


@dataclass(frozen=True)
class Step:
    """A command or a program, and what the tutorial shows of its output; or a file to write."""

    kind: str
    text: str
    shown: str


def steps(page: Path) -> Iterator[Step]:
    blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
    for place, (kind, title, text) in enumerate(blocks):
        if kind == "console":
            for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
                command, _, shown = part.partition("\n")
                yield Step("console", command, shown)
        elif kind == "python":
            after = blocks[place + 1] if place + 1 < len(blocks) else ("", "", "")
            yield Step("python", text, after[2] if after[0] == "text" and not after[1] else "")
        elif title:
            yield Step("file", title, text)


def like(line: str) -> str:
    """Return a line without its times; "…" at an end stands for anything."""
    return TIMES.sub("N s", line.strip())


def assert_shown(shown: str, printed: str) -> None:
    """Check that the lines that a tutorial shows were printed, in this order."""
    lines = iter([like(line) for line in printed.splitlines()])
    for wanted in filter(None, map(like, shown.splitlines())):
        if wanted == "…":
            continue
        start, end = (wanted.removeprefix("… ") if wanted[-1] != "…" else wanted[:-1]).strip(), wanted[-1] == "…"
        matches = (line.startswith(start) if end else line == wanted for line in lines)
        assert any(matches), f"not printed: {wanted}\n\n{printed}"


@pytest.fixture
def shell(tmp_path: Path) -> dict[str, str]:
    """An environment in which `sonde` is the one under test."""
    program = tmp_path / "bin" / "sonde"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\nfrom sonde.app.cli.main import main\nmain()\n")
    program.chmod(0o755)
    (tmp_path / "work").mkdir()
    # Test modules are imported from paths that a new process does not know.
    return {
        **os.environ,
        "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "500",
        "PYTHONUNBUFFERED": "1",
    }


def run(command: list[str], folder: Path, shell: dict[str, str]) -> str:
    out = subprocess.STDOUT
    done = subprocess.run(
        command, cwd=folder, env=shell, stdout=subprocess.PIPE, stderr=out, text=True, timeout=ENOUGH, check=False
    )
    assert done.returncode == 0, f"{shlex.join(command)}\n{done.stdout}"
    return done.stdout


def started(command: str, folder: Path, shell: dict[str, str], log: Path) -> "subprocess.Popen[str]":
    """Start a service and wait until it says where it is."""
    with log.open("w") as out:
        process = subprocess.Popen(
            ["bash", "-c", f"exec {command}"], cwd=folder, env=shell, stdout=out, stderr=subprocess.STDOUT, text=True
        )
    until = time.monotonic() + ENOUGH
    while "http://" not in log.read_text():
        assert process.poll() is None and time.monotonic() < until, log.read_text()
        time.sleep(0.1)
    return process


@pytest.mark.parametrize("page", [page for page in PAGES if page.stem not in LONG], ids=lambda page: page.stem)
def test_it_can_be_followed(page: Path, tmp_path: Path, shell: dict[str, str]) -> None:
    follow(page, tmp_path, shell, SHORTER)


@pytest.mark.long
@pytest.mark.parametrize("page", [page for page in PAGES if page.stem in LONG], ids=lambda page: page.stem)
def test_a_longer_one_can_be_followed(page: Path, tmp_path: Path, shell: dict[str, str]) -> None:
    follow(page, tmp_path, shell, SHORTER)


@pytest.mark.slow
def test_the_training_can_be_followed_as_it_is(tmp_path: Path, shell: dict[str, str]) -> None:
    follow(FOLDER / "model.md", tmp_path, shell, {})


def follow(page: Path, tmp_path: Path, shell: dict[str, str], shorter: dict[str, str]) -> None:
    """Do what a tutorial says, and compare what it shows."""
    if not default_model():
        pytest.skip("the tutorials take the default model, whose package is not installed")
    folder, services = tmp_path / "work", []
    try:
        for step in steps(page):
            if step.kind == "file":
                (folder / step.text).write_text(step.shown, encoding="utf-8")
            elif step.kind == "python":
                assert_shown(step.shown, run([sys.executable, "-c", step.text], folder, shell))
            elif step.text.endswith(" &"):
                log = tmp_path / "service.log"
                services.append(started(step.text.removesuffix(" &"), folder, shell, log))
                assert_shown(step.shown, log.read_text())
            elif not step.text.startswith("curl ") or _has_curl():
                command = step.text
                for long, short in shorter.items():
                    command = command.replace(long, short)
                assert_shown(step.shown, run(["bash", "-c", command], folder, shell))
    finally:
        for service in services:
            service.terminate()
            service.wait()


def _has_curl() -> bool:
    from shutil import which

    return which("curl") is not None


def test_there_are_seven_and_each_is_listed() -> None:
    listed = re.findall(r"\]\((\w+\.md)\)", (FOLDER / "README.md").read_text(encoding="utf-8"))
    assert sorted(listed) == sorted(page.name for page in PAGES if page.name != "README.md") and len(listed) == 7


def test_a_line_that_was_not_printed_is_found() -> None:
    assert_shown("a 1.0 s\n…\nc …", "a 2.5 s\nb\nc d\n")
    with pytest.raises(AssertionError, match="not printed: c"):
        assert_shown("b\nc", "c\nb\n")
