"""Errors as problem details (RFC 9457), without a stack trace and, if possible, with the invalid field."""

import logging
import reprlib
from collections.abc import Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, get_args

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ...indexer.errors import SondeError, UsageError, WriterBusyError, nearest
from .queues import BusyError

if TYPE_CHECKING:
    from fastapi import FastAPI

MEDIA_TYPE = "application/problem+json"
RETRY = {"Retry-After": "1"}
"""Header of an answer to which a client may try again: the seconds to wait."""
CODES = {
    400: "bad-request",
    401: "unauthorized",
    403: "forbidden",
    404: "not-found",
    405: "method-not-allowed",
    408: "request-timeout",
    409: WriterBusyError.code,
    413: "request-entity-too-large",
    415: "unsupported-media-type",
    422: UsageError.code,
    429: "too-many-requests",
    500: SondeError.code,
    503: "busy",
}
"""Default error codes by status; the names of HTTP's own differ between versions of Python."""
FAILED = "the service failed: see its log"
KINDS: Mapping[str, tuple[str | None, str]] = {
    "bool_type": ("give true or false", "wrong-type"),
    "dict_type": ("give an object", "wrong-type"),
    "extra_forbidden": (None, "unknown-option"),
    "finite_number": ("give a finite number", "out-of-range"),
    "float_type": ("give a number", "wrong-type"),
    "greater_than": ("give a number above {gt}", "out-of-range"),
    "greater_than_equal": ("give {ge} or more", "out-of-range"),
    "int_from_float": ("give a whole number", "wrong-type"),
    "int_parsing": ("give a whole number", "wrong-type"),
    "int_type": ("give a whole number", "wrong-type"),
    "less_than": ("give a number below {lt}", "out-of-range"),
    "less_than_equal": ("give {le} or less", "out-of-range"),
    "list_type": ("give a list", "wrong-type"),
    "literal_error": ("use {expected}", "unknown-option"),
    "missing": ("this field is required", "missing-option"),
    "model_attributes_type": ("give an object", "wrong-type"),
    "model_type": ("give an object", "wrong-type"),
    "no_value": (None, "wrong-type"),
    "string_too_long": ("give {max_length} characters or fewer", "out-of-range"),
    "string_too_short": ("the text is empty", "empty"),
    "string_type": ("give a text", "wrong-type"),
    "too_many": (None, "out-of-range"),
    "too_short": ("give at least {min_length}", "empty"),
}
"""What to do about a value that does not fit the body, without words of Python, and the code; by pydantic's kind."""
ON_DISK = {
    "no-collection": (503, "the collection is not available: its folder was moved or removed"),
    "disk-full": (507, "the disk of the service is full: nothing was written"),
    "unindexed": (507, "the documents are stored, but not their indexes: free some space, then run `sonde repair`"),
    "not-writable": (503, "the collection cannot be written to: its disk or folder is read-only"),
    "shards-missing": (503, "some shards do not answer: try again in a few seconds"),
    "damaged": (500, "the collection is damaged: `GET /collections` or `sonde verify` says what is wrong"),
}
"""Statuses and answers for errors of the service's own folders and processes, whose messages may name folders."""
IN_THE_QUERY = "put an id with a line break in the query: /documents?id=ID, percent-encoded"
log = logging.getLogger("sonde.http")


