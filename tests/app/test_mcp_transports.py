"""The MCP server over raw standard input, and over streamable HTTP behind keys and host checks."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import anyio
import pytest
from command_line import Command
from fake_encoder import FakeEncoder
from mcp import Client
from starlette.testclient import TestClient

from sonde.app.api import Collection, index
from sonde.app.http.guard import add_key
from sonde.app.http.settings import ServeSettings
from sonde.app.mcp import server_of
from sonde.app.mcp.http import PATH, http_app

ACCEPT = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
VERSION = "2025-06-18"
HELLO = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}  # fmt: skip


def collection_of(folder: Path, name: str, *texts: str) -> Collection:
    path = folder / f"{name}.sonde"
    rows = [{"id": f"{name}-{number}", "text": text} for number, text in enumerate(texts)]
    index(rows, path, id="id", encoder=FakeEncoder())  # type: ignore[arg-type]
    return Collection.open(path, encoder=FakeEncoder())  # type: ignore[arg-type]


def asked(tool: str, number: int = 2, **arguments: Any) -> dict[str, Any]:
    params = {"name": tool, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


def test_every_line_with_an_id_is_answered(tmp_path: Path) -> None:
    collection = collection_of(tmp_path, "notes", "one", "two")
    lines = [
        json.dumps(HELLO),
        json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        "no JSON",
        '{"jsonrpc": "1.0", "id": 7, "method": "ping"}',
        '{"jsonrpc": "2.0", "id": "x", "method": 5}',
        '{"jsonrpc": "2.0", "id": 8, "method": "tools/call", "params": [1]}',
        "[]",
        json.dumps(asked("get_document", 9, id="notes-1")),
    ]
    code = "import sys; from sonde.app.cli.main import main; sys.argv = ['sonde', 'mcp', sys.argv[1]]; main()"
    command = [sys.executable, "-c", code, str(collection.path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin and process.stdout
        process.stdin.write("\n".join(lines) + "\n")
        process.stdin.flush()
        answers = [json.loads(process.stdout.readline()) for _ in range(7)]
        process.stdin.close()
        assert process.wait(30) == 0
    by_id = {str(answer.get("id")): answer for answer in answers}
    assert by_id["1"]["result"]["serverInfo"]["name"] == "sonde" and by_id["1"]["result"]["serverInfo"]["version"]
    assert by_id["9"]["result"]["structuredContent"]["text"] == "two"
    for key in ("7", "x", "8"):
        assert by_id[key]["error"]["code"] == -32600 and "JSON-RPC 2.0" in by_id[key]["error"]["message"], key
    unnamed = [answer["error"]["code"] for answer in answers if answer.get("id") is None]
    assert sorted(unnamed) == [-32700, -32600]


def test_requests_that_came_before_the_end_of_the_input_are_answered(tmp_path: Path) -> None:
    collection = collection_of(tmp_path, "notes", *(f"text {n}" for n in range(20)))
    calls = [asked("get_document", number, id=f"notes-{number - 10}") for number in range(10, 30)]
    cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 10}}
    said = [HELLO, {"jsonrpc": "2.0", "method": "notifications/initialized"}, *calls, cancelled]
    code = "import sys; from sonde.app.cli.main import main; sys.argv = ['sonde', 'mcp', sys.argv[1]]; main()"
    command = [sys.executable, "-c", code, str(collection.path)]
    ran = subprocess.run(
        command, input="".join(f"{json.dumps(each)}\n" for each in said), capture_output=True, text=True, timeout=120
    )
    answers = {answer["id"]: answer for answer in map(json.loads, ran.stdout.splitlines())}
    assert ran.returncode == 0 and {*answers} >= {1, *range(11, 30)}
    assert [answers[n]["result"]["structuredContent"]["text"] for n in range(11, 30)] == [
        f"text {n}" for n in range(1, 20)
    ]


def test_a_slow_call_reports_that_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    collection = collection_of(tmp_path, "notes", "one")
    get = collection.get
    monkeypatch.setattr("sonde.app.mcp.checked.WAIT", 0.02)
    monkeypatch.setattr(Collection, "get", lambda _, id: time.sleep(0.2) or get(id))
    server, heard = server_of(collection), list[float]()

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        assert total is None and message == f"running for {progress:g} s"
        heard.append(progress)

    async def ask(id: str) -> Any:
        async with Client(server) as client:
            return await client.call_tool("get_document", {"id": id}, progress_callback=hear)

    assert anyio.run(ask, "notes-0").structured_content["text"] == "one"
    assert heard and heard == sorted(heard)
    assert anyio.run(ask, "gone").is_error
    with TestClient(http_app(server, ServeSettings()), "http://127.0.0.1:8081") as client:
        request = asked("get_document", id="notes-0")
        request["params"]["_meta"] = {"progressToken": 1}
        answer = client.post(PATH, json=request, headers=ACCEPT | {"mcp-protocol-version": VERSION}).json()
    assert answer["result"]["structuredContent"]["text"] == "one"


def test_over_http_with_keys_and_several_collections(tmp_path: Path) -> None:
    server = server_of(collection_of(tmp_path, "notes", "one", "two"), collection_of(tmp_path, "other", "three"))
    key = add_key(tmp_path / "keys.json", "assistant", "read")
    settings = ServeSettings(keys=tmp_path / "keys.json", rate=50.0)
    headers = ACCEPT | {"authorization": f"Bearer {key}"}
    with TestClient(http_app(server, settings), "http://127.0.0.1:8081") as client:
        assert client.post(PATH, json=HELLO, headers=ACCEPT).status_code == 401
        assert client.post(PATH, json=HELLO, headers=headers | {"host": "evil.example"}).status_code == 421
        assert client.post(PATH, json=HELLO, headers=headers | {"origin": "http://evil.example"}).status_code == 403
        assert client.post(PATH, json=HELLO, headers=headers).json()["result"]["serverInfo"]["name"] == "sonde"

        def call(tool: str, **arguments: Any) -> Any:
            answer = client.post(
                PATH, json=asked(tool, **arguments), headers=headers | {"mcp-protocol-version": VERSION}
            )
            result = answer.json()["result"]
            return result["content"][0]["text"] if result.get("isError") else result["structuredContent"]

        assert [each["name"] for each in call("collections")["collections"]] == ["notes", "other"]
        assert call("count", collection="other") == {"documents": 1}
        assert call("get_document", id="notes-0", collection="notes.sonde")["text"] == "one"
        assert call("count") == "name the collection: there are notes, other"


def test_a_probe_needs_no_key(tmp_path: Path) -> None:
    add_key(tmp_path / "keys.json", "assistant", "read")
    server = server_of(collection_of(tmp_path, "notes", "one"))
    with TestClient(http_app(server, ServeSettings(keys=tmp_path / "keys.json")), "http://127.0.0.1:8081") as client:
        assert (client.get("/health").status_code, client.get("/health").json()) == (200, {"status": "alive"})
        assert (client.head("/health").status_code, client.head("/health").content) == (200, b"")
        assert client.get("/health", headers={"host": "evil.example"}).status_code == 421
        assert client.get("/other").status_code == client.post(PATH, json=HELLO).status_code == 401


@pytest.mark.parametrize("message", ["[]", '{"id": 1}', '{"jsonrpc": "2.0", "id": 1, "method": 5}', "{"])
def test_what_is_wrong_is_one_line(tmp_path: Path, message: str) -> None:
    server = server_of(collection_of(tmp_path, "notes", "one"))
    with TestClient(http_app(server, ServeSettings()), "http://127.0.0.1:8081") as client:
        answer = client.post(PATH, content=message, headers=ACCEPT)
    said = answer.json()["error"]["message"]
    assert answer.status_code == 400 and "\n" not in said and "pydantic" not in said
    assert ("JSON-RPC 2.0" in said) == (message != "{")


@pytest.mark.parametrize(
    ("options", "said"),
    [("--keys keys.json", "--keys needs --http"), ("--host 0.0.0.0 --port 1", "--host and --port need --http"),
     ("--allow-host a.example", "--allow-host needs --http")],
)  # fmt: skip
def test_options_of_http_without_it(sonde: Command, tmp_path: Path, options: str, said: str) -> None:
    ran = sonde("mcp", collection_of(tmp_path, "notes", "one").path, *options.split())
    assert (ran.code, ran.out, ran.err) == (2, "", f"sonde: {said}\n")


def test_two_collections_of_one_name(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(Exception, match="two collections have the name 'notes': rename the folder of one"):
        server_of(collection_of(tmp_path, "notes", "one"), collection_of(tmp_path / "a", "notes", "two"))
