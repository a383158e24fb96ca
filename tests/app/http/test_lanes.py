"""Lanes and batches: cheap searches go first, work that nobody waits for is dropped, slow connections are closed."""

import asyncio
import json
import threading
import time
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi import FastAPI

from sonde.app.http.hosted import is_quick
from sonde.app.http.queues import BusyError, Lane, MicroBatcher
from sonde.app.http.route import json_bytes
from sonde.app.http.server import Server
from sonde.app.http.settings import ServeSettings
from sonde.indexer.progress import check_wanted
from sonde.pipelines.search.settings import SearchSettings


def blocked(gate: threading.Event) -> Callable[[], bool]:
    return lambda: gate.wait(5)


def test_work_that_waits_is_dropped_when_its_caller_leaves() -> None:
    done: list[str] = []

    async def run() -> None:
        lane, gate = Lane("test", threads=1, waiting=1), threading.Event()
        running = asyncio.create_task(lane.run(blocked(gate)))
        waiting = asyncio.create_task(lane.run(lambda: done.append("waited")))
        await asyncio.sleep(0.05)
        with pytest.raises(BusyError, match=r"^$"):
            await lane.run(lambda: done.append("too many"))
        waiting.cancel()
        await asyncio.sleep(0.05)
        last = asyncio.create_task(lane.run(lambda: done.append("last")))
        gate.set()
        assert await running
        await last
        lane.finish()

    asyncio.run(run())
    assert done == ["last"]


def test_a_batch_holds_jobs_that_are_alike_and_nobody_left() -> None:
    batches: list[list[str]] = []
    gate = threading.Event()

    def work(jobs: Any) -> list[str]:
        gate.wait(5)
        batches.append(list(jobs))
        return list(jobs)

    async def run() -> None:
        lane = Lane("test", threads=1, waiting=9)
        batcher = MicroBatcher(work, lane, alike=lambda job: str(job)[0], waiting=9, together=2)
        tasks = {name: asyncio.create_task(batcher.submit(name)) for name in ("a1", "b1", "b2", "a2", "b3", "b4")}
        await asyncio.sleep(0.05)
        tasks["b2"].cancel()
        await asyncio.sleep(0.05)
        gate.set()
        del tasks["b2"]
        assert await asyncio.gather(*tasks.values()) == list(tasks)
        await batcher.close()
        lane.finish()

    asyncio.run(run())
    assert batches == [["a1", "a2"], ["b1", "b3"], ["b4"]]


def endless(steps: list[float]) -> None:
    """Work until nobody wants the result."""
    while True:
        check_wanted()
        steps.append(time.monotonic())
        time.sleep(0.001)


def test_work_that_reads_ends_when_its_caller_leaves() -> None:
    steps: list[float] = []

    async def run() -> float:
        lane = Lane("test", threads=1, waiting=1, reads=True)
        begun = asyncio.create_task(lane.run(lambda: endless(steps)))
        await asyncio.sleep(0.05)
        left = time.monotonic()
        begun.cancel()
        assert await asyncio.wait_for(lane.run(lambda: "the next one"), 5) == "the next one"
        lane.finish()
        return left

    left = asyncio.run(run())
    assert steps and sum(at > left for at in steps) < 50


def test_a_write_does_not_end_when_its_caller_leaves() -> None:
    done: list[str] = []

    def write() -> None:
        for part in "abc":
            check_wanted()
            done.append(part)
            time.sleep(0.05)

    async def run() -> None:
        lane = Lane("test", threads=1, waiting=1)
        begun = asyncio.create_task(lane.run(write))
        await asyncio.sleep(0.02)
        begun.cancel()
        await lane.run(lambda: None)
        lane.finish()

    asyncio.run(run())
    assert done == ["a", "b", "c"]


def test_a_batch_ends_when_its_last_caller_leaves_and_not_before() -> None:
    steps: list[float] = []
    gate = threading.Event()

    def work(jobs: Sequence[str]) -> list[str]:
        if jobs[0].startswith("a"):
            while not gate.is_set():
                check_wanted()
                steps.append(time.monotonic())
                time.sleep(0.001)
        return list(jobs)

    async def run(leave: Sequence[str]) -> list[object]:
        gate.clear()
        steps.clear()
        lane = Lane("test", threads=1, waiting=9, reads=True)
        batcher = MicroBatcher(work, lane, alike=lambda job: str(job)[0], waiting=9, together=2)
        first = asyncio.create_task(batcher.submit("b0"))  # alone, so that both others are in one batch
        tasks = {name: asyncio.create_task(batcher.submit(name)) for name in ("a1", "a2")}
        await first
        await asyncio.sleep(0.05)
        for name in leave:
            tasks[name].cancel()
        await asyncio.sleep(0.05)
        more = len(steps)
        await asyncio.sleep(0.05)
        going_on = len(steps) > more
        gate.set()
        found = await asyncio.gather(*tasks.values(), batcher.submit("b1"), return_exceptions=True)
        await batcher.close()
        lane.finish()
        return [going_on, *(each if isinstance(each, str) else type(each) for each in found)]

    assert asyncio.run(run(["a1"])) == [True, asyncio.CancelledError, "a2", "b1"]
    assert asyncio.run(run(["a1", "a2"])) == [False, asyncio.CancelledError, asyncio.CancelledError, "b1"]


@pytest.mark.parametrize(
    ("settings", "quick"),
    [({}, True), ({"k": 100}, True), ({"k": 51, "offset": 50}, False), ({"rerank": True}, False),
     ({"explain": True}, False), ({"where": "a = 1"}, True), ({"where": "a" * 1_001}, False), ({"depth": 500}, False)],
)  # fmt: skip
def test_which_searches_are_quick(settings: dict[str, Any], quick: bool) -> None:
    assert is_quick(SearchSettings(**settings)) is quick


def connection(waits: bool) -> Any:
    closed: list[bool] = []
    transport = SimpleNamespace(abort=lambda: closed.append(True))
    cycle = SimpleNamespace(response_complete=waits)
    return type("Connection", (), {"cycle": cycle, "flow": None, "transport": transport, "closed": closed})()


def test_connections_that_wait_for_too_long_or_are_too_many_are_closed() -> None:
    app = FastAPI()
    app.state.ready = asyncio.Event()
    server = Server(app, ServeSettings(connections=2, receive=20.0))
    old, busy, new = connection(True), connection(False), connection(True)
    server.server_state.connections |= {old, busy}
    server._close_stuck(0.0)
    server.server_state.connections.add(new)
    server._close_stuck(10.0)
    assert (old.closed, busy.closed, new.closed) == ([True], [], [])
    server.server_state.connections.discard(old)
    server._close_stuck(29.0)
    assert new.closed == []
    server._close_stuck(31.0)
    assert (busy.closed, new.closed) == ([], [True])


@pytest.mark.parametrize(
    "content", [{}, [], {"a": []}, {"a": [1, {"b": [None, "ü", 1.5, True]}], "c": {"1": [[[[[[2]]]]]]}}, "x", {1: 2}]
)
def test_json_in_pieces_is_the_same(content: Any) -> None:
    assert json_bytes(content) == json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
