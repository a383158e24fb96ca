"""An hour of `sonde serve` with 50 users and a writer beside it: failures, waits, memory and open files.

    python benchmarks/soak.py [--minutes 60] [--users 50] [--documents 200000] [--seed 1] [--texts T.parquet]

The service runs as a process of its own over 20,000 sentences with the static model. Users search, filter, read
documents and facets, put and delete documents of their own, and leave in the middle of an answer; together they make
about ten requests a second. A third process, `sonde index`, adds the documents in batches, spread over the time.

Every answer is compared with what is known: stored texts, the month of a filter, and each user's own documents, which
must be found by id and by filter. An answer of 409 or 503 with `Retry-After` is counted as refused; it is a failure
only if retries do not succeed within a minute, or for a write, which waits for the runs of the writer, within five
minutes. Each minute prints a line, and a table ends the run. The exit code is 1
if anything failed, or if the service's resident memory grew in the second half by more than 15 % and the growth of its
indexes and embeddings on disk (medians of the first and last third of that half).
"""

import argparse
import asyncio
import contextlib
import json
import random
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import quote

import httpx2
import numpy as np
import psutil
import pyarrow.parquet as pq
from _side_by_side import DATA, machine

SONDE = (sys.executable, "-c", "from sonde.app.cli.main import main; main()")
FIRST = 20_000
"""Documents before the first user comes."""
BATCH = 4_000
"""Documents in one run of `sonde index`."""
REQUESTS = 10
"""Requests a second of all users together."""
PATIENCE, WRITING = 60, 300
"""Seconds for which a refused request is tried again, and for which an answer may take; and those of a write."""
GROWTH = 1.15
A_MONTH = re.compile(r"\d{4}-\d{2}")  # one value that is none makes the column a text, in which no month is found
EXPECTED = ("stop with Ctrl-C", "every request that had begun was answered")
"""How the lines in the log of a service end that had no difficulties."""
Rows = list[dict[str, Any]]


@dataclass
class Minute:
    """What happened in one minute."""

    requests: int = 0
    refused: int = 0
    left: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    search: list[float] = field(default_factory=list)
    health: list[float] = field(default_factory=list)
    put: list[float] = field(default_factory=list)
    memory: int = 0
    files: int = 0
    stored: int = 0
    loaded: int = 0

    def __str__(self) -> str:
        memory, stored, loaded = (round(size / 1e6) for size in (self.memory, self.stored, self.loaded))
        counts = f"{self.requests:>8} {self.failed.total():>6} {self.refused:>7} {self.left:>4}"
        waits = f"{waited(self.search):>16} {waited(self.health):>14}"
        return f"{counts} {waits} {memory:>6} {self.files:>5} {stored:>9} {loaded:>6}"


HEAD = f"{'minute':>6} {'requests':>8} {'failed':>6} {'refused':>7} {'left':>4} {'search ms':>16} {'/health ms':>14}"
HEAD += f" {'RSS MB':>6} {'files':>5} {'stored MB':>9} {'loaded':>6}"


def waited(milliseconds: list[float]) -> str:
    """Return the median and the 99th percentile."""
    return "{:.0f}, {:.0f}".format(*np.percentile(milliseconds, (50, 99))) if milliseconds else "none"


def main() -> None:
    """Index the first documents, run the service, its users and the writer, and judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--users", type=int, default=50)
    parser.add_argument("--documents", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--texts", type=Path, default=DATA / "scale" / "arxiv_sentences.parquet")
    given = parser.parse_args()
    print(machine("sonde", "fastapi", "uvicorn"), f"seed {given.seed}", sep="\n", flush=True)
    with tempfile.TemporaryDirectory() as name:
        rows = pq.read_table(given.texts).slice(0, FIRST + given.documents).to_pylist()
        rows = [row for row in rows if A_MONTH.fullmatch(row["month"])]
        collection = Path(name) / "soak.sonde"
        indexed(collection, rows[:FIRST], "--model", "static").check_returncode()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        log = Path(name) / "serve.log"
        with log.open("w") as stderr:
            serve = [*SONDE, "serve", str(collection), "--port", str(port)]
            service = subprocess.Popen(serve, stderr=stderr)
            soak = Soak(collection, psutil.Process(service.pid), f"http://127.0.0.1:{port}", rows, given)
            try:
                asyncio.run(soak.run())
            finally:
                service.terminate()
                code = service.wait(60)
        sys.exit(verdict(soak, code, log.read_text("utf-8")))


def indexed(collection: Path, rows: Rows, *options: str) -> subprocess.CompletedProcess[str]:
    """Run `sonde index` on rows, waiting as long as needed for the service's writes."""
    source = collection.with_name("batch.jsonl")
    source.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    command = [*SONDE, "index", str(source), "--to", str(collection), "--wait", "300", *options]
    return subprocess.run([*command, "--id", "id", "--text", "text"], capture_output=True, text=True)