class ProblemError(Exception):
    """A request that cannot be answered: HTTP status, description, invalid field, and error code."""

    def __init__(
        self, status: int, detail: str, field: str | None = None, headers: dict[str, str] | None = None,
        code: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(detail)
        self.code = code
        self.status = status
        self.detail = detail
        self.field = field
        self.headers = headers

    @classmethod
    def of(cls, error: SondeError, status: int) -> "ProblemError":
        """Return a library error with an HTTP status; request fields have the same names as in Python."""
        return cls(status, str(error), error.field, code=error.code)


def problem(
    status: int, detail: str, errors: list[dict[str, str]] | None = None, headers: dict[str, str] | None = None,
    code: str | None = None,
) -> JSONResponse:  # fmt: skip
    """Return a problem document; `errors` lists the invalid fields, `code` names the error."""
    title = HTTPStatus(status).phrase
    code = code or CODES.get(status, SondeError.code)
    body: dict[str, Any] = {"type": "about:blank", "title": title, "status": status, "code": code}
    body |= {"detail": detail} | ({"errors": errors} if errors else {})
    return JSONResponse(body, status, headers, MEDIA_TYPE)


def busy(detail: str) -> JSONResponse:
    """Return 503 with a time after which to retry."""
    return problem(503, detail, headers=RETRY)


def register(app: "FastAPI") -> None:
    """Register handlers that return every failure as a problem document."""
    from fastapi.exceptions import RequestValidationError  # not needed by the web UI, which has no FastAPI

    app.add_exception_handler(ProblemError, _problem)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(SondeError, _failed)
    app.add_exception_handler(BusyError, _busy)
    app.add_exception_handler(TimeoutError, _late)
    app.add_middleware(Unbroken)
    app.add_middleware(Heads)


def _problem(_: Request, error: Any) -> JSONResponse:
    errors = [{"field": error.field, "problem": error.detail}] if error.field else None
    return problem(error.status, error.detail, errors, error.headers, error.code)


def _invalid(request: Request, error: Any) -> JSONResponse:
    errors = [_described(request, found) for found in error.errors()[:20]]
    first = errors[0]
    kind = error.errors()[0]["type"]
    whole = kind == "extra_forbidden"
    said = first["problem"] if whole else f"{first['field']}: {first['problem']}"
    return problem(422, said, errors, code=KINDS.get(kind, (None, UsageError.code))[1])


def _described(request: Request, found: Mapping[str, Any]) -> dict[str, str]:
    """Return the invalid field and a description of the problem."""
    place, kind = found["loc"], found["type"]
    wanted, _ = KINDS.get(kind, (None, None))
    said = wanted.format(**found.get("ctx", {})) if wanted else str(found["msg"])
    if kind == "extra_forbidden":
        near = nearest(place[-1], known := _fields_beside(request, place))
        hint = f": did you mean {near!r}?" if near else f": use {', '.join(known)}" if known else ""
        said = f"there is no option {str(place[-1])!r}{hint}"
    return {"field": _field(place), "problem": said}


def _fields_beside(request: Request, place: tuple[Any, ...]) -> list[str]:
    """Return the valid fields of the part of the body that contains an unknown field, given that field's location."""
    body = getattr(request.scope.get("route"), "body_field", None)
    kind: Any = getattr(getattr(body, "field_info", None), "annotation", None)
    for part in place[1:-1]:
        if isinstance(part, str):
            found = getattr(kind, "model_fields", {}).get(part)
            kind = found.annotation if found else None
        else:
            kind = next(iter(get_args(kind)), None)
    return list(getattr(kind, "model_fields", {}))


def _field(place: tuple[Any, ...]) -> str:
    """Return the location of a value, without the part of the request that contains it."""
    parts = place[1:] if len(place) > 1 and place[0] in ("body", "query", "path", "header") else place
    return ".".join(str(part) for part in parts)


def _refused(request: Request, error: Any) -> JSONResponse:
    said, headers = str(error.detail), dict(error.headers or {})
    path = request.scope["path"]
    if error.status_code == HTTPStatus.NOT_FOUND:
        said = f"there is no route {reprlib.repr(path)}; {_instead(request, path)}"
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        allowed = ", ".join(_methods(request, path))
        headers["Allow"] = allowed
        said = f"{reprlib.repr(path)} does not support {request.method}: use {allowed}"
    return problem(error.status_code, said, headers=headers)


def _instead(request: Request, path: str) -> str:
    """Return what to do about a path that has no route."""
    if path.startswith("/documents/"):
        return IN_THE_QUERY
    bare = path.rstrip("/")
    if bare != path and _methods(request, bare):
        return f"did you mean {bare!r}?"
    return "/openapi.json lists all routes"


def _methods(request: Request, path: str) -> list[str]:
    """Return the methods of all routes of a path; Starlette's error has those of the first one."""
    scope = {**request.scope, "path": path}
    routes = [route for route in request.app.state.routes if route.matches(scope)[0] != Match.NONE]
    found = {method for route in routes for method in getattr(route, "methods", None) or ()}
    return sorted(found | ({"HEAD"} if "GET" in found else set()))  # see `Heads`


def _failed(_: Request, error: Any) -> JSONResponse:
    if isinstance(error, UsageError):
        return _problem(_, ProblemError.of(error, 422))
    if isinstance(error, WriterBusyError):
        detail = "another process is writing to the collection: try again"
        return problem(409, detail, headers=RETRY)
    log.error("%s", error)  # not sent to the client: the message may name local folders
    status, detail = ON_DISK.get(error.code, (500, FAILED))
    headers = RETRY if error.code == "shards-missing" else None
    return problem(status, detail, headers=headers, code=error.code)


def _busy(_: Request, __: Any) -> JSONResponse:
    return busy("too many requests are waiting: try again")


def _late(_: Request, __: Any) -> JSONResponse:
    return busy("the answer took too long: try again, or ask for less")


class Heads:
    """Middleware that answers HEAD wherever GET is allowed: with the same headers, and no body."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on as GET, and send its answer without the body."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self.app(scope, receive, send)
            return

        async def bare(message: Message) -> None:
            await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

        await self.app({**scope, "method": "GET"}, receive, bare)


class Unbroken:
    """Middleware that answers an unexpected error with 500.

    Starlette's own handler also answers, but then raises the error again, so the server closes the connection. The
    client's next request on that connection would fail.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; if an error occurs, log it and answer with 500 if nothing was sent yet."""
        begun = False

        async def watch(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self.app(scope, receive, watch)
        except Exception as error:
            if begun or scope["type"] != "http":
                raise
            log.error("%s %s failed", scope["method"], scope["path"], exc_info=error)
            answer: ASGIApp = problem(500, FAILED)
            await answer(scope, receive, send)
