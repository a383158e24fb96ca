"""A namer: a loopback server stands for the endpoint; what is sent, and what becomes of each kind of answer."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from sonde import Collection, SondeError, UsageError
from sonde.indexer.progress import Progress
from sonde.pipelines.analysis.naming import namer as module
from sonde.pipelines.analysis.naming.namer import KEY, Namer, ask_namer
from sonde.pipelines.analysis.naming.names import Naming, Sample
from tests.support.command_line import Command

PARCELS = [f"my parcel {word} today" for word in ("arrived late", "was lost", "came", "is late", "got lost", "waits")]
PHONES = [f"the battery of my phone {word}" for word in ("died", "is weak", "broke", "swells", "leaks", "is hot")]


class Endpoint:
    """Answers each request with the next of `answers`: a name, or status and body."""

    def __init__(self) -> None:
        self.answers: list[object] = []
        self.requests: list[dict] = []
        self.keys: list[str | None] = []
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                endpoint.requests.append(body)
                endpoint.keys.append(self.headers.get("Authorization"))
                answer = endpoint.answers.pop(0)
                status, content = answer if isinstance(answer, tuple) else (200, completion(str(answer)))
                self.send_response(status)
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"


def completion(text: str) -> bytes:
    return json.dumps({"choices": [{"message": {"content": text}}]}).encode()


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    made = Endpoint()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture
def naming() -> Naming:
    return Naming(Sample([*PARCELS, *PHONES], np.repeat([0, 1], 6), 2, ["en"]))


def ask(naming: Naming, endpoint: Endpoint, known: dict[str, str] | None = None, **more: bool):
    said: list[Progress | str] = []
    names = naming.choose()
    found = ask_namer(
        Namer(endpoint.url, "m", **more), naming, names, {0: PARCELS, 1: PHONES}, known or {}, said.append
    )
    return found, names, [str(each) for each in said]


def test_good_answers_become_names(naming: Naming, endpoint: Endpoint) -> None:
    endpoint.answers = ['```json\n{"name": "Late parcel"}\n```', '"Phone battery."']
    found, _, said = ask(naming, endpoint)
    assert found.names == ["Late parcel", "Phone battery"]
    assert said[0] == f"sending the beginnings of 10 texts in 2 requests to {endpoint.url[7:-3]}"
    assert [answer["accepted"] for answer in found.answers.values()] == [True, True]
    sent = json.loads(endpoint.requests[0]["messages"][1]["content"])
    assert endpoint.requests[0]["model"] == "m" and sent["texts"] == PARCELS[:5] and "parcel" in sent["phrases"][0]


@pytest.mark.parametrize("answer", ["Battery phone", "Weather", "parcel, parcels", "x" * 80 + " parcel", "", "{}"])
def test_answers_that_tell_less_are_refused(naming: Naming, endpoint: Endpoint, answer: str) -> None:
    endpoint.answers = [json.dumps({"name": answer}), "Phone battery"]
    found, names, _ = ask(naming, endpoint)
    assert found.names[0] == names[0] and found.names[1] == "Phone battery"
    assert found.answers[0]["accepted"] is False


def test_a_name_that_another_group_has_is_refused(naming: Naming, endpoint: Endpoint) -> None:
    endpoint.answers = ["Parcel", "parcel"]
    found, names, _ = ask(naming, endpoint)
    assert found.names == ["Parcel", names[1]]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ((401, b"{}"), f"refused the key (status 401): set {KEY}"),
        ((500, b"no"), "answered with status 500"),
        ((200, b"<html>"), "did not answer with a chat completion"),
        ((200, b'{"choices": []}'), "did not answer with a chat completion"),
    ],
)
def test_a_failure_is_one_line_and_the_names_stay(
    naming: Naming, endpoint: Endpoint, answer: object, message: str
) -> None:
    endpoint.answers = ["Late parcel", answer]
    found, names, said = ask(naming, endpoint)
    assert found.names == ["Late parcel", names[1]] and len(endpoint.requests) == 2
    assert message in said[1] and said[1].endswith("groups without an answer keep the names made of their phrases")


def test_a_slow_or_closed_endpoint_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    monkeypatch.setattr(module, "PATIENCE", 0.2)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        with pytest.raises(SondeError, match="did not answer within 0 s"):
            Namer(url, "m").ask(b"{}")
    with pytest.raises(SondeError, match="cannot be reached"):
        Namer(url, "m").ask(b"{}")


def test_known_answers_are_not_asked_for_again(naming: Naming, endpoint: Endpoint) -> None:
    endpoint.answers = ["Late parcel", "Phone battery"]
    first, _, _ = ask(naming, endpoint)
    known = {answer["asked"]: answer["answer"] for answer in first.answers.values()}
    again, _, said = ask(naming, endpoint, known)
    assert again == first and len(endpoint.requests) == 2 and said[0].startswith("sending the beginnings of 0 texts")


def test_the_key_comes_from_the_environment(
    naming: Naming, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY, "secret")
    endpoint.answers = ["Late parcel", "Phone battery"]
    ask(naming, endpoint)
    assert endpoint.keys == ["Bearer secret"] * 2
    with pytest.raises(UsageError, match=r"SONDE_NAMER_KEY would be sent to example.org unencrypted: use https"):
        Namer.of("http://example.org/v1", "m")


def test_showing_sends_nothing(naming: Naming, endpoint: Endpoint) -> None:
    found, names, said = ask(naming, endpoint, show=True)
    assert found.names == names and endpoint.requests == [] and PARCELS[0] in said[0]
    assert said[-1].startswith("nothing was sent to 127.0.0.1:")


@pytest.mark.parametrize(("url", "model", "message"), [
    ("http://localhost/v1", None, "a namer needs"), (None, "m", "a namer needs"),
    ("file:///etc/passwd", "m", "give an address such as"), ("http://localhost:x/v1", "m", "give an address such as"),
])  # fmt: skip
def test_addresses_are_checked(url: str | None, model: str | None, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Namer.of(url, model)
    assert Namer.of(None, None) is None


def test_the_command_asks_once_and_keeps_the_answers(sonde: Command, own_shop: Collection, endpoint: Endpoint) -> None:
    endpoint.answers = ["Late parcel", "Phone battery"] * 2
    options = ("-k", 2, "--namer", endpoint.url, "--namer-model", "m", "--refits", 0)
    first = sonde("cluster", own_shop.path, *options, "--json")
    assert "sending the beginnings of 10 texts in 2 requests to 127.0.0.1" in first.err
    asked = len(endpoint.requests)
    again = sonde("cluster", own_shop.path, *options, "--replace", "--json")
    assert len(endpoint.requests) == asked == 2
    names = [[json.loads(line)["name"] for line in ran.out.splitlines()] for ran in (first, again)]
    assert names[0] == names[1]
    assert {item.data["namer"]["accepted"] for item in own_shop.run("kmeans").items} <= {True, False}
    sonde("cluster", own_shop.path, "-k", 2, "--namer", endpoint.url).refused("--namer and --namer-model", code=2)


@pytest.fixture
def own_shop(tmp_path, sonde: Command) -> Collection:
    from sonde.app.api import open as open_collection

    file = tmp_path / "shop.csv"
    file.write_text("text\n" + "\n".join([*PARCELS, *PHONES]) + "\n")
    sonde("index", file, "--to", tmp_path / "shop.sonde", "--text", "text")
    return open_collection(tmp_path / "shop.sonde")
