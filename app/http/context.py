"""The parts that every route uses: collections, limits, guard, metrics, and shared models."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Query, Request
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ...indexer.errors import NOT_UNICODE, is_unicode
from ...pipelines.label import NliJudge, load_nli
from ..api.served import UNREADABLE, alive
from .guard import Guard, KeyFile
from .hosted import Hosted, Hosts
from .problems import MEDIA_TYPE, ProblemError
from .queues import Lanes
from .responses import ProblemOut
from .settings import ServeSettings

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
CONTENT_TYPE = CONTENT_TYPE_LATEST


class Metrics:
    """Number of requests by route and status, their duration in seconds, and the queue length."""

    def __init__(self, hosts: Hosts, keys: KeyFile | None = None) -> None:
        """Create a separate registry for these collections and keys, because one process may run several services."""
        self._registry = CollectorRegistry()
        self._requests = Counter("sonde_requests", "Requests answered.", ["route", "status"], registry=self._registry)
        self._seconds = Histogram(
            "sonde_request_seconds", "Seconds until the answer.", ["route"], buckets=BUCKETS, registry=self._registry
        )
        waiting = Gauge("sonde_waiting", "Searches that wait.", ["collection"], registry=self._registry)
        writes = Gauge("sonde_writes", "Writes that wait or run.", ["collection"], registry=self._registry)
        self._documents = Gauge(
            "sonde_documents", "Documents in the collection.", ["collection"], registry=self._registry
        )
        self._damaged = Gauge(
            "sonde_collection_damaged", "1 if the collection cannot be used.", ["collection"], registry=self._registry
        )
        self._hosts = hosts
        self._replicas = Gauge(
            "sonde_shard_replicas", "Processes that answer for a shard, with --on.", ["collection", "shard"],
            registry=self._registry,
        )  # fmt: skip
        for name, host in hosts.hosted.items():
            waiting.labels(name).set_function(lambda host=host: host.searches.waiting)
            writes.labels(name).set_function(lambda host=host: len(host.writes.jobs))
        if keys is not None:
            stale = Gauge("sonde_keys_stale", "1 while the key file cannot be used.", registry=self._registry)
            stale.set_function(lambda: keys.stale)

    def count(self, route: str, status: int, seconds: float) -> None:
        """Record an answered request."""
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        """Return all metrics in the Prometheus text format; a damaged collection has no number of documents."""
        for name, host in self._hosts.hosted.items():
            self._look(name, host)
        return generate_latest(self._registry)

    def _look(self, name: str, host: Hosted) -> None:
        documents = host.look()
        self._damaged.labels(name).set(documents is None)
        if documents is None:
            self._documents.remove(name)
            return
        self._documents.labels(name).set(documents)
        with suppress(*UNREADABLE):
            for shard, count in alive(host.collection).items():
                self._replicas.labels(name, str(shard)).set(count)


class Measured:
    """Middleware that counts each answered request under its route, not its path, so that ids do not become labels."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app = app
        self.metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on and count its answer."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status = time.perf_counter(), 500

        async def watch(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, watch)
        finally:
            route = getattr(scope.get("route"), "path", "unknown")
            self.metrics.count(route, status, time.perf_counter() - began)


class Models:
    """The service's NLI model; requests cannot name another, so no request can make the service download one."""

    def __init__(self, device: str) -> None:
        """Set the device on which models run."""
        self._device = device
        self._loading = threading.Lock()
        self._nli: NliJudge | None = None

    def nli(self) -> NliJudge:
        """Return the NLI model.

        Raises:
            SondeError: The model is not available.
        """
        with self._loading:
            if self._nli is None:
                self._nli = NliJudge(load_nli(device=self._device))
            return self._nli


