"""The application: routes, guard, limits and metrics for open collections, and its description as OpenAPI."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from importlib import metadata
from typing import Any

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware

from . import problems
from .context import Context, Measured, Metrics, Models
from .guard import Guard, KeyFile
from .hosted import Hosts
from .origin import OwnPages
from .problems import MEDIA_TYPE
from .queues import BusyError
from .routes import documents, methods, runs, search
from .settings import ServeSettings

ROUTERS = (search.router, search.judge_router, documents.router, runs.router, methods.router, documents.state_router)

OPEN = ("/health", "/ready")
"""Routes that need no key."""

WAY = "put both behind one proxy, so that they have the same origin, or add --allow-origin ORIGIN (see docs/http.md)"
"""What to do about a web page elsewhere."""
AGAIN = 10.0
"""Seconds after which the service tries again to load a collection that it could not load."""


def create_app(hosts: Hosts, settings: ServeSettings) -> FastAPI:
    """Create the application. It loads the models at startup, outside the event loop.

    Raises:
        SondeError: The key file cannot be read.
    """
    keys = KeyFile(settings.keys) if settings.keys else None
    app = FastAPI(
        title="Sonde",
        version=metadata.version("sonde"),
        description="Semantic search over collections of text. Errors are problem details (RFC 9457).",
        lifespan=_lifespan,
        redoc_url=None,
        redirect_slashes=False,  # it would redirect before the key is checked, and from https to http behind a proxy
        generate_unique_id_function=lambda route: route.name,
        docs_url=None,  # its page would load scripts from another site
    )
    app.state.context = Context(hosts, settings, Guard(keys, settings.rate), Models(settings.device))
    app.state.metrics = Metrics(hosts, keys)
    app.state.ready = asyncio.Event()
    app.state.before_stop = hosts.stop
    app.state.routes = [*app.routes, *(route for router in ROUTERS for route in router.routes)]
    for router in ROUTERS:
        app.include_router(router)
    _describe(app, keys=keys is not None)
    app.add_middleware(OwnPages, names=settings.names, way=WAY)
    app.add_middleware(Measured, metrics=app.state.metrics)
    problems.register(app)
    if settings.allow_origin:
        app.add_middleware(
            CORSMiddleware, allow_origins=settings.allow_origin, allow_methods=("GET", "POST", "PUT", "DELETE"),
            allow_headers=("Authorization", "Content-Type"), expose_headers=("Retry-After",),
        )  # fmt: skip
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    hosts: Hosts = app.state.context.hosts
    warming = asyncio.create_task(_warm(app, hosts))
    yield
    warming.cancel()
    await hosts.close()


async def _warm(app: FastAPI, hosts: Hosts) -> None:
    """Load what each collection needs. Those for which this failed are tried again later: they may be restored."""
    all_warm = False
    while not all_warm:
        with suppress(BusyError):
            all_warm = await hosts.lanes.slow.run(hosts.warm)
            app.state.ready.set()
        await asyncio.sleep(0 if all_warm else AGAIN)


def _describe(app: FastAPI, *, keys: bool) -> None:
    """Have the application describe itself as OpenAPI 3.1.

    Args:
        app: The application, with all its routes.
        keys: Whether requests need a key.
    """
    usual = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            described = usual()
            for response in _refusals(described):
                response["content"][MEDIA_TYPE] = response["content"].pop("application/json")
            if keys:
                _require_keys(described)
        return usual()

    app.openapi = openapi


def _refusals(described: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield every response that is a problem document, which FastAPI describes as JSON of no special kind."""
    for path in described["paths"].values():
        for method in path.values():
            for response in method["responses"].values():
                if {MEDIA_TYPE, "application/json"} <= response.get("content", {}).keys():
                    yield response


def _require_keys(described: dict[str, Any]) -> None:
    """Say that every route needs `Authorization: Bearer KEY`, but for those that say whether the service works."""
    described["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
    described["security"] = [{"key": []}]
    for path in OPEN:
        for method in described["paths"].get(path, {}).values():
            method["security"] = []