class Soak:
    """The service, what is known of its documents, and what happened so far."""

    def __init__(
        self, collection: Path, service: psutil.Process, base: str, rows: Rows, given: argparse.Namespace
    ) -> None:
        self.collection, self.service, self.rows = collection, service, rows
        self.minutes: list[Minute] = [Minute()]
        self.written = FIRST
        self.batches: list[float] = []
        self.end = time.monotonic() + given.minutes * 60
        self._given = given
        limits = httpx2.Limits(max_connections=None, keepalive_expiry=2)  # the service closes idle ones after 5 s
        self.client = httpx2.AsyncClient(base_url=base, timeout=PATIENCE, limits=limits, trust_env=False)

    async def run(self) -> None:
        """Let the users and the writer work until the time is over."""
        async with self.client:
            await self.ready()
            self.end = time.monotonic() + self._given.minutes * 60
            print(HEAD, flush=True)
            users = [User(self, number, self._given) for number in range(self._given.users)]
            await asyncio.gather(self.write(), self.probe(), self.count(), *(user.run() for user in users))
            self.minutes.pop()
            await self.compare(sum(len(user.own) for user in users), sum(len(user.unsure) for user in users))

    async def ready(self) -> None:
        """Wait until models and indexes are loaded."""
        for _ in range(600):
            with contextlib.suppress(httpx2.HTTPError):
                if (await self.client.get("/ready")).status_code == 200:
                    return
            await asyncio.sleep(0.2)
        raise SystemExit("the service does not start")

    def failed(self, problem: str) -> None:
        """Count a failure; print the first of each kind in a minute."""
        failed = self.minutes[-1].failed
        failed[problem] += 1
        if failed[problem] == 1:
            print(f"{time.strftime('%H:%M:%S')} failed: {problem}", flush=True)

    async def asked(self, method: str, path: str, body: Any = None, expected: int = 200) -> Any:
        """Return the JSON of an answer, None if there is no good one; try again for a minute if told to."""
        patience = WRITING if method in ("PUT", "DELETE") else PATIENCE
        given_up = time.monotonic() + patience
        while True:
            self.minutes[-1].requests += 1
            try:
                answer = await self.client.request(method, path, json=body, timeout=patience)
            except httpx2.HTTPError as error:
                return self.failed(f"{method} {path.split('?')[0]}: {type(error).__name__} {error}")
            if answer.status_code == expected:
                return answer.json()
            if "Retry-After" not in answer.headers or time.monotonic() > given_up:
                return self.failed(f"{method} {path.split('?')[0]}: {answer.status_code} {answer.text[:300]}")
            self.minutes[-1].refused += 1
            await asyncio.sleep(float(answer.headers["Retry-After"]))

    async def write(self) -> None:
        """Index the documents in batches at even distances, the last well before the end."""
        starts = range(FIRST, len(self.rows), BATCH)
        began = time.monotonic()
        distance = (self.end - began) * 0.9 / max(1, len(starts))
        for number, start in enumerate(starts):
            await asyncio.sleep(max(0.0, began + number * distance - time.monotonic()))
            if time.monotonic() > self.end:
                return  # the runs took longer than the time allows: the table says how many there were
            batch, since = self.rows[start : start + BATCH], time.monotonic()
            ran = await asyncio.to_thread(indexed, self.collection, batch)
            self.batches.append(time.monotonic() - since)
            if ran.returncode:
                self.failed(f"sonde index: {ran.stderr[-300:]}")
            self.written += len(batch)

    async def probe(self) -> None:
        """Ask /health once a second."""
        while time.monotonic() < self.end:
            began = time.perf_counter()
            await self.asked("GET", "/health")
            self.minutes[-1].health.append((time.perf_counter() - began) * 1e3)
            await asyncio.sleep(1)

    async def count(self) -> None:
        """Print a line for every minute."""
        while (now := time.monotonic()) < self.end:
            await asyncio.sleep(min(60, self.end - now))
            minute = self.minutes[-1]
            self.minutes.append(Minute())
            processes = [self.service, *self.service.children(recursive=True)]
            minute.memory = sum(each.memory_info().rss for each in processes)
            minute.files = sum(each.num_fds() for each in processes)
            minute.stored = size_of(self.collection)
            minute.loaded = sum(size_of(self.collection / part) for part in ("ann", "lexical", "vectors"))
            print(f"{len(self.minutes) - 1:>6} {minute}", flush=True)

    async def compare(self, own: int, unsure: int) -> None:
        """Compare the number of documents with those written and those that the users kept."""
        self.minutes.append(Minute())
        found = await self.asked("GET", "/collections")
        if found and not 0 <= found[0]["documents"] - self.written - own <= unsure:
            self.failed(f"{found[0]['documents']} documents, but {self.written} and {own} were written")
        checked = subprocess.run([*SONDE, "verify", str(self.collection)], capture_output=True, text=True)
        if checked.returncode:
            self.failed(f"sonde verify: {checked.stdout[-300:]} {checked.stderr[-300:]}")


