"""Files that are written whole: beside a user's own files, with their permissions, and by two programs at once."""

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO, Any

import pytest

from sonde.indexer.errors import SondeError
from sonde.indexer.files import remove_folder, write_durably, write_output


def test_a_file_of_the_user_with_a_temporary_name_stays(tmp_path: Path) -> None:
    notes = tmp_path / "mine.csv.tmp"
    notes.write_text("my notes")
    write_durably(tmp_path / "mine.csv", lambda stream: stream.write(b"rows"))
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"mine.csv": "rows", notes.name: "my notes"}


def test_a_replaced_file_keeps_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("old")
    path.chmod(0o600)
    write_durably(path, lambda stream: stream.write(b"new"))
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("new", 0o600)


def test_two_that_write_one_file_both_end_well(tmp_path: Path) -> None:
    path, both = tmp_path / "same.csv", threading.Barrier(2)

    def write(content: bytes) -> None:
        def slowly(stream: IO[bytes]) -> None:
            stream.write(content)
            both.wait(10)

        write_durably(path, slowly)

    threads = [threading.Thread(target=write, args=(content,)) for content in (b"one" * 10, b"two" * 10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert path.read_bytes() in (b"one" * 10, b"two" * 10)
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_in_which_a_file_is_made_while_it_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tantivy's own thread makes its lock file in an index that others have closed."""
    index, real = tmp_path / "c.sonde" / "lexical", os.rmdir
    index.mkdir(parents=True)
    late = [index / ".tantivy-meta.lock"]

    def rmdir(*arguments: Any, **options: Any) -> None:
        if late:
            late.pop().touch()
        real(*arguments, **options)

    monkeypatch.setattr(os, "rmdir", rmdir)
    remove_folder(tmp_path / "c.sonde")
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_a_line_with_the_file(tmp_path: Path) -> None:
    code = f"""
import errno, sys
from sonde.app.cli import main
def app(**_):
    raise OSError(errno.ENOSPC, "No space left on device", {str(tmp_path / "x.csv")!r})
main.app_for = lambda words: app
main.main()
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=os.environ)
    assert (found.returncode, found.stderr) == (
        1, f"sonde: the disk is full: {tmp_path / 'x.csv'}: free some space, then run the same command again\n"
    )  # fmt: skip


def test_a_link_that_the_user_named_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    target, link = tmp_path / "elsewhere" / "out.csv", tmp_path / "out.csv"
    target.write_text("old")
    link.symlink_to(target)
    write_output(link, lambda stream: stream.write(b"new"))
    assert link.is_symlink() and target.read_text() == "new"


@pytest.mark.skipif(sys.platform == "win32", reason="no pipes with names")
def test_a_device_or_a_pipe_is_written_to_and_stays(tmp_path: Path) -> None:
    """Renaming over it made a file of /dev/null, for a user who may do that."""
    pipe, got = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    write_output(pipe, lambda stream: stream.write(b"new"))
    reader.join()
    assert got == [b"new"]
    assert pipe.is_fifo()
    assert list(tmp_path.iterdir()) == [pipe]


@pytest.mark.skipif(sys.platform == "win32", reason="no /dev/stdout")
def test_a_file_that_stdout_is_redirected_to_gets_the_output_after_what_was_printed(tmp_path: Path) -> None:
    code = """
from pathlib import Path
from sonde.indexer.files import write_output
print("first", flush=True)
write_output(Path("/dev/stdout"), lambda stream: stream.write(b"second"))
"""
    with (tmp_path / "out.txt").open("ab") as out:
        subprocess.run([sys.executable, "-c", code], stdout=out, check=True)
    assert (tmp_path / "out.txt").read_text() == "first\nsecond"


@pytest.mark.skipif(sys.platform == "win32", reason="no /dev/full")
def test_an_output_that_cannot_be_written_is_an_error_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(SondeError, match=r"^the disk is full: /dev/full: free some space") as full:
        write_output(Path("/dev/full"), lambda stream: stream.write(b"new"))
    assert full.value.code == "disk-full"
    with pytest.raises(SondeError, match=rf"^cannot write {tmp_path / 'no' / 'x.csv'}: No such file or directory$"):
        write_output(tmp_path / "no" / "x.csv", lambda stream: stream.write(b"new"))
    with pytest.raises(FileNotFoundError, match=r"gone\.txt"):
        write_output(tmp_path / "x.csv", lambda _: (tmp_path / "gone.txt").read_bytes())
    assert not list(tmp_path.iterdir())
