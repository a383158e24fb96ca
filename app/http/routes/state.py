"""How the service is: alive, ready, its collections, its metrics."""

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response

from ..context import PROBLEMS, Reader
from ..metrics import CONTENT_TYPE
from ..problems import busy

router = APIRouter(tags=["state"])


@router.get("/health", summary="Is the process alive?")
async def health() -> dict[str, str]:
    """Answer as long as the event loop runs; needs no key."""
    return {"status": "alive"}


@router.get("/ready", summary="Can it answer searches?", responses={503: PROBLEMS[503]})
async def ready(request: Request) -> Response:
    """Answer 200 once models and indexes are loaded, 503 before; needs no key."""
    if not request.app.state.ready.is_set():
        return busy("models and indexes are being loaded")
    return JSONResponse({"status": "ready"})


@router.get(
    "/metrics", summary="Metrics in Prometheus' text format", responses=PROBLEMS, response_class=PlainTextResponse
)
async def metrics(request: Request, context: Reader) -> Response:
    """Requests by route and status, their seconds, what waits, and how many documents there are."""
    return Response(await context.in_thread(request.app.state.metrics.text), media_type=CONTENT_TYPE)


@router.get("/collections", summary="The collections and what they hold", responses=PROBLEMS)
async def collections(context: Reader) -> list[dict[str, Any]]:
    """Return for every collection what `sonde info --json` prints, under the name that requests use."""
    found = []
    for name, host in context.hosts.hosted.items():
        info = (await context.in_thread(host.collection.info)).to_dict()
        found.append({"name": name} | {key: value for key, value in info.items() if key != "path"})
    return found