def size_of(folder: Path) -> int:
    """Return the bytes of the files below a folder; a writer may delete some meanwhile."""
    total = 0
    for path in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            total += path.stat().st_size
    return total


class User:
    """Someone who asks, thinks, and keeps documents of their own."""

    def __init__(self, soak: Soak, number: int, given: argparse.Namespace) -> None:
        self._soak, self._name = soak, f"user{number}"
        self._chance = random.Random(f"{given.seed} {number}")
        self._thinking = given.users / REQUESTS
        self.own: dict[str, str] = {}
        self.unsure: set[str] = set()  # after a failed write, of which nobody knows how far it came
        self._last: str | None = None
        self._put = 0

    async def run(self) -> None:
        """Do one thing after the other until the time is over."""
        doings = {self.search: 40, self.filter: 15, self.read: 10, self.look: 10, self.facets: 2, self.put: 10}
        doings |= {self.delete: 4, self.leave: 9}
        while True:
            await asyncio.sleep(self._chance.expovariate(1 / self._thinking))
            if time.monotonic() > self._soak.end:
                return
            await self._chance.choices(list(doings), list(doings.values()))[0]()

    def _row(self) -> dict[str, Any]:
        return self._soak.rows[self._chance.randrange(self._soak.written)]

    def _query(self) -> str:
        return " ".join(self._row()["text"].split()[:6])

    async def _hits(self, body: dict[str, Any]) -> Rows | None:
        began = time.perf_counter()
        answer = await self._soak.asked("POST", "/search", body)
        self._soak.minutes[-1].search.append((time.perf_counter() - began) * 1e3)
        return answer and answer["hits"]

    async def search(self) -> None:
        """Search; ten different documents must be found."""
        hits = await self._hits({"query": self._query(), "k": 10})
        if hits is not None and len({hit["id"] for hit in hits}) != 10:
            self._soak.failed(f"a search found {[hit['id'] for hit in hits]}")

    async def filter(self) -> None:
        """Search one month, or one's own documents, all of which must be found."""
        if self.own and self._chance.random() < 0.5:
            hits = await self._hits({"query": self._query(), "k": 1_000, "where": f"owner = '{self._name}'"})
            if hits is not None and ({hit["id"] for hit in hits} ^ set(self.own)) - self.unsure:
                self._soak.failed(f"{self._name} owns {sorted(self.own)} but found {sorted(hit['id'] for hit in hits)}")
            return
        month = self._row()["month"]
        hits = await self._hits({"query": self._query(), "k": 10, "where": f"month = '{month}'"})
        if hits is not None and {hit["metadata"]["month"] for hit in hits} != {f"{month}-01"}:
            self._soak.failed(f"a search of {month} found {[hit['metadata'] for hit in hits]}")

    async def read(self) -> None:
        """Read a document that the writer wrote."""
        row = self._row()
        await self._same(row["id"], row["text"])

    async def look(self) -> None:
        """Read one's own last document."""
        if self._last:
            await self._same(self._last, self.own[self._last])

    async def _same(self, key: str, text: str) -> None:
        found = await self._soak.asked("GET", f"/documents?id={quote(key)}")
        if found and found["text"] != text:
            self._soak.failed(f"the document {key} has the text {found['text']!r}, not {text!r}")

    async def facets(self) -> None:
        """Read the facets."""
        answer = await self._soak.asked("POST", "/read/facets", {"options": {}})
        if answer and not answer["result"]:
            self._soak.failed(f"the facets are {answer}")

    async def put(self) -> None:
        """Put a document, at times in place of one's last, and read it."""
        if not self._last or self._chance.random() < 0.7:
            self._put += 1
            key = f"{self._name}-{self._put}"
        else:
            key = self._last
        text = f"{self._row()['text']} {self._chance.random()}"
        document = {"id": key, "text": text, "metadata": {"owner": self._name}}
        began = time.monotonic()
        answer = await self._soak.asked("PUT", "/documents", {"documents": [document]})
        self._soak.minutes[-1].put.append(time.monotonic() - began)
        if answer and answer["added"] + answer["replaced"] != 1:
            self._soak.failed(f"the answer to a put is {answer}")
        self.unsure.discard(key)
        if answer:
            self.own[key], self._last = text, key
            await self._same(key, text)
        else:
            self._give_up(key)

    async def delete(self) -> None:
        """Delete one's last document; it must be gone."""
        if self._last and await self._soak.asked("DELETE", f"/documents?id={self._last}"):
            await self._soak.asked("GET", f"/documents?id={self._last}", expected=404)
            del self.own[self._last]
            self._last = next(reversed(self.own), None)
        elif self._last:
            self._give_up(self._last)

    def _give_up(self, key: str) -> None:
        self.unsure.add(key)
        self.own.pop(key, None)
        self._last = next(reversed(self.own), None)

    async def leave(self) -> None:
        """Ask for much and leave before the answer has arrived."""
        body = {"query": self._query(), "k": 200, "explain": True}
        self._soak.minutes[-1].left += 1
        with contextlib.suppress(TimeoutError, httpx2.HTTPError):
            async with asyncio.timeout(self._chance.uniform(0.005, 0.3)):
                await self._soak.client.post("/search", json=body)


