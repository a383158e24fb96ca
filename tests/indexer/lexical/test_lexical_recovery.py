"""The lexical index after kills, damage, full disks, and beside a process that writes."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sonde.indexer.errors import SondeError
from sonde.indexer.lexical import LexicalEntry, LexicalIndex, LexicalState
from sonde.indexer.lexical import writer as lexical_writer

TEXTS = ["alpha beta", "beta gamma", "gamma delta epsilon"]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("template") / "lexical"
    with LexicalIndex.create(folder).writer() as writer:
        writer.add(LexicalEntry(row, "", text, "en") for row, text in enumerate(TEXTS))
        writer.commit(3, 1)
    return folder


@pytest.fixture
def folder(template: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(template, tmp_path / "lexical"))


def add_one(folder: Path) -> None:
    with LexicalIndex.open(folder).writer() as writer:
        writer.add([LexicalEntry(3, "", "zeta", "en")])
        writer.commit(4, 2)


def test_a_kill_before_the_commit_leaves_the_old_state(folder, monkeypatch):
    def killed(*_: object) -> None:
        raise KeyboardInterrupt("killed")

    announce = lexical_writer.announce
    monkeypatch.setattr(lexical_writer, "announce", lambda *state: (announce(*state), killed()))
    with pytest.raises(KeyboardInterrupt, match="killed"):
        add_one(folder)
    index = LexicalIndex.open(folder)
    assert (index.state, index.rows) == (LexicalState(3, 1), 3)


def test_a_kill_after_the_commit_leaves_the_new_state(folder, monkeypatch):
    def killed(*_: object) -> None:
        raise KeyboardInterrupt("killed")

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt, match="killed"):
        patch.setattr(lexical_writer, "confirm", killed)
        add_one(folder)
    index = LexicalIndex.open(folder)
    assert (index.state, index.rows) == (LexicalState(4, 2), 4)
    with index.writer() as writer:
        writer.commit(4, 3)
    assert LexicalIndex.open(folder).state == LexicalState(4, 3)


WRITER = """
import sys
from pathlib import Path
from sonde.indexer.lexical import LexicalEntry, LexicalIndex
folder = Path(sys.argv[1])
index = LexicalIndex.open(folder)
with index.writer() as writer:
    print("ready", flush=True)
    start = index.state.through_row
    for row in range(start, start + 300, 20):
        writer.delete_from(row)
        writer.add(LexicalEntry(n, "", f"common word{n} parity{n % 2}", "en") for n in range(row, row + 20))
        writer.commit(row + 20, settled=row)
"""


@pytest.fixture
def writing(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", WRITER, str(folder)], stdout=subprocess.PIPE)
    assert process.stdout
    assert process.stdout.readline() == b"ready\n"
    yield process
    process.kill()
    process.wait()


@pytest.mark.parametrize("seconds", [0.0, 0.05, 0.13, 0.31])
def test_killed_at_any_moment_state_and_rows_agree(folder, writing, seconds):
    time.sleep(seconds)
    os.kill(writing.pid, signal.SIGKILL)
    writing.wait()
    index = LexicalIndex.open(folder)
    assert index.rows == index.state.through_row
    assert index.verify() == []
    subprocess.run([sys.executable, "-c", WRITER, str(folder)], check=True, stdout=subprocess.DEVNULL)
    resumed = LexicalIndex.open(folder)
    last = index.state.through_row + 300
    assert (resumed.rows, resumed.state.through_row) == (last, last)
    assert resumed.search("common", 3)[1].tolist() == [3, 4, 5]
    assert resumed.search(f"word{last - 1}", 3)[1].tolist() == [last - 1]


def test_readers_see_whole_batches_beside_a_writer(folder, writing):
    index, seen = LexicalIndex.open(folder), set()
    while writing.poll() is None:
        index.refresh()
        found = len(index.search("common", 1_000)[1])
        assert found % 20 == 0
        assert index.rows == found + 3
        seen.add(found)
    assert writing.returncode == 0
    index.refresh()
    assert len(index.search("common", 1_000)[1]) == 300
    assert len(seen) > 3


def put(path: Path, data: bytes) -> None:
    """Put another file in a file's place: cut where it stands, one that Tantivy has mapped would be a bus error."""
    beside = path.with_name("beside")
    beside.write_bytes(data)
    beside.replace(path)


