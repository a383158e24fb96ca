"""The service over real sockets, in a process of its own: beside a writer, stopped, and killed."""

import logging
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest
from command_line import Command
from fake_encoder import FakeEncoder

import sonde as sonde_package
from sonde.app.api import index
from sonde.app.http.client import RemoteCollection
from sonde.app.http.guard import KeyFile
from sonde.indexer.errors import SondeError

ENDING = "sonde: stopped; every request that had begun was answered\n"
RUNNER = Path(__file__).parents[2] / "support" / "served.py"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = [{"id": str(n), "text": f"letter {n} about apples"} for n in range(50)]
    index(rows, tmp_path / "letters.sonde", id="id", encoder=FakeEncoder())  # type: ignore[arg-type]
    return tmp_path / "letters.sonde"


def free_port() -> int:
    with closing(socket.socket()) as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@contextmanager
def service(folder: Path) -> Iterator[tuple["subprocess.Popen[bytes]", RemoteCollection]]:
    port = free_port()
    process = subprocess.Popen([sys.executable, str(RUNNER), str(folder), str(port)], stderr=subprocess.PIPE)
    remote = sonde_package.connect(f"http://127.0.0.1:{port}", timeout=20)
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                remote.info()
                break
            except SondeError:
                assert process.poll() is None, process.stderr and process.stderr.read().decode()
                assert time.monotonic() < deadline
                time.sleep(0.05)
        yield process, remote
    finally:
        remote.close()
        process.kill()
        process.communicate()


def test_searches_beside_a_writer_never_fail_and_see_what_was_committed(folder: Path) -> None:
    with service(folder) as (_, remote):
        failures: list[Exception] = []
        counts: list[int] = []
        stop = threading.Event()

        def ask() -> None:
            with sonde_package.connect(str(remote._http.base_url)) as mine:
                while not stop.is_set():
                    try:
                        counts.append(len(mine.search("apples", k=500, mode="lexical")))
                    except Exception as error:
                        failures.append(error)

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for turn in range(5):
            rows = [{"id": f"{turn}-{n}", "text": f"more apples {turn} {n}"} for n in range(20)]
            index(rows, folder, id="id", encoder=FakeEncoder())  # type: ignore[arg-type]
            assert len(remote.search("apples", k=500, mode="lexical")) == 50 + 20 * (turn + 1)
        stop.set()
        for thread in threads:
            thread.join()
    assert failures == []
    assert counts
    assert set(counts) <= {50, 70, 90, 110, 130, 150}


def test_killed_and_started_again_it_serves_the_last_commit(folder: Path) -> None:
    with service(folder) as (process, remote):
        assert remote.put([{"id": "new", "text": "a zebra"}]).added == 1
        process.send_signal(signal.SIGKILL)
        process.wait()
        with pytest.raises(SondeError, match="cannot be reached"):
            remote.search("zebra")
    with service(folder) as (_, remote):
        assert [hit.id for hit in remote.search("zebra", mode="lexical")] == ["new"]


def test_asked_to_stop_it_answers_what_it_has_begun(folder: Path) -> None:
    with service(folder) as (process, remote):
        found: list[int] = []
        url = str(remote._http.base_url)

        def ask() -> None:
            with sonde_package.connect(url) as mine:
                found.extend(len(mine.search("apples", k=7)) for _ in range(3))

        ask()
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) in (0, -signal.SIGTERM)
        error = process.stderr.read().decode() if process.stderr else ""
    assert found == [7, 7, 7]
    assert "Traceback" not in error


