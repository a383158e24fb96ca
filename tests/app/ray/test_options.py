"""The option --on where Ray is not used: mistakes are found before anything is read."""

import signal
import socket
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from command_line import Command
from filelock import FileLock
from small_reviews import ROWS, lines

from sonde.app.ray import connect
from sonde.app.ray.build import gpu_share
from sonde.app.ray.connect import FOLDER, LOCK, connected, named, reason
from sonde.indexer.errors import SondeError
from sonde.indexer.ingest import BuildSettings


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


@pytest.mark.parametrize(
    ("gpus", "tasks", "device", "share"),
    [(0, 4, "auto", 0), (1, 4, "cpu", 0), (1, 4, "auto", 0.25), (1, 6, "cuda:0", 0.1666), (1, 40, "cuda", 0.125),
     (4, 2, "auto", 1), (2.0, 3, "auto", 0.5)],
)  # fmt: skip
def test_tasks_share_the_gpus(gpus: float, tasks: int, device: str, share: float):
    """All tasks of a run fit on the GPUs at once, unless there are more than eight for each."""
    given = SimpleNamespace(settings=BuildSettings(device=device))
    assert gpu_share(gpus, [given] * tasks) == share  # type: ignore[list-item]


@pytest.mark.parametrize("command", ["index", "serve"])
def test_a_cluster_where_nobody_listens(sonde: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str):
    def refused(*_: object) -> None:
        raise ConnectionRefusedError(111, "Connection refused")

    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace())
    monkeypatch.setattr(connect.socket, "create_connection", refused)
    source, folder = lines(tmp_path / "reviews.jsonl", ROWS), tmp_path / "c.sonde"
    words = ("index", source, "--to", folder, "--shards", "2") if command == "index" else ("serve", folder)
    said = "sonde: Ray does not answer at ray://localhost:1 (Connection refused): is the cluster running?\n"
    ran = sonde(*words, "--on", "ray://localhost:1")
    assert (ran.code, ran.err) == (1, said)
    assert not folder.exists()


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "the server at {} is not Ray: give the port of the Ray client server"),
        (b"", "the server at {} is not Ray"),
        (None, "Ray does not answer at {} (timed out): is the cluster running?"),
        (bytes([0, 0, 0, connect.SETTINGS, 0, 0, 0, 0, 0]), None),
    ],
)
@pytest.mark.parametrize("command", ["index", "serve"])
def test_where_something_else_listens(
    sonde: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: bytes | None, said: str | None,
    command: str,
):  # fmt: skip
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace())
    monkeypatch.setattr(connect.reach, "__defaults__", (0.5,))
    source, folder = lines(tmp_path / "reviews.jsonl", ROWS), tmp_path / "c.sonde"
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"ray://127.0.0.1:{server.getsockname()[1]}"
        threading.Thread(target=_answering, args=(server, answer), daemon=True).start()
        if said is None:
            connect.reach(address)
            return
        words = ("index", source, "--to", folder, "--shards", "2") if command == "index" else ("serve", folder)
        ran = sonde(*words, "--on", address)
    assert ran.code == 1 and ran.err.startswith(f"sonde: {said.format(address)}") and ran.err.count("\n") == 1
    assert not folder.exists()


@pytest.mark.parametrize("host", ["a" * 300, "ä..b"])
def test_a_name_that_no_host_can_have(host: str):
    with pytest.raises(SondeError, match=r"^Ray does not answer at ray://.* \(.+\): is the cluster running\?$"):
        connect.reach(f"ray://{host}:1")


def _answering(server: socket.socket, answer: bytes | None) -> None:
    """Answer one client; None leaves it waiting for a second."""
    there, _ = server.accept()
    with there:
        there.recv(100)
        there.sendall(answer) if answer is not None else time.sleep(1)


def test_ray_on_this_machine_leaves_no_folder(monkeypatch: pytest.MonkeyPatch):
    given: list[Path] = []

    def init(**options: str) -> None:
        given.append(Path(options["_temp_dir"]))
        assert given[0].is_dir()

    util = SimpleNamespace(get_node_ip_address=lambda: "127.0.0.1")
    ended: list[int] = []
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(init=init, util=util, shutdown=lambda: ended.append(1)))
    with connected("ray"):
        (given[0] / "session").write_text("of Ray's")
    assert ended and not given[0].exists()


def test_ray_that_is_started_again_in_a_thread_leaves_the_handler_of_sigterm(monkeypatch: pytest.MonkeyPatch):
    def lost(**_: object) -> None:
        connect._SET_HANDLER(signal.SIGTERM, signal.SIG_DFL.value)

    def again() -> None:
        with connected("ray"):
            seen.append(connect._GET_HANDLER(signal.SIGTERM))
        seen.append(connect._GET_HANDLER(signal.SIGTERM))

    util = SimpleNamespace(get_node_ip_address=lambda: "127.0.0.1")
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(init=lost, util=util, shutdown=lost))
    seen, before = list[object](), signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        own = connect._GET_HANDLER(signal.SIGTERM)
        thread = threading.Thread(target=again)
        thread.start()
        thread.join()
    finally:
        signal.signal(signal.SIGTERM, before)
    assert own and seen == [own, own]


def test_folders_of_killed_commands_go_with_the_next_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    killed, alive, other = (tmp_path / f"{FOLDER}{name}" for name in ("killed", "alive", "other"))
    for folder in (killed, alive, other):
        (folder / "session").mkdir(parents=True)
    (killed / LOCK).touch()
    util = SimpleNamespace(get_node_ip_address=lambda: "127.0.0.1")
    made = SimpleNamespace(init=lambda **_: None, util=util, shutdown=lambda: None)
    monkeypatch.setitem(sys.modules, "ray", made)
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    with FileLock(alive / LOCK), connected("ray"):
        assert len(list(tmp_path.iterdir())) == 3
    assert sorted(tmp_path.iterdir()) == [alive, other]


def test_reasons_of_ray_are_one_line_without_colours():
    assert reason(RuntimeError("\x1b[33mThe actor died.\x1b[0m\nMore lines.")) == "The actor died"


def test_what_messages_call_ray():
    assert [named("ray"), named("ray://head:10001")] == ["Ray on this machine", "Ray at ray://head:10001"]
