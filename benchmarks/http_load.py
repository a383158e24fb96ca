"""`sonde serve` beside the textbook service: an `async def` endpoint that calls `encode` and a FAISS index directly.

    python benchmarks/http_load.py [--collection C.sonde] [--users 50] [--seconds 120]

Both serve the same texts with the same model on one uvicorn worker and answer the same queries (the first words of
stored texts) with the ids and texts of ten hits, by vectors alone (mode dense), and are checked to give the same ids.
`--users` clients ask one query after the other, in `--runs` turns for each service; printed are requests a second,
latencies and failed requests, and Sonde's own hybrid mode. Without a collection, the 20,000 titles of stackoverflow
are indexed first.
"""

import argparse
import asyncio
import itertools
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from _side_by_side import DATA, beside, machine, spread

PORTS = {"textbook": 8191, "sonde": 8192}
QUERIES = 500


def main() -> None:
    """Start both services, load them in turn, and print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--collection", type=Path)
    parser.add_argument("--users", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=120, help="for each service, all turns together")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--serve", choices=PORTS)
    arguments = parser.parse_args()
    if arguments.serve:
        {"textbook": serve_textbook, "sonde": serve_sonde}[arguments.serve](arguments.collection)
        return
    print(machine("sonde", "fastapi", "uvicorn", "sentence-transformers", "faiss-cpu", "torch"))
    arguments.collection = arguments.collection or indexed()
    queries = some_queries(arguments.collection)
    with ExitStack() as stack:
        for name in PORTS:
            stack.enter_context(service(name, arguments.collection))
        found = {name: [ids(port, query) for query in queries[:20]] for name, port in PORTS.items()}
        turn = arguments.seconds / arguments.runs

        def loaded(name: str, mode: str) -> Rates:
            rates = asyncio.run(load(PORTS[name], mode, queries, arguments.users, turn))
            print(f"{name:<9} {mode:<7} {rates}", flush=True)
            return rates

        turns = [(loaded("sonde", "dense"), loaded("textbook", "dense")) for _ in range(arguments.runs)]
        loaded("sonde", "hybrid")
    same = np.mean([a == b for a, b in zip(found["textbook"], found["sonde"], strict=True)])
    ours, theirs = (spread([pair[side].late for pair in turns]) for side in (0, 1))
    outputs = f"p95 {ours} ms against {theirs} ms, same ids for {same:.0%} of 20 queries"
    beside("requests a second", "the textbook service", [one.rate / other.rate for one, other in turns], outputs)


@contextmanager
def service(name: str, collection: Path) -> Iterator[None]:
    """Run a service until the block ends."""
    process = subprocess.Popen([sys.executable, __file__, "--collection", str(collection), "--serve", name])
    try:
        wait(PORTS[name])
        yield
    finally:
        process.terminate()
        process.wait()


def indexed() -> Path:
    """Index the titles of stackoverflow in a temporary folder."""
    import sonde

    path = Path(tempfile.mkdtemp()) / "stackoverflow.sonde"
    sonde.index(DATA / "topics" / "stackoverflow.jsonl.gz", path).close()
    return path


def some_queries(path: Path) -> list[str]:
    """Return the first words of stored texts."""
    import sonde

    with sonde.open(path).stored.view() as view:
        texts = view.catalog.connection.execute(f"SELECT text FROM documents ORDER BY doc LIMIT {QUERIES}").fetchall()
    return [" ".join(text.split()[:8]) or "a" for (text,) in texts]


class Rates:
    """Requests a second, latencies and failures of one load."""

    def __init__(self, seconds: list[float], failed: int, wall: float) -> None:
        self.rate = len(seconds) / wall
        self.median, self.late = np.percentile(np.array(seconds) * 1e3, (50, 95))
        self.failed = failed

    def __str__(self) -> str:
        latencies = f"median {self.median:.0f} ms, 95th percentile {self.late:.0f} ms"
        return f"{self.rate:.0f} requests a second, {latencies}, {self.failed} failed"


async def load(port: int, mode: str, queries: list[str], users: int, seconds: float) -> Rates:
    """Let so many users ask one query after the other."""
    import httpx2

    taken: list[float] = []
    failed = 0
    source = itertools.cycle(queries)
    end = time.perf_counter() + seconds

    async def user(client: httpx2.AsyncClient) -> None:
        nonlocal failed
        while time.perf_counter() < end:
            began = time.perf_counter()
            try:
                answer = await client.post("/search", json={"query": next(source), "k": 10, "mode": mode})
                failed += answer.status_code != 200
            except httpx2.HTTPError:
                failed += 1
            taken.append(time.perf_counter() - began)

    limits = httpx2.Limits(max_connections=users, max_keepalive_connections=users)
    began = time.perf_counter()
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", limits=limits, timeout=60) as client:
        await asyncio.gather(*(user(client) for _ in range(users)))
    return Rates(taken, failed, time.perf_counter() - began)


def wait(port: int) -> None:
    """Wait until a service answers."""
    import httpx2

    for _ in range(600):
        try:
            if httpx2.get(f"http://127.0.0.1:{port}/ready").status_code == 200:
                return
        except httpx2.HTTPError:
            pass
        time.sleep(0.2)
    raise SystemExit(f"nothing answers on port {port}")


def ids(port: int, query: str) -> list[str]:
    """Return the ids that a service finds."""
    import httpx2

    answer = httpx2.post(f"http://127.0.0.1:{port}/search", json={"query": query, "k": 10, "mode": "dense"}).json()
    return [hit["id"] for hit in answer["hits"]]


def serve_sonde(path: Path) -> None:
    """Serve as `sonde serve` does."""
    import uvicorn

    from sonde.app.http.hosted import Hosts
    from sonde.app.http.service import create_app
    from sonde.app.http.settings import ServeSettings

    settings = ServeSettings(port=PORTS["sonde"])
    app = create_app(Hosts.open([path], settings), settings)
    uvicorn.run(app, host="127.0.0.1", port=PORTS["sonde"], log_level="warning")


def serve_textbook(path: Path) -> None:
    """Serve the same documents as a tutorial would."""
    import faiss
    import uvicorn
    from fastapi import FastAPI
    from pydantic import BaseModel
    from sentence_transformers import SentenceTransformer

    import sonde
    from sonde.indexer.encoder.models import locate

    with sonde.open(path).stored.view() as view:
        rows = view.catalog.connection.execute("SELECT key, title, text FROM documents ORDER BY doc").fetchall()
        from sonde.indexer.store.view import document_vectors

        docs = [doc for (doc,) in view.catalog.connection.execute("SELECT doc FROM documents ORDER BY doc")]
        vectors = document_vectors(view, docs)
    model = SentenceTransformer(str(locate(sonde.load_encoder().spec.name, print).folder), device="cpu")
    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(vectors)  # pyright: ignore[reportCallIssue]
    app = FastAPI()

    class Query(BaseModel):
        query: str
        k: int = 10
        mode: str = "dense"

    @app.get("/ready")
    async def ready() -> dict[str, str]:
        return {"status": "ready"}

    @app.post("/search")
    async def search(body: Query) -> dict[str, Any]:
        vector = model.encode([body.query], normalize_embeddings=True, show_progress_bar=False)
        scores, places = index.search(vector, body.k)  # pyright: ignore[reportCallIssue]
        hits = [
            {"id": rows[place][0], "title": rows[place][1], "text": rows[place][2], "score": float(score)}
            for score, place in zip(scores[0], places[0], strict=True)
        ]
        return {"hits": hits}

    uvicorn.run(app, host="127.0.0.1", port=PORTS["textbook"], log_level="warning")


if __name__ == "__main__":
    main()
