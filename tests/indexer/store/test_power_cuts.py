"""Power cuts and failing disks: names are flushed, errors end in one line, and what is left over is in nobody's way."""

import errno
import json
import os
import platform
import resource
import shutil
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from damaged import documents, opened, sound_collection
from fake_encoder import FakeEncoder

from sonde.indexer.ann import AnnSettings, ArraySource, build
from sonde.indexer.errors import SondeError
from sonde.indexer.files import disk_error
from sonde.indexer.ingest import index_documents
from sonde.indexer.lexical import LexicalEntry, LexicalIndex
from sonde.indexer.store.lock import writer_lock
from sonde.indexer.upkeep.delete import remove_collection
from sonde.pipelines.label.margins import open_journal

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


@pytest.fixture
def flushed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of flushed files and folders, and of trees that were removed, in order."""
    real, remove, found = os.fsync, shutil.rmtree, []

    def fsync(descriptor: int) -> None:
        found.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)
        real(descriptor)

    def rmtree(path: Path, **options: Any) -> None:
        found.append(f"removed {Path(path).suffix}")
        remove(path, **options)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(shutil, "rmtree", rmtree)
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return sound_collection(tmp_path / "c.sonde")


linux = pytest.mark.skipif(sys.platform != "linux", reason="reads names of open files in /proc")


@linux
def test_a_new_collection_keeps_its_name(tmp_path: Path, flushed: list[str]) -> None:
    (tmp_path / "a").mkdir()
    index_documents(documents(4), tmp_path / "a" / "b" / "c.sonde", encoder=FakeEncoder())  # type: ignore[arg-type]
    assert flushed[:2] == ["a", "b"]


@linux
def test_a_collection_has_lost_its_name_before_its_files_go(folder: Path, flushed: list[str]) -> None:
    remove_collection(folder)
    assert flushed == [folder.parent.name, "removed .removed"]


@linux
def test_the_first_judgement_keeps_the_name_of_its_file(folder: Path, flushed: list[str]) -> None:
    (folder / "judgements.jsonl").unlink()
    with closing(opened(folder)) as collection:
        collection.judge("apple", ["apple6"])
    assert flushed == ["judgements.jsonl", "c.sonde"]


def deleted_row(folder: Path) -> LexicalIndex:
    """Delete a row from the lexical index in a folder."""
    index = LexicalIndex.open(folder)
    with index.writer() as writer:
        writer.delete([2])
        writer.commit(5)
    return index


def test_deletions_that_were_not_committed_are_in_nobodys_way(tmp_path: Path) -> None:
    index = LexicalIndex.create(tmp_path / "1")
    with index.writer() as writer:
        writer.add(LexicalEntry(row, "", f"word{row}", "en") for row in range(5))
        writer.commit(5)
    shutil.copytree(tmp_path / "1", tmp_path / "later")
    deleted_row(tmp_path / "later")
    (left,) = (tmp_path / "later").glob("*.del")
    shutil.copy(left, tmp_path / "1")
    index = deleted_row(tmp_path / "1")
    assert (index.rows, index.verify()) == (4, [])


def test_a_torn_line_of_a_label_run_is_made_again(tmp_path: Path) -> None:
    def lines() -> list[str]:
        known = []
        with pytest.raises(KeyboardInterrupt), open_journal(tmp_path, "run", "settings") as journal:
            known = sorted(journal.known)
            journal.add(["b"], np.ones((1, 2), np.float32))
            raise KeyboardInterrupt
        return known

    assert lines() == []
    (path,) = tmp_path.glob("*/*.jsonl")
    path.write_bytes(path.read_bytes() + b'[["c"], ' + b"\0" * 4 + b"]]\n")
    assert lines() == ["b"]


def test_a_full_disk_during_a_label_run_is_one_line(tmp_path: Path) -> None:
    with (
        pytest.raises(SondeError, match=r"^the disk is full: .* keeps everything that was committed; free some space"),
        open_journal(tmp_path, "run", "settings"),
    ):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_disk_that_fails_while_the_lock_is_left_hides_no_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unlink(path: Path, missing_ok: bool = False) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))

    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", unlink)
        with pytest.raises(SondeError, match=r"^the work failed$"), writer_lock(folder):
            raise SondeError("the work failed")
    with writer_lock(folder):
        assert json.loads((folder / "writer.json").read_text())["pid"] == os.getpid()


def test_a_failing_disk_is_one_line(tmp_path: Path) -> None:
    error = OSError(errno.EIO, "Input/output error", "c.sonde/vectors/000001.npy")
    assert str(disk_error(error, tmp_path)) == (
        f"the disk of {tmp_path} failed ([Errno 5] Input/output error: 'c.sonde/vectors/000001.npy'): "
        "check that the disk is not damaged or full, then run the same command again"
    )


@pytest.mark.parametrize("name", ["fullset.sonde", "permission-requests.sonde", "quota.sonde"])
def test_a_word_in_the_name_of_the_folder_is_no_cause(tmp_path: Path, name: str) -> None:
    lost = tmp_path / name / "vectors" / "000001.npy"
    lost.parent.mkdir(parents=True)
    error = FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(lost))
    told = f"{lost} is missing: run `sonde repair {tmp_path / name}`"
    assert str(disk_error(error, tmp_path / name)) == told
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(lost))
    assert str(disk_error(full, tmp_path / name)).startswith("the disk is full: ")


def test_an_index_that_does_not_fit_on_the_disk_is_not_published(tmp_path: Path) -> None:
    index = build(ArraySource(np.random.default_rng(1).standard_normal((20, 256)).astype(np.float16)), AnnSettings())
    index.save(tmp_path)
    size = next(tmp_path.glob("*/index.faiss")).stat().st_size
    before, limits = (tmp_path / "info.json").read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size - 1, limits[1]))
    try:
        with pytest.raises(
            SondeError, match=r"the index cannot be written to .* \(.*File too large.*\): check that the disk"
        ):
            index.save(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (tmp_path / "info.json").read_bytes() == before


@pytest.mark.skipif((sys.platform, platform.machine()) != ("linux", "x86_64"), reason="Linux on x86-64 alone")
@pytest.mark.parametrize(("script", "option", "count"), [("power_cuts", "--states", 20), ("failing_disk", "--each", 1)])
def test_a_few_power_cuts_and_failures(script: str, option: str, count: int) -> None:
    command = [sys.executable, str(BENCHMARKS / f"{script}.py"), option, str(count), "--seed", "1", "--only", "remove"]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
