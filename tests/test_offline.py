"""No byte leaves the machine: sockets are blocked in the suite, and a run with the bundled model opens none at all."""

import base64
import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
import typer.main
from default_model import default_model
from fake_encoder import FakeEncoder
from pytest_socket import SocketConnectBlockedError

from sonde.app.api import index
from sonde.app.cli.main import app_for

# An audit hook sees every connection and look-up that Python starts, whichever library asks, and cannot be undone.
# It writes each down before it raises, so that a library which swallows the error is found all the same.
WATCHED = """
    import sys

    OWN = ("127.0.0.1", "::1", "localhost", "0.0.0.0", None)

    def watch(event, arguments):
        if event in ("socket.connect", "socket.sendto", "socket.getaddrinfo", "socket.gethostbyname"):
            address = arguments[1] if event in ("socket.connect", "socket.sendto") else arguments[0]
            host = address[0] if isinstance(address, tuple) else address
            if (event.startswith("socket.get") or isinstance(address, tuple)) and host not in OWN:
                with open(sys.argv[1], "a") as log:
                    log.write(f"{event} {host}\\n")
                raise OSError(f"blocked: {event} {host}")

    sys.addaudithook(watch)
"""
RUN = """
    from sonde.app.cli.main import main
    sys.argv = ["sonde", *sys.argv[2:]]
    main()
"""


def online(log: Path) -> dict[str, str]:
    """Return an environment in which nothing already keeps libraries off the network.

    With `CI`, ONNX Runtime reports nothing to its makers.
    """
    left_out = ("CI", "_OFFLINE", "_TELEMETRY", "_CACHE_HOME")
    given = {name: value for name, value in os.environ.items() if not name.endswith(left_out)}
    home = log.parent / "home"
    return given | {"OMP_NUM_THREADS": "2", "HF_HOME": str(log.parent / "empty-cache"), "HOME": str(home)}


def reached(log: Path) -> list[str]:
    """Return what was tried to reach, and the files of other makers in the home: a library in C++ has no audit hook.

    ONNX Runtime keeps an identifier and what it will send in ~/.cache/Microsoft.
    """
    tried = log.read_text("utf-8").splitlines() if log.exists() else []
    strange = [path for path in (log.parent / "home").glob("**/*") if "sonde" not in path.parts and path.is_file()]
    return [*tried, *map(str, strange)]


