"""The application: routes, guard, limits, metrics and state of open collections, and its description as OpenAPI."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from importlib import metadata
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import PlainTextResponse, Response
from starlette.middleware.cors import CORSMiddleware

from ..api.served import UNREADABLE
from . import problems
from .context import CONTENT_TYPE, PROBLEMS, Context, Measured, Metrics, Models, Reader
from .guard import Guard, KeyFile
from .hosted import Hosted, Hosts
from .origin import OwnPages
from .problems import MEDIA_TYPE, RETRY, busy, problem
from .queues import BusyError
from .responses import Alive, CollectionOut, JobOut, Ready
from .route import CheckedRoute, answering, json_answer, json_bytes
from .routes import documents, methods, search
from .settings import ServeSettings

state_router = APIRouter(tags=["state"], route_class=CheckedRoute)
ROUTERS = (
    *(search.router, search.judge_router, documents.router, documents.runs_router, methods.router, state_router),
)

OPEN = ("/health", "/ready")
"""Routes that need no key."""
OPEN_PROBLEMS: dict[int | str, dict[str, Any]] = {status: PROBLEMS[status] for status in (403, 408, 413, 421)}
"""What they may answer, besides their own."""

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


@state_router.get("/health", response_model=Alive, summary="Is the process alive?", responses=OPEN_PROBLEMS)
async def health() -> dict[str, str]:
    """Answer while the event loop is running; no key is required."""
    return {"status": "alive"}


@state_router.get(
    "/ready",
    response_model=Ready,
    summary="Is the service ready to answer searches?",
    responses=OPEN_PROBLEMS | {503: PROBLEMS[503]},
)
async def ready(request: Request) -> Response:
    """Answer 200 once models and indexes are loaded, 503 before; no key is required.

    `unavailable` lists the collections that cannot be used now, or could not be used by the last search, each with the
    code of the error, such as `damaged`. If none can be used, the answer is 503.
    """
    if not request.app.state.ready.is_set():
        return busy("models and indexes are being loaded")
    found: Context = request.app.state.context
    hosts = found.hosts
    with suppress(BusyError, TimeoutError):
        await found.quick(hosts.look)
    if len(hosts.problems) < len(hosts.hosted):
        return json_answer(json_bytes({"status": "ready", "unavailable": hosts.problems}))
    named = ", ".join(f"{name} ({code})" for name, code in hosts.problems.items())
    return problem(503, f"no collection can be used: {named}", headers=RETRY, code=next(iter(hosts.problems.values())))


@state_router.get(
    "/metrics", summary="Metrics in Prometheus' text format", responses=PROBLEMS, response_class=PlainTextResponse
)
async def metrics(request: Request, context: Reader) -> Response:
    """Return requests by route and status, their duration in seconds, the queue length, and the document counts.

    `sonde_collection_damaged` is 1 for a collection that cannot be used, which then has no document count.
    """
    return Response(await context.quick(request.app.state.metrics.text), media_type=CONTENT_TYPE)


@state_router.get("/jobs", response_model=list[JobOut], summary="The writes that wait or run", responses=PROBLEMS)
async def jobs(context: Reader) -> Response:
    """Return every write that has no answer yet: its method, how long it has taken, and how far it is."""
    return json_answer(json_bytes([job.to_dict() for job in context.hosts.jobs]))


@state_router.get(
    "/collections", response_model=list[CollectionOut], summary="The collections and what they hold",
    responses=PROBLEMS,
)  # fmt: skip
async def collections(context: Reader) -> Response:
    """Return the output of `sonde info --json` for every collection, under the name that requests use.

    A damaged collection has only its `name` and an `error`, which says why it cannot be read.
    """
    return await context.slow(answering(_collections), context.hosts.hosted)


def _collections(hosted: dict[str, Hosted]) -> list[dict[str, Any]]:
    return [{"name": name} | _about(host) for name, host in hosted.items()]


def _about(host: Hosted) -> dict[str, Any]:
    try:
        with host.looked_at():
            info = host.collection.info().to_dict()
    except UNREADABLE as error:
        return {"error": host.opening.without_folder(error)}
    return {key: value for key, value in info.items() if key != "path"}
