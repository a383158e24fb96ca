"""A second writer, a full disk, a read-only one: one line, and nothing lost."""

import errno
import gc
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import Command, contents, problems
from small_reviews import ROWS, lines
from thinned import thinned

RUNNER = Path(__file__).parents[2] / "support" / "killed_run.py"


def test_a_second_writer(sonde: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sonde.app.cli.main.WAIT_SECONDS", 0.2)
    folder = tmp_path / "c.sonde"
    process = subprocess.Popen([sys.executable, str(RUNNER), "index", str(folder), str(tmp_path / "log"), "0"])
    try:
        while not (tmp_path / "log").exists() or (tmp_path / "log").stat().st_size < 100:
            assert process.poll() is None
        process.send_signal(signal.SIGSTOP)  # it stays in the middle of its work for as long as the commands take
        source = lines(tmp_path / "s.jsonl", ROWS)
        holder = f"is being written to by process {process.pid} since"
        for arguments in (("compact", folder), ("delete", folder, "1"), ("repair", folder)):
            ran = sonde(*arguments)
            ran.failed(holder, "wait for it to end, then try again")
            assert ran.said[0].endswith(": waiting up to 0.2 s")
        sonde("index", source, "--to", folder, "--wait", 0.1).failed(holder, "wait for it to end")
        assert sonde("search", folder, "apple").code == 0
    finally:
        process.send_signal(signal.SIGCONT)
        process.communicate()
    assert process.returncode == 0
    assert problems(folder) == []


DISK = ("size=8m", "nr_inodes=2000")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 8 MB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", ",".join(DISK), "tmpfs", disk], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {mounted.stderr.decode().strip()}")
    yield disk
    subprocess.run(["umount", "-l", disk], check=True)


def long_texts(path: Path, count: int = 24) -> Path:
    words = [*(f"word{number}" for number in range(10)), "silver", "garden"]
    rows = [{"id": str(n), "text": " ".join(words[(n * i) % 12] for i in range(2_000))} for n in range(count)]
    return lines(path, rows)


def fill(disk: Path, leave: int) -> Path:
    """Fill the disk with a file, up to `leave` bytes."""
    ballast = disk / "ballast"
    ballast.write_bytes(bytes(max(0, shutil.disk_usage(disk).free - leave)))
    return ballast


def answers(sonde: Command, folder: Path) -> list[str]:
    return [
        sonde("search", folder, "silver garden", "-k", 100, "--mode", mode, "--json").out
        for mode in ("dense", "lexical")
    ]


@pytest.mark.parametrize("leave", thinned([0, 150_000, 400_000, 800_000, 1_600_000], 2))
def test_a_full_disk(sonde: Command, tmp_path: Path, small_disk: Path, leave: int) -> None:
    folder, undisturbed = small_disk / "c.sonde", tmp_path / "c.sonde"
    few, all_ = long_texts(tmp_path / "few.jsonl", 6), long_texts(tmp_path / "all.jsonl")
    for to in (folder, undisturbed):
        assert sonde("index", few, "--to", to).code == 0
    before = contents(folder)
    ballast = fill(small_disk, leave)
    ran = sonde("index", all_, "--to", folder)
    if ran.code:
        ran.failed("full" if leave < 200_000 else "")
        assert [line for line in problems(folder) if not line.startswith(("ann", "lexical"))] == []
        assert leave or contents(folder) == before  # a small commit may still fit
        assert len(answers(sonde, folder)[0].splitlines()) >= 6
    ballast.unlink()
    assert sonde("index", all_, "--to", folder).code == 0
    assert sonde("index", all_, "--to", undisturbed).code == 0
    assert problems(folder) == []
    assert answers(sonde, folder) == answers(sonde, undisturbed)


def test_a_disk_that_is_full_from_the_start(sonde: Command, tmp_path: Path, small_disk: Path) -> None:
    fill(small_disk, 0)
    sonde("index", lines(tmp_path / "s.jsonl", ROWS), "--to", small_disk / "c.sonde").failed("full")
    assert not (small_disk / "c.sonde").exists()


UPKEEP = [("compact",), ("delete", "1"), ("delete", "--where", "stars > 1"), ("repair",)]


@pytest.mark.parametrize("arguments", thinned(UPKEEP, 2))
def test_upkeep_on_a_full_disk(sonde: Command, tmp_path: Path, small_disk: Path, arguments: tuple[str, ...]) -> None:
    folder = small_disk / "c.sonde"
    sonde("index", long_texts(tmp_path / "s.jsonl"), "--to", folder)
    sonde("index", lines(tmp_path / "t.jsonl", ROWS), "--to", folder)
    sonde("delete", folder, "2")
    if arguments[0] == "repair":
        shutil.rmtree(folder / "lexical")
    before = contents(folder)
    ballast = fill(small_disk, 0)
    ran = sonde(arguments[0], folder, *arguments[1:])
    ran.failed("full")
    assert contents(folder) == before
    ballast.unlink()
    assert sonde(arguments[0], folder, *arguments[1:]).code == 0
    assert problems(folder) == []


def test_a_read_only_disk(sonde: Command, tmp_path: Path, small_disk: Path) -> None:
    folder, source = small_disk / "c.sonde", lines(tmp_path / "s.jsonl", ROWS)
    assert sonde("index", source, "--to", folder).code == 0
    before = contents(folder)
    more = lines(tmp_path / "t.jsonl", [*ROWS, {"id": "4", "text": "New."}])
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    try:
        for mode in ("hybrid", "dense", "lexical"):
            ran = sonde("search", folder, "battery", "--mode", mode, "--json", "--where", "stars < 5")
            assert (ran.code, json.loads(ran.out.splitlines()[0])["id"]) == (0, "1"), ran.err
        assert [sonde(name, folder).code for name in ("info", "verify", "export")] == [0, 0, 0]
        sonde("index", more, "--to", folder).failed("c.sonde cannot be written", "read-only")
        sonde("index", more, "--to", small_disk / "new.sonde").failed("new.sonde cannot be written", "read-only")
        for arguments in (("compact", folder), ("delete", folder, "1"), ("repair", folder)):
            sonde(*arguments).refused("c.sonde cannot be written", "read-only")
    finally:
        subprocess.run(["mount", "-o", "remount,rw", small_disk], check=True)
    assert contents(folder) == before
    gc.collect()  # SQLite shares what it knows of a file between connections, those of the commands above included
    ran = sonde("index", more, "--to", folder)
    assert ran.code == 0, ran.err
    assert problems(folder) == []


@pytest.mark.parametrize("place", ["ann.storage._publish", "store.derived.update_lexical"])
def test_a_disk_that_fills_after_the_last_commit(
    sonde: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """The message said to run the same command again, although all documents are stored."""

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    source, folder = lines(tmp_path / "s.jsonl", ROWS), tmp_path / "c.sonde"
    with monkeypatch.context() as patched:
        patched.setattr(f"sonde.indexer.{place}", full)
        ran = sonde("index", source, "--to", folder)
    ran.failed(
        "all documents are stored, but not all indexes: check that the disk", f"then run `sonde repair {folder}`"
    )
    assert "again" not in ran.said[-1]
    assert sonde("search", folder, "battery").out.count("\n") > 0
    assert sonde("repair", folder).code == 0
    assert problems(folder) == []
    assert sonde("index", source, "--to", folder).out.startswith(f"{folder}: 3 unchanged")