def damage(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[0] ^= 0xFF
    put(path, bytes(data))


@pytest.mark.parametrize("suffix", ["idx", "term", "fast", "fieldnorm", "store"])
def test_verify_names_a_damaged_file(folder, suffix):
    index = LexicalIndex.open(folder)
    (path,) = folder.glob(f"*.{suffix}")
    damage(path)
    (problem,) = index.verify()
    assert problem.startswith(f"{path}: checksum ")


def test_verify_names_a_cut_or_missing_file(folder):
    (path,) = folder.glob("*.store")
    index = LexicalIndex.open(folder)
    put(path, path.read_bytes()[:-5])
    assert index.verify() == [f"{path}: cut off"]
    for file in folder.glob(f"{path.stem}.*"):
        file.unlink()
    assert index.verify() == [f"{folder}: segment {path.stem} is missing"]


def test_deletions_count_once_they_are_committed(folder):
    (path,) = folder.glob("*.store")
    put(folder / f"{path.stem}.99.del", b"being written")
    index = LexicalIndex.open(folder)
    assert (index.rows, index.verify()) == (3, [])
    with index.writer() as writer:
        writer.delete([1])
        writer.commit(3, 2)
        (deleted,) = folder.glob("*.del")
    put(deleted, deleted.read_bytes()[:-5])
    with pytest.raises(SondeError, match=r"\.del: cut off"):
        LexicalIndex.open(folder)
    deleted.unlink()
    with pytest.raises(SondeError, match=r"\.del is missing"):
        LexicalIndex.open(folder)


@pytest.mark.parametrize("name", ["meta.json", "state.json", "*.idx", "*.term", "*.fast", "*.fieldnorm"])
@pytest.mark.parametrize("how", ["emptied", "cut", "garbage", "gone"])
def test_a_damaged_index_is_one_clear_error_or_none(folder, name, how):
    (path,) = folder.glob(name)
    data = path.read_bytes()
    if how == "gone":
        path.unlink()
    else:
        put(path, {"emptied": b"", "cut": data[: len(data) // 2], "garbage": b"\x00\xff" * 99}[how])
    with pytest.raises(SondeError, match="`sonde repair` rebuilds it") as caught:
        LexicalIndex.open(folder).search("beta", 3)
    assert "\n" not in str(caught.value)
    assert str(folder) in str(caught.value)


@pytest.mark.parametrize("change", [{"max_doc": 0}, {"max_doc": 4}, {"max_doc": None}, {"deletes": {"opstamp": 9}}])
def test_numbers_that_the_files_contradict_are_refused(folder, change):
    """Tantivy aborted the process where `max_doc` was 0."""
    path = folder / "meta.json"
    meta = json.loads(path.read_bytes())
    (segment,) = meta["segments"]
    if "deletes" in change:  # the file of the deletions is there, and the number of them is not
        [lengths] = folder.glob("*.fieldnorm")
        shutil.copy(lengths, folder / f"{segment['segment_id'].replace('-', '')}.9.del")
    segment.update(change)
    path.write_text(json.dumps(meta))
    with pytest.raises(SondeError, match="has other numbers of passages than segment"):
        LexicalIndex.open(folder)


def test_another_version_is_rebuilt(folder):
    path = folder / "state.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"schema": 99}))
    with pytest.raises(SondeError, match="it has version 99, and this Sonde reads version 1"):
        LexicalIndex.open(folder)


def test_create_refuses_a_folder_with_something_in_it(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(SondeError, match="is not empty"):
        LexicalIndex.create(tmp_path)
    assert (tmp_path / "notes.txt").read_text() == "mine"


FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from sonde.indexer.errors import SondeError
from sonde.indexer.lexical import LexicalEntry, LexicalIndex
index = LexicalIndex.open(Path(sys.argv[1]))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
try:
    with index.writer() as writer:
        writer.add(LexicalEntry(n, "", f"word{n} other{n * 7}", "en") for n in range(3, 40_000))
        writer.commit(40_000, 2)
except SondeError as error:
    print(error)
"""


def test_a_write_that_fails_leaves_the_last_commit(folder):
    result = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(folder)], capture_output=True, text=True, check=True, timeout=60
    )
    assert result.stdout.count("\n") == 1, result.stdout + result.stderr
    assert f"the lexical index in {folder} cannot be written; the disk has" in result.stdout
    index = LexicalIndex.open(folder)
    assert (index.rows, index.state, index.verify()) == (3, LexicalState(3, 1), [])
    add_one(folder)
    assert LexicalIndex.open(folder).search("zeta", 3)[1].tolist() == [3]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_can_be_searched(folder):
    for path in (folder, *folder.iterdir()):
        path.chmod(0o555 if path.is_dir() else 0o444)
    index = LexicalIndex.open(folder)
    assert index.search("beta", 3)[1].tolist() == [0, 1]
    with pytest.raises(SondeError, match="check the permissions"):
        index.writer()


def test_a_copied_index_is_the_same(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "copy")
    copy = LexicalIndex.open(tmp_path / "copy")
    assert copy.state == LexicalState(3, 1)
    assert copy.search("gamma", 3)[1].tolist() == [1, 2]
