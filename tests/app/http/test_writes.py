"""Writes of a service: documents beside a long method, what is known of both, and a client that leaves."""
# ruff: noqa: F811  (fixtures that are imported)

import asyncio
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from fastapi.testclient import TestClient
from http_service import client, folder, local, refused  # noqa: F401  (fixtures)

from sonde.app.api import Collection
from sonde.app.http import writes
from sonde.app.http.writes import Writes
from sonde.indexer.progress import Progress
from sonde.indexer.store.lock import writer_lock

NEW = {"documents": [{"id": "9", "text": "A hinge squeaks.", "metadata": {"stars": 3}}]}
CLUSTER = {"options": {"k": 2, "name": "two"}}


@pytest.fixture(autouse=True)
def _logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "sonde.http")


class Gate:
    """A step of a long method, which waits here until a test lets it go on."""

    def __init__(self) -> None:
        self.came, self.open = threading.Event(), threading.Event()

    def __call__(self) -> None:
        self.came.set()
        assert self.open.wait(20)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    """A gate in the middle of `cluster`: after the documents were read, before the run is written."""
    made, clustered = Gate(), Collection.cluster

    def slow(self: Collection, name: str = "clusters", *, progress: Any, **options: Any) -> Any:
        def told(event: Any) -> None:
            progress(Progress("waits", 1, 2, "steps"))
            if not made.came.is_set():
                made()
            progress(event)

        return clustered(self, name, progress=told, **options)

    monkeypatch.setattr(Collection, "cluster", slow)
    yield made
    made.open.set()


def began(call: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    answers: list[Any] = []
    thread = threading.Thread(target=lambda: answers.append(call()))
    thread.start()
    return thread, answers


def test_a_document_is_put_beside_a_long_method_and_nothing_is_lost(
    client: TestClient, local: Collection, gate: Gate
) -> None:
    thread, answers = began(lambda: client.post("/write/cluster", json=CLUSTER))
    assert gate.came.wait(20)
    [job] = client.get("/jobs").json()
    assert (job["method"], job["state"], job["client_waits"]) == ("cluster", "running", True)
    assert job["progress"] == {"stage": "waits", "done": 1, "total": 2, "unit": "steps"}
    assert client.put("/documents", json=NEW).json()["added"] == 1
    assert client.delete("/documents/2").json() == {"deleted": 1}
    tag = {"options": {"name": "new", "ids": ["9"]}}
    assert client.post("/write/tag", json=tag).status_code == 200
    assert 'sonde_writes{collection="reviews"} 1.0' in client.get("/metrics").text
    gate.open.set()
    thread.join()
    assert answers[0].status_code == 200, answers[0].text
    assert client.get("/jobs").json() == []
    assert sorted(row["id"] for row in local.rows()) == ["1", "9", "a/b"]
    assert sorted(run.name for run in local.runs()) == ["new", "two"]
    assert sorted(each.id for each in local.assignments("two", kind="cluster")) == ["1", "a/b"]
    assert local.verify() == []


def test_long_methods_wait_for_each_other_and_the_log_says_so(
    client: TestClient, gate: Gate, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writes, "TOLD", 0.0)
    first, one = began(lambda: client.post("/write/cluster", json=CLUSTER))
    assert gate.came.wait(20)
    rename = {"options": {"kind": {"$kind": "cluster"}, "name": "two", "to": "pair"}}
    second, two = began(lambda: client.post("/write/rename_run", json=rename))
    while len(jobs := client.get("/jobs").json()) < 2:
        time.sleep(0.01)
    assert [(job["method"], job["state"]) for job in jobs] == [("cluster", "running"), ("rename_run", "waiting")]
    gate.open.set()
    first.join()
    second.join()
    assert [answer.status_code for answer in (*one, *two)] == [200, 200], two[0].text
    said = caplog.text
    assert "`rename_run` of reviews waits for `cluster` of reviews, which has run for 0 s" in said
    assert "`cluster` of reviews ended after 0 s" in said


def test_a_method_that_holds_the_lock_is_named(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Gate()

    def compact(self: Collection, **_: Any) -> None:
        with writer_lock(self.path):
            made()

    monkeypatch.setattr(Collection, "compact", compact)
    monkeypatch.setattr(writes, "WAIT", 0.3)
    monkeypatch.setattr(writes, "LEAST_WAIT", 0.1)
    thread, _ = began(lambda: client.post("/write/compact", json={}))
    assert made.came.wait(20)
    answer = client.put("/documents", json=NEW)
    refused(answer, 409, "`compact` of reviews, which has run for", "s, is writing to the collection: try again")
    assert (answer.json()["code"], answer.headers["retry-after"]) == ("busy", "1")
    made.open.set()
    thread.join()
    assert client.put("/documents", json=NEW).json()["added"] == 1


def steps(notify: Callable[[Progress], None], gate: Gate) -> str:
    gate()
    for step in range(3):
        notify(Progress("count", step, 3, "steps"))
    return "done"


@pytest.mark.parametrize(
    ("method", "ending"),
    [
        ("cluster", "the write stops at its next step|was stopped, and stored nothing, after"),
        ("late", "the write goes on|ended"),
    ],
)
def test_a_client_that_leaves(method: str, ending: str, caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> list[bool]:
        queue, gate = Writes("reviews", 9), Gate()
        task = asyncio.create_task(queue.run(method, lambda notify: steps(notify, gate)))
        while not gate.came.is_set():
            await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait([task])
        waits = [job.to_dict()["client_waits"] for job in queue.jobs]
        gate.open.set()
        await asyncio.to_thread(queue.finish)
        assert queue.jobs == []
        return waits

    assert asyncio.run(run()) == [False]
    for words in ending.split("|"):
        assert f"`{method}` of reviews" in caplog.text and words in caplog.text


def test_a_write_that_waits_is_dropped_with_its_client() -> None:
    done: list[str] = []

    async def run() -> None:
        queue, gate = Writes("reviews", 9), Gate()
        first = asyncio.create_task(queue.run("late", lambda _: gate()))
        while not gate.came.is_set():
            await asyncio.sleep(0.01)
        second = asyncio.create_task(queue.run("map", lambda _: done.append("map")))
        await asyncio.sleep(0.05)
        second.cancel()
        await asyncio.wait([second])
        assert [job.method for job in queue.jobs] == ["late"]
        gate.open.set()
        await first
        await asyncio.to_thread(queue.finish)

    asyncio.run(run())
    assert done == []


SLOW = """
import time
from fake_encoder import FakeEncoder
from sonde.app.api import Collection
from sonde.app.cli.main import main
Collection.compact = lambda self: time.sleep(2)
main()
"""


def test_a_service_that_stops_says_what_it_waits_for(folder: Path) -> None:
    command = [sys.executable, "-c", SLOW, "serve", str(folder), "--port", "0"]
    support = str(Path(__file__).parents[2] / "support")
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": support}) as run:
        try:
            assert run.stderr
            url = next(line for line in run.stderr if line.startswith("serving")).split()[3].rstrip(",")
            sent = Request(f"{url}/write/compact", b"{}", {"content-type": "application/json"})
            thread, answers = began(lambda: urlopen(sent, timeout=30).status)
            while b"running" not in urlopen(f"{url}/jobs", timeout=30).read():
                time.sleep(0.05)
            run.send_signal(signal.SIGTERM)
            said = run.communicate(timeout=25)[1]
            thread.join()
        finally:
            run.kill()
    assert answers == [200]
    assert "WARNING stopping: `compact` of reviews has been running for" in said
    assert said.endswith("sonde: stopped; every request that had begun was answered\n")