def verdict(soak: Soak, code: int, log: str) -> int:
    """Print the table of the whole run; return the exit code."""
    minutes = soak.minutes
    if code:
        soak.failed(f"the service ended with exit code {code}")
    if unexpected := [line for line in log.splitlines() if not line.endswith(EXPECTED)]:
        soak.failed(f"the service's log has {len(unexpected)} lines: {' / '.join(unexpected[:5])[:1000]}")
    half = minutes[len(minutes) // 2 : -1] or minutes[:1]
    third = max(1, len(half) // 3)
    early, late = half[:third], half[-third:]
    before, after = (median(each.memory for each in part) for part in (early, late))
    loaded = median(each.loaded for each in late) - median(each.loaded for each in early)
    allowed = before * GROWTH + max(0.0, loaded)
    failed = sum((minute.failed for minute in minutes), Counter[str]())
    whole = {name: [each for minute in minutes for each in getattr(minute, name)] for name in ("search", "health")}
    puts = [each for minute in minutes for each in minute.put] or [0.0]
    table = {
        "requests": f"{sum(minute.requests for minute in minutes):,}",
        "failed": f"{failed.total():,}",
        "refused, then answered": f"{sum(minute.refused for minute in minutes):,}",
        "left before the answer": f"{sum(minute.left for minute in minutes):,}",
        "search p50, p99": f"{waited(whole['search'])} ms",
        "/health p50, p99": f"{waited(whole['health'])} ms",
        "seconds of a put with its retries, median, longest": f"{median(puts):.1f}, {max(puts):.1f}"
        if puts
        else "none",
        "documents indexed beside it": f"{soak.written - FIRST:,} in {len(soak.batches)} runs",
        "seconds of a run, median, longest": f"{median(soak.batches):.1f}, {max(soak.batches):.1f}",
        "resident memory in the second half": f"{before / 1e6:,.0f} to {after / 1e6:,.0f} MB",
        "allowed": f"{allowed / 1e6:,.0f} MB, of which the indexes grew by {loaded / 1e6:,.0f}",
        "open files, first and last minute": f"{minutes[0].files}, {minutes[-2].files}",
        "size of the collection": f"{minutes[0].stored / 1e6:,.0f} to {minutes[-2].stored / 1e6:,.0f} MB",
    }
    print("\n".join(f"| {name} | {value} |" for name, value in table.items()))
    print("\n".join(f"{count} × {problem}" for problem, count in failed.most_common(20)), flush=True)
    return int(failed.total() > 0 or after > allowed)


if __name__ == "__main__":
    main()