T = TypeVar("T")
PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": ProblemOut, "description": text, "content": {MEDIA_TYPE: {}}}
    for status, text in {
        400: "The body is not valid JSON, or the address is not UTF-8.",
        401: "No valid key.",
        403: "The key may only read, or the request comes from a web page of another site.",
        404: "Not found.",
        408: "The body did not arrive in time.",
        409: "Another process is writing.",
        413: "The body is too large.",
        415: "The body is not sent as application/json.",
        421: "The service does not answer for this host.",
        422: "A field is invalid; `errors` names it.",
        429: "Too many requests.",
        500: "The collection is damaged (code `damaged`), or the service failed: see its log.",
        503: "The service is busy, the request took too long, or the collection's folder was moved or is read-only.",
        507: "The disk of the service is full.",
    }.items()
}


@dataclass(frozen=True, slots=True)
class Context:
    """The parts of a running service."""

    hosts: Hosts
    settings: ServeSettings
    guard: Guard
    models: Models

    async def in_time(self, waited: Awaitable[T]) -> T:
        """Wait for a result and return it.

        Raises:
            TimeoutError: The result takes longer than the service allows.
        """
        return await asyncio.wait_for(waited, self.settings.timeout)

    @property
    def lanes(self) -> Lanes:
        """Where work runs."""
        return self.hosts.lanes

    async def quick(self, function: Callable[..., T], *args: Any, **options: Any) -> T:
        """Run a blocking function of some milliseconds in a thread, within the service's time limit."""
        return await self.in_time(self.lanes.quick.run(partial(function, *args, **options)))

    async def slow(self, function: Callable[..., T], *args: Any, **options: Any) -> T:
        """Run a blocking function that may take long in a thread, within the service's time limit."""
        return await self.in_time(self.lanes.slow.run(partial(function, *args, **options)))

    def check_length(self, text: str, field: str) -> None:
        """Reject a text that is too long.

        Raises:
            ProblemError: The text is rejected (422); the error names the field.
        """
        most = self.settings.max_filter if field == "where" else self.settings.max_text
        if len(text) > most:
            raise ProblemError(422, f"{len(text):,} characters; the maximum is {most:,}", field, code="out-of-range")

    def check_text(self, text: str, field: str) -> None:
        """Reject a text that is too long, blank or not valid Unicode.

        Raises:
            ProblemError: The text is rejected (422); the error names the field.
        """
        self.check_length(text, field)
        if not text.strip():
            raise ProblemError(422, "the text is empty", field, code="empty")
        if not is_unicode(text):
            raise ProblemError(422, f"the text {NOT_UNICODE}", field, code="not-unicode")

    def check_count(self, count: int, field: str) -> None:
        """Reject a request with too many texts.

        Raises:
            ProblemError: There are too many texts (422).
        """
        if count > self.settings.max_texts:
            said = f"{count:,} entries; the maximum is {self.settings.max_texts:,}"
            raise ProblemError(422, said, field, code="out-of-range")

    def check_page(self, k: int, offset: int) -> None:
        """Reject a search for too many hits, with those that it skips.

        Raises:
            ProblemError: There are too many (422); the error names the number that is to blame.
        """
        most = self.settings.max_k
        if k + offset > most:
            said = f"k and offset are {k + offset:,} together; the maximum is {most:,}"
            raise ProblemError(422, said, "k" if k > most else "offset", code="out-of-range")


async def context(request: Request) -> Context:
    """Return the parts of the running service. This and the two below are async: others would run in a thread."""
    return request.app.state.context


async def reader(found: Annotated[Context, Depends(context)]) -> Context:
    """Mark a route that reads; `CheckedRoute` admits the request before its body is read."""
    return found


async def writer(found: Annotated[Context, Depends(context)]) -> Context:
    """Mark a route that writes; `CheckedRoute` admits the request before its body is read."""
    return found


Reader = Annotated[Context, Depends(reader)]
Writer = Annotated[Context, Depends(writer)]
Named = Annotated[str | None, Query(description="Name of the collection; optional if there is only one.")]
