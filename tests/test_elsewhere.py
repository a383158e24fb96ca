"""macOS and Windows, as far as Linux can stand in for them: what they refuse is refused.

test_light.py runs each command without what Windows lacks.
"""

import ast
import io
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from source_tree import ROOTS
from without_torch import POSIX

from sonde.app.cli import main as cli
from sonde.app.ui.jobs import queue
from sonde.indexer import files
from sonde.indexer.ann import storage
from sonde.indexer.ann.devices import faiss
from sonde.indexer.ann.storage import read_index


def test_no_module_imports_what_windows_lacks_when_it_is_imported(checkout: Path) -> None:
    found = []
    for root in ROOTS.values():
        for path in (checkout / root).rglob("*.py"):
            for node in ast.parse(path.read_text("utf-8")).body:
                names = [each.name for each in getattr(node, "names", ())] + [getattr(node, "module", None) or ""]
                if isinstance(node, ast.Import | ast.ImportFrom) and {name.partition(".")[0] for name in names} & POSIX:
                    found.append(f"{path}:{node.lineno}")
    assert found == []


def test_a_file_that_somebody_reads_is_replaced_when_it_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, left = Path.replace, [2]

    def replace(path: Path, target: Path) -> Path:
        if left[0]:
            left[0] -= 1
            raise PermissionError(13, "Access is denied")
        return real(path, target)

    monkeypatch.setattr(Path, "replace", replace)
    monkeypatch.setattr(files, "WINDOWS", True)
    files.write_durably(tmp_path / "a.txt", lambda stream: stream.write(b"new"))
    assert (tmp_path / "a.txt").read_bytes() == b"new" and left == [0]
    left[0], files_before = 1_000, list(tmp_path.iterdir())
    monkeypatch.setattr(files, "PATIENCE", 0.1)
    with pytest.raises(PermissionError, match="denied"):
        files.write_durably(tmp_path / "a.txt", lambda stream: stream.write(b"newer"))
    assert list(tmp_path.iterdir()) == files_before
    monkeypatch.setattr(files, "WINDOWS", False)
    left[0] = 1
    with pytest.raises(PermissionError, match="denied"):
        files.write_durably(tmp_path / "a.txt", lambda stream: stream.write(b"newer"))


def test_what_somebody_has_open_is_left_for_the_next_sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "old.npy").write_bytes(b"vectors")

    def unlink(path: Path, missing_ok: bool = False) -> None:
        raise PermissionError(13, "Access is denied")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", unlink)
        patched.setattr(files, "WINDOWS", True)
        assert not files.remove(tmp_path / "old.npy")
        patched.setattr(files, "WINDOWS", False)
        with pytest.raises(PermissionError, match="denied"):
            files.remove(tmp_path / "old.npy")
    assert files.remove(tmp_path / "old.npy") and not list(tmp_path.iterdir())


def test_an_index_in_a_folder_with_another_script_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sonde.indexer.ann import AnnSettings, ArraySource, build

    place = tmp_path / "日本"
    vectors = np.eye(8, dtype=np.float16)
    build(ArraySource(vectors), AnnSettings(kind="hnsw")).save(place)
    monkeypatch.setattr(storage, "WINDOWS", True)
    read, names = faiss().read_index, []
    monkeypatch.setattr(faiss(), "read_index", lambda source, *rest: (names.append(source), read(source, *rest))[1])
    index = read_index(place)[0]
    assert index.ntotal == 8 and not isinstance(names[0], str)


def test_a_job_is_stopped_by_the_break_of_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Any] = []

    class Process:
        def __init__(self, number: int) -> None:
            pass

        def send_signal(self, number: int) -> None:
            sent.append(number)

        def wait(self, seconds: float) -> None:
            pass

    job: Any = type("Job", (), {"pid": 7, "folder": Path("/tmp"), "alive": lambda self: True})()
    monkeypatch.setattr(psutil, "Process", Process)
    monkeypatch.setattr(Path, "touch", lambda self: None)
    queue.Jobs.cancel(object.__new__(queue.Jobs), job)
    monkeypatch.setattr(signal, "CTRL_BREAK_EVENT", 1, raising=False)
    queue.Jobs.cancel(object.__new__(queue.Jobs), job)
    assert sent == [signal.SIGINT, 1]


@pytest.mark.parametrize(
    ("platform", "printed"), [("win32", "naïve 日本".encode()), ("linux", b"na\xefve \\u65e5\\u672c")]
)
def test_what_goes_into_a_pipe_is_utf_8_on_windows_too(
    monkeypatch: pytest.MonkeyPatch, platform: str, printed: bytes
) -> None:
    out = io.TextIOWrapper(io.BytesIO(), "cp1252")
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(cli, "show_controls", lambda: None)
    monkeypatch.setattr(sys, "platform", platform)
    cli._print_anything()
    out.write("naïve 日本")
    out.flush()
    assert out.buffer.getvalue() == printed  # type: ignore[attr-defined]
