"""Prometheus metrics of one service."""

import time

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .hosted import Hosts

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
CONTENT_TYPE = CONTENT_TYPE_LATEST


class Metrics:
    """Requests by route and status, their seconds, and what waits."""

    def __init__(self, hosts: Hosts) -> None:
        """Count for these collections, in a registry of their own: several services may live in one process."""
        self._registry = CollectorRegistry()
        self._requests = Counter("sonde_requests", "Requests answered.", ["route", "status"], registry=self._registry)
        self._seconds = Histogram(
            "sonde_request_seconds", "Seconds until the answer.", ["route"], buckets=BUCKETS, registry=self._registry
        )
        waiting = Gauge("sonde_waiting", "Searches that wait.", ["collection"], registry=self._registry)
        documents = Gauge("sonde_documents", "Documents in the collection.", ["collection"], registry=self._registry)
        for name, host in hosts.hosted.items():
            waiting.labels(name).set_function(lambda host=host: host.searches.waiting)
            documents.labels(name).set_function(lambda host=host: len(host.collection))

    def count(self, route: str, status: int, seconds: float) -> None:
        """Count an answered request."""
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self._registry)


class Measured:
    """Middleware that counts every answered request with its route, not its path: ids are no labels."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app = app
        self.metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand the request on and count its answer."""
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
