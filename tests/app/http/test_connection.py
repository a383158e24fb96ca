"""`sonde.connect` over real sockets: connections that break, late answers, and addresses that are not valid."""

import json
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from http_service import client_of, folder  # noqa: F401  (a fixture)

import sonde
from sonde.app.http.client import PATIENCE, RemoteCollection
from sonde.app.http.settings import listening
from sonde.indexer.errors import SondeError, UsageError


@contextmanager
def live(app: Any) -> Iterator[str]:
    """Serve an application from a thread of this process; yield its address."""
    bound = listening("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical"))
    thread = threading.Thread(target=server.run, args=([bound],))
    thread.start()
    try:
        yield f"127.0.0.1:{bound.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


@pytest.fixture
def app(folder: Path) -> Any:  # noqa: F811
    return client_of(folder).app


def searches_of(app: Any) -> Any:
    return app.state.context.hosts.find(None).searches


def test_an_unexpected_error_does_not_break_the_connection(app: Any, caplog: pytest.LogCaptureFixture) -> None:
    with live(app) as address, closing(HTTPConnection(address)) as connection:
        connection.connect()
        connection.auto_open = 0  # type: ignore[assignment]  # a connection that was closed is not made again

        def ask() -> tuple[int, dict[str, Any]]:
            connection.request("POST", "/search", b'{"query": "battery"}', {"content-type": "application/json"})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())

        searches, work = searches_of(app).quick, searches_of(app).quick._work
        searches._work = lambda _: 1 / 0
        with caplog.at_level(logging.ERROR, "sonde.http"):
            status, problem = ask()
        assert (status, problem["status"]) == (500, 500)
        assert problem["detail"] == "the service failed: see its log"
        assert "POST /search failed" in caplog.text
        assert "ZeroDivisionError" in caplog.text
        searches._work = work
        assert ask()[0] == 200
        connection.request("GET", "/metrics")
        assert 'route="/search",status="500"' in connection.getresponse().read().decode()


def test_a_client_that_leaves_while_it_sends_changes_nothing(app: Any, caplog: pytest.LogCaptureFixture) -> None:
    head = (
        "PUT /documents HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n"
    )
    with live(app) as address, caplog.at_level(logging.WARNING):
        host, _, port = address.partition(":")
        with closing(socket.create_connection((host, int(port)))) as left:
            left.sendall(f'{head}{{"documents": [{{"id": "half", "text": "a ze'.encode())
        left_over = 'sonde_requests_total{route="/documents",status="499"} 1.0'
        for _ in range(100):
            with closing(HTTPConnection(address)) as connection:
                connection.request("GET", "/metrics")
                if left_over in connection.getresponse().read().decode():
                    break
            time.sleep(0.05)
        else:
            pytest.fail("the lost request was not counted")
        with closing(HTTPConnection(address)) as connection:
            connection.request("GET", "/documents/half")
            assert connection.getresponse().status == 404
    assert caplog.text == ""


@contextmanager
def fragile(drops: int, answer: bytes) -> Iterator[tuple[str, list[str]]]:
    """Yield the address of a server that closes its first `drops` connections without an answer, and what it read."""
    got: list[str] = []
    with closing(socket.socket()) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with closing(connection):
                    got.append(connection.recv(65_536).decode().split(" ")[1])
                    if len(got) > drops:
                        connection.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}", got
        listener.shutdown(socket.SHUT_RDWR)
    thread.join(5)


def answered(body: str) -> bytes:
    head = f"HTTP/1.1 200 OK\r\ncontent-length: {len(body)}\r\ncontent-type: application/json\r\n\r\n"
    return (head + body).encode()


def test_a_call_that_reads_is_sent_again_once(folder: Path) -> None:  # noqa: F811
    with fragile(1, answered('{"result": {"$tuple": [3, 4]}}')) as (address, got), sonde.connect(address) as remote:
        assert remote.counts() == (3, 4)
        assert got == ["/read/counts"] * 2
    with fragile(9, b"") as (address, got), sonde.connect(address) as remote:
        with pytest.raises(SondeError, match=rf"^http://{address} cannot be reached: "):
            remote.counts()
        assert got == ["/read/counts"] * 2


def test_a_call_that_writes_is_never_sent_again() -> None:
    with fragile(1, answered('{"result": 1}')) as (address, got), sonde.connect(address) as remote:
        with pytest.raises(SondeError, match=r"broke before an answer came .*: what was sent may be stored"):
            remote.delete("1")
        assert got == ["/write/delete"]


def test_a_late_answer_is_not_called_unreachable(app: Any) -> None:
    collection = app.state.context.hosts.find(None).collection
    collection.compact = lambda: time.sleep(0.4)
    with live(app) as address, sonde.connect(address, timeout=0.1) as remote:
        said = rf"^no answer from http://{address} within 0.1 s; the service may still be working: give sonde.connect"
        with pytest.raises(SondeError, match=said):
            remote.compact()


def test_a_write_waits_as_long_as_it_takes_unless_a_timeout_was_chosen() -> None:
    with sonde.connect("http://127.0.0.1:1") as patient, sonde.connect("127.0.0.1:1", timeout=5) as chosen:
        assert patient._http.timeout.read == PATIENCE == 60
        assert patient._for_writes is not None
        assert (patient._for_writes.read, patient._for_writes.connect) == (None, PATIENCE)
        assert (chosen._http.timeout.read, chosen._for_writes) == (5, None)


def test_what_is_no_service_is_said() -> None:
    said = r"^http://\S+ does not answer like `sonde serve`: is this its address\?$"
    with (
        fragile(0, answered("<html>")) as (address, _),
        sonde.connect(address) as remote,
        pytest.raises(SondeError, match=said),
    ):
        remote.counts()


def test_a_closed_connection() -> None:
    remote = sonde.connect("http://127.0.0.1:1")
    remote.close()
    with pytest.raises(SondeError, match=r"^the connection is closed: open another with sonde.connect\(\)$"):
        remote.search("battery")


@pytest.mark.parametrize("given", ["127.0.0.1:8093", "localhost:8080", "search.example.org", "[::1]:80"])
def test_an_address_without_a_scheme_is_http(given: str) -> None:
    with sonde.connect(given) as remote:
        assert repr(remote) == f"RemoteCollection('http://{given.removesuffix(':80')}')"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sonde.connect(None), "^url is None: give a string$"),  # type: ignore[arg-type]
        (lambda: sonde.connect(""), "^'' is not the address of a service: give one such as http://127.0.0.1:8080$"),
        (lambda: sonde.connect("ftp://a"), "^'ftp://a' is not the address of a service"),
        (lambda: sonde.connect("a:b"), "^'a:b' is not the address of a service"),
        (lambda: sonde.connect("a", timeout=-1), "^timeout is -1: give a number of seconds above 0$"),
        (lambda: sonde.connect("a", timeout=float("nan")), "^timeout is nan: give a number of seconds above 0$"),
        (lambda: sonde.connect("a", timeout="5"), "^timeout is '5': give a number$"),  # type: ignore[arg-type]
        (
            lambda: sonde.connect("a", key="é"),
            "^the key is not valid: give it exactly as `sonde serve key` printed it$",
        ),
        (lambda: sonde.connect("a", collection=3), "^collection is 3: give a string$"),  # type: ignore[arg-type]
    ],
)
def test_arguments_that_are_not_valid(call: Callable[[], RemoteCollection], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        call()