LOADS_FOR_EVER = """
import signal, threading
from sonde.app.cli.main import main
from sonde.app.http.hosted import Hosted
Hosted.load = lambda _: threading.Event().wait()
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # tests that run under nohup ignore it, and so would their children
main()
"""


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGHUP])
def test_it_stops_on_a_signal_although_models_are_still_loading(folder: Path, sent: signal.Signals) -> None:
    port = free_port()
    command = [sys.executable, "-c", LOADS_FOR_EVER, "serve", str(folder), "--port", str(port)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr and process.stderr.readline().startswith("serving letters at")
            with urlopen(f"http://127.0.0.1:{port}/health", timeout=30) as answer:
                assert answer.status == 200
            process.send_signal(sent)
            assert (process.communicate(timeout=25)[1], process.returncode) == (ENDING, 0)
        finally:
            process.kill()


def test_the_command_line_refuses_to_listen_beyond_this_machine_without_keys(sonde: Command, folder: Path) -> None:
    sonde("serve", folder, "--host", "0.0.0.0").refused("--keys", "sonde serve key", code=2)
    sonde("serve", folder.parent / "none.sonde").refused("there is no collection at")
    sonde("serve", folder, "--keys", folder / "keys.json").refused("cannot read the keys")
    sonde("serve", folder, "--host", "192.0.2.7", "--keys", folder / "keys.json").refused("cannot read the keys")
    sonde("serve").refused("C.sonde", code=2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--port 99999", "--port is 99999: give one from 1 to 65535, or 0 for a free one"),
        ("--port -1", "--port is -1: give one from 1 to 65535, or 0 for a free one"),
        ("--rate nan", "--rate is nan: give a number of requests per second above 0"),
        ("--rate 0", "--rate is 0.0: give a number of requests per second above 0"),
        ("--timeout nan", "--timeout is nan: give a number of seconds above 0"),
        ("--timeout 0", "--timeout is 0.0: give a number of seconds above 0"),
        ("--queue -1", "--queue is -1: give a whole number from 1"),
    ],
)
def test_options_that_are_not_valid_are_named(sonde: Command, folder: Path, options: str, message: str) -> None:
    ran = sonde("serve", folder, *options.split())
    assert (ran.code, ran.out, ran.err) == (2, "", f"sonde: {message}\n")


def test_a_port_in_use_and_a_host_of_another_machine(sonde: Command, folder: Path, tmp_path: Path) -> None:
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        ran = sonde("serve", folder, "--port", port)
    said = f"sonde: port {port} of 127.0.0.1 is in use: choose another with --port\n"
    assert (ran.code, ran.out, ran.err) == (1, "", said)
    sonde("key", tmp_path / "keys.json", "--name", "a")
    elsewhere = sonde("serve", folder, "--host", "192.0.2.7", "--keys", tmp_path / "keys.json")
    said = "sonde: --host is '192.0.2.7': it is not an address of this machine; give 127.0.0.1, or 0.0.0.0 for all\n"
    assert (elsewhere.code, elsewhere.err) == (2, said)


def test_a_service_that_says_where_it_is_can_be_reached(
    sonde: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import uvicorn

    reached: list[str] = []

    def run(_: object, sockets: list[socket.socket]) -> None:
        logging.getLogger("sonde.http").error("it failed")
        with closing(socket.create_connection(sockets[0].getsockname(), 5)):
            reached.append(f"http://127.0.0.1:{sockets[0].getsockname()[1]}")

    monkeypatch.setattr(uvicorn.Server, "run", run)
    ran = sonde("serve", folder, "--port", "0")
    said, logged, ended = ran.err.splitlines(keepends=True)
    assert (ran.code, said, ended) == (0, f"serving letters at {reached[0]}, stop with Ctrl-C\n", ENDING)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d{4} ERROR it failed\n", logged)


def test_a_key_is_printed_once(sonde: Command, tmp_path: Path) -> None:
    ran = sonde("key", tmp_path / "keys.json", "--name", "reader")
    assert (ran.code, ran.out.startswith("sonde_"), len(ran.out.strip())) == (0, True, 49)
    assert ran.out.strip() not in (tmp_path / "keys.json").read_text()
    sonde("key", tmp_path / "keys.json", "--name", "reader").refused("taken", code=2)


def test_keys_are_listed_and_removed(sonde: Command, tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    keys = [sonde("serve", "key", path, "--name", name, "--rights", "write").out.strip() for name in ("anna", "bob")]
    assert sonde("serve", "key", path).out == "write  anna\nwrite  bob\n"
    opened = KeyFile(path)
    sonde("serve", "key", path, "--remove", "ana").refused("there is no key 'ana': did you mean 'anna'?", code=2)
    for name, key in zip(("anna", "bob"), keys, strict=True):
        ran = sonde("serve", "key", path, "--remove", name)
        assert (ran.code, ran.out, ran.err) == (0, "", f"{path} no longer contains the key {name!r}\n")
        assert opened.find(key) is None
    sonde("serve", "key", path).refused(f"{path} has no keys")
    assert sonde("serve", "key", path, "--name", "carl").code == 0
    assert sonde("serve", "key", path).out == "read   carl\n"
    sonde("serve", "key", path, "--remove", "carl", "--name", "dora").refused("--name", "--remove", code=2)
    sonde("serve", "key", path, "--rights", "write").refused("--rights needs --name", code=2)
    sonde("serve", "key", tmp_path / "none.json").refused("cannot read the keys in")