def watched(body: str, log: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python code under the hook."""
    script = textwrap.dedent(WATCHED) + textwrap.dedent(body)
    command = [sys.executable, "-c", script, str(log), *arguments]
    given = online(log)
    return subprocess.run(command, capture_output=True, text=True, cwd=log.parent, env=given, timeout=300, check=False)


def test_a_connection_to_another_machine_is_blocked_in_the_suite():
    with pytest.warns(UserWarning, match="socket"), pytest.raises(SocketConnectBlockedError, match=r"192\.0\.2\.1"):
        socket.create_connection(("192.0.2.1", 80), timeout=1)


def test_a_connection_to_this_machine_is_allowed_in_the_suite():
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname(), timeout=1) as client,
    ):
        assert client.getpeername() == server.getsockname()


def test_the_hub_is_switched_off_in_the_suite():
    from huggingface_hub import constants

    assert constants.HF_HUB_OFFLINE, "set before huggingface_hub was imported"


def test_the_hook_sees_what_it_should(tmp_path):
    body = """
        import socket
        for attempt in (
            lambda: socket.create_connection(("192.0.2.1", 80), timeout=1),
            lambda: socket.getaddrinfo("example.org", 443),
        ):
            try:
                attempt()
            except OSError:
                pass
        server = socket.socket(); server.bind(("127.0.0.1", 0)); server.listen()
        client = socket.socket(); client.connect(server.getsockname())
    """
    run = watched(body, tmp_path / "attempts.log")
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "attempts.log").read_text().splitlines() == [
        "socket.getaddrinfo 192.0.2.1",
        "socket.getaddrinfo example.org",
    ]


def test_index_and_search_with_the_bundled_model_try_no_connection(tmp_path):
    if not default_model():
        pytest.skip("the default model is not in this checkout: make weights")
    log = tmp_path / "attempts.log"
    (tmp_path / "pets.csv").write_text(
        "id,text\n"
        "1,The cat sleeps on the warm stove all day.\n"
        "2,Stock markets fell sharply after the announcement.\n"
        "3,Our dog barks at the postman every morning.\n"
    )
    indexed = watched(RUN, log, "index", "pets.csv", "--to", "pets.sonde")
    assert indexed.returncode == 0, indexed.stderr
    found = watched(RUN, log, "search", "pets.sonde", "shares lost value", "-k", "1", "--json")
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout.splitlines()[0])["id"] == "2"
    assert reached(log) == []


def test_a_mistyped_model_fails_without_a_connection(tmp_path):
    log = tmp_path / "attempts.log"
    (tmp_path / "pets.csv").write_text("id,text\n1,The cat sleeps.\n")
    run = watched(RUN, log, "index", "pets.csv", "--to", "pets.sonde", "--model", "./no-such-folder")
    assert run.returncode in (1, 2)
    assert "no-such-folder" in run.stderr
    assert "Traceback" not in run.stderr
    assert reached(log) == []
    assert not (tmp_path / "pets.sonde").exists()


SERVERS = ("mcp", "serve", "ui")
"""Commands that run until they are stopped; tests below."""
GIVEN = {
    "index": "x.jsonl --to y.sonde",
    "demo": "--help",  # it would index the standard library
    "key": "keys.json --name a",
    "similarity": "apples pears",
}
"""Arguments of commands that have no collection as their first one."""


def commands(group: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the words of every command of the command line."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*words, name))
        else:
            yield (*words, name)


ALL = """
    import contextlib, io, json
    from sonde.app.cli.main import main
    for words in json.loads(sys.argv[2]):
        sys.argv = ["sonde", *words]
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as said:
            try:
                main()
            except SystemExit as end:
                print(" ".join(words), "->", end.code, said.getvalue()[-120:].strip(), file=sys.__stdout__)
"""


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small collection made with the bundled model; the file that it was made from lies beside it."""
    if not default_model():
        pytest.skip("the default model is not in this checkout: make weights")
    folder = tmp_path_factory.mktemp("offline")
    rows = [{"id": str(n), "text": f"letter {n} about apples and pears", "kind": "ab"[n % 2]} for n in range(12)]
    (folder / "x.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    indexed = watched(RUN, folder / "attempts.log", "index", "x.jsonl", "--to", "c.sonde")
    assert indexed.returncode == 0, indexed.stderr
    return folder / "c.sonde"


def test_no_command_tries_a_connection(collection: Path) -> None:
    """Run every command on a small collection; many then fail on an argument, after their imports and checks."""
    found = [words for words in commands(typer.main.get_command(app_for())) if words[0] not in SERVERS]
    assert len(found) > 30
    asked: list[list[str]] = []
    for words in found:
        given = [*words, *GIVEN.get(words[0], "c.sonde").split()]
        asked += [given, [*given, "apples"]]
    log = collection.parent / "attempts.log"
    run = watched(ALL, log, json.dumps(asked))
    assert run.returncode == 0, run.stderr
    assert len(run.stdout.splitlines()) >= len(asked), run.stdout
    assert reached(log) == []


@contextmanager
def server(log: Path, *words: str) -> Iterator[int]:
    """Run a server under the hook until the block ends, and yield its port; SIGTERM must end it with one line."""
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (log.parent / "sitecustomize.py").write_text(textwrap.dedent(WATCHED).replace("sys.argv[1]", repr(str(log))))
    path = os.pathsep.join([str(log.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-c", "from sonde.app.cli.main import main; main()", *words, "--port", str(port)]
    given = online(log) | {"PYTHONPATH": path}
    process = subprocess.Popen(command, cwd=log.parent, env=given, stderr=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.1)
        yield port
        process.send_signal(signal.SIGTERM)
        said = process.communicate(timeout=40)[1].splitlines()
        assert (process.returncode, len(said)) == (0, 2), said
        assert said[1].startswith("sonde: stopped"), said
    finally:
        process.kill()
        process.communicate()


def status(port: int, method: str, path: str, body: Any = None, **headers: str) -> int:
    """Return the status of the answer to a request."""
    given = {"Content-Type": "application/json"} if body is not None else {}
    with closing(HTTPConnection("127.0.0.1", port, timeout=120)) as connection:
        connection.request(method, path, None if body is None else json.dumps(body), given | headers)
        return connection.getresponse().status


def upgraded(port: int, **headers: str) -> int:
    """Return the status of the answer to a request for a WebSocket."""
    key = {"Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": base64.b64encode(b"0123456789abcdef").decode()}
    return status(port, "GET", "/_stcore/stream", Connection="Upgrade", Upgrade="websocket", **key, **headers)


def test_the_service_tries_no_connection(collection: Path) -> None:
    log = collection.parent / "attempts.log"
    with server(log, "serve", "c.sonde") as port:
        assert status(port, "POST", "/search", {"query": "apples"}) == 200
        assert status(port, "GET", "/collections") == 200
        assert status(port, "GET", "/health", Host="evil.example") == 421
        assert status(port, "GET", "/health", Origin="http://evil.example") == 403
    assert reached(log) == []


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_the_web_ui_tries_no_connection(tmp_path: Path, host: str) -> None:
    from sonde.app.http.guard import add_key

    index(["apples", "pears"], tmp_path / "c.sonde", encoder=FakeEncoder())  # type: ignore[arg-type]
    add_key(tmp_path / "keys.json", "a", "read")
    log = tmp_path / "attempts.log"
    more = ["--keys", "keys.json", "--host", host, "--allow-host", "search.example.org"]
    with server(log, "ui", "c.sonde", *more) as port:
        assert status(port, "GET", "/") == 200
        assert status(port, "GET", "/", Host="evil.example") == 421
        assert upgraded(port) == 101
        assert upgraded(port, Origin=f"http://127.0.0.1:{port}") == 101
        assert upgraded(port, Origin="https://search.example.org") == 101
        assert upgraded(port, Origin="http://evil.example") == 403
        assert upgraded(port, Host="evil.example") == 403
    assert reached(log) == []
