"""How long a stranger can make others wait: /health and a cheap search while the service is overloaded on purpose.

    python benchmarks/overload.py [--collection C.sonde] [--seconds 15] [--load k1000 ...]

`sonde serve` runs as a process of its own over 100,000 short texts with the static model, indexed first if no
collection is given. One client asks /health ten times a second, another a search with k=10; beside them runs one load
after the other. Printed are p50, p99 and the slowest of both, and how many of them failed; "idle" before and after.
"""

import argparse
import asyncio
import contextlib
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import numpy as np
from _side_by_side import DATA, machine

PORT = 8193
BASE = f"http://127.0.0.1:{PORT}"
CLIENTS = 20
SEVERAL = 2
"""Different requests of each client."""
ROWS = 100_000
Load = Callable[[float], Coroutine[Any, Any, None]]


def main() -> None:
    """Start the service, load it in every way, and print the waits."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--collection", type=Path)
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--load", nargs="*", choices=LOADS, default=list(LOADS))
    parser.add_argument("--beside", choices=LOADS, help="only make this load")
    arguments = parser.parse_args()
    if arguments.beside:
        asyncio.run(LOADS[arguments.beside](time.perf_counter() + arguments.seconds + 2))
        return
    print(machine("sonde", "fastapi", "uvicorn"))
    collection = arguments.collection or indexed()
    run = "from sonde.app.cli.main import main; main()"
    command = [sys.executable, "-c", run, "serve", str(collection), "--port", str(PORT)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        asyncio.run(measure([*arguments.load, "idle"], arguments.seconds))
    finally:
        process.terminate()
        print(process.communicate()[1])


def indexed() -> Path:
    """Index the first sentences of arXiv in a temporary folder."""
    import pyarrow.parquet as pq

    import sonde

    folder = Path(tempfile.mkdtemp())
    pq.write_table(pq.read_table(DATA / "scale" / "arxiv_sentences.parquet").slice(0, ROWS), folder / "arxiv.parquet")
    settings = sonde.BuildSettings(model="static")
    sonde.index(folder / "arxiv.parquet", folder / "arxiv.sonde", settings=settings).close()
    return folder / "arxiv.sonde"


async def measure(loads: list[str], seconds: float) -> None:
    """Ask both questions beside each load."""
    await ready()
    print(f"{'load':<12} {'/health p50, p99, max ms':>32} {'search p50, p99, max ms':>34}   failed")
    for name in loads:
        end = time.perf_counter() + seconds + 2
        beside = subprocess.Popen([sys.executable, __file__, "--beside", name, "--seconds", str(seconds)])
        await asyncio.sleep(2)
        health, search = await asyncio.gather(
            repeated(end, "GET", "/health", None),
            repeated(end, "POST", "/search", {"query": "graphs", "k": 10}),
        )
        print(f"{name:<12} {shown(health):>32} {shown(search):>34}   {health.failed}, {search.failed}", flush=True)
        beside.kill()
        beside.wait()


class Waits:
    """Milliseconds until answers, and the number of requests without a good one."""

    def __init__(self) -> None:
        self.milliseconds: list[float] = []
        self.failed = 0


def shown(waits: Waits) -> str:
    """Return p50, p99 and the longest wait."""
    if not waits.milliseconds:
        return "no answer"
    p50, p99, most = np.percentile(waits.milliseconds, (50, 99, 100))
    return f"{p50:.1f}, {p99:.1f}, {most:.1f} of {len(waits.milliseconds)}"


async def repeated(end: float, method: str, path: str, body: Any) -> Waits:
    """Ask ten times a second, each time on a connection of its own, as a stranger would."""
    waits = Waits()
    while (began := time.perf_counter()) < end:
        status = await asked(request_of(method, path, body), patience=60)
        waits.milliseconds.append((time.perf_counter() - began) * 1e3)
        waits.failed += status != 200
        await asyncio.sleep(max(0.0, 0.1 - (time.perf_counter() - began)))
    return waits


def request_of(method: str, path: str, body: Any) -> bytes:
    """Return a request as bytes."""
    content = b"" if body is None else json.dumps(body).encode()
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{PORT}\r\nConnection: close\r\n"
    kind = f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n" if content else ""
    return f"{head}{kind}\r\n".encode() + content


async def asked(request: bytes, patience: float) -> int:
    """Send a request and return the status of the answer, 0 if there is none in time."""
    writer = None
    try:
        async with asyncio.timeout(patience):
            reader, writer = await asyncio.open_connection("127.0.0.1", PORT)
            writer.write(request)
            answer = await reader.read()
            return int(answer[9:12] or 0)
    except (OSError, TimeoutError, ValueError):
        return 0
    finally:
        if writer:
            writer.close()


async def ready() -> None:
    """Wait until models and indexes are loaded."""
    for _ in range(600):
        if await asked(request_of("GET", "/ready", None), 5) == 200:
            return
        await asyncio.sleep(0.2)
    raise SystemExit("the service does not start")


def many(body: Callable[[], Any], path: str = "/search", patience: float = 60, method: str = "POST") -> Load:
    """Return a load of 20 clients that send a body again and again; each waits that many seconds for the answer."""

    async def client(end: float) -> None:
        requests = [request_of(method, path, body()) for _ in range(SEVERAL)]
        while time.perf_counter() < end:
            await asked(random.choice(requests), patience)

    async def load(end: float) -> None:
        await asyncio.gather(*(client(end) for _ in range(CLIENTS)))

    return load


async def idle(_: float) -> None:
    """Do nothing."""


async def slow_senders(end: float) -> None:
    """Open 300 connections that send a byte of a header, or of a body, every second."""

    async def sender(head: bytes) -> None:
        while time.perf_counter() < end:
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", PORT)
                writer.write(head)
                while time.perf_counter() < end and not writer.is_closing():
                    writer.write(b"a")
                    await writer.drain()
                    await asyncio.sleep(1)
                writer.close()
            await asyncio.sleep(0.1)

    header = f"GET /health HTTP/1.1\r\nHost: 127.0.0.1:{PORT}\r\nX-Slow: ".encode()
    body = request_of("POST", "/search", {"query": "a" * 5_000})[:250]
    await asyncio.gather(*(sender(header if number % 2 else body) for number in range(300)))


def words() -> str:
    """Return a query."""
    return " ".join(random.choices(["neural", "graph", "learning", "privacy", "language", "models", "vision"], k=4))


def filters(number: int, condition: str, connector: str = " OR ") -> Callable[[], Any]:
    """Return a search with a filter of that many comparisons."""

    def body() -> Any:
        where = connector.join(condition.format(random.random()) for _ in range(number))
        return {"query": words(), "where": where}

    return body


def values() -> Any:
    """Return a search with a filter of as many values as a request may have."""
    return {"query": words(), "where": "id IN (" + ", ".join(f"'x{number}'" for number in range(1_200)) + ")"}


LOADS: dict[str, Load] = {
    "idle": idle,
    "k1000": many(lambda: {"query": words(), "k": 1_000}),
    "filters": many(filters(30, "LOWER(month) LIKE '%{}%'")),
    "refused": many(filters(450, "category < '{}'")),
    "values": many(values),
    "leaving": many(lambda: {"query": words(), "k": 1_000, "explain": True}, patience=0.05),
    "rerank": many(lambda: {"query": words(), "rerank": True}),
    "bodies": many(lambda: {"texts": [1] * 1_900_000}, "/embed"),
    "options": many(lambda: {"options": {"query": [[1]] * 500_000}}, "/read/search"),
    "slow": slow_senders,
}


if __name__ == "__main__":
    main()
