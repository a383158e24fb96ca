"""Errors as problem details (RFC 9457): never a stack trace, and the field that is wrong where there is one."""

import logging
from collections.abc import Mapping
from difflib import get_close_matches
from http import HTTPStatus
from typing import Any, get_args

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ...indexer.errors import SondeError, UsageError, WriterBusyError
from .batcher import BusyError

MEDIA_TYPE = "application/problem+json"
RETRY_SECONDS = 1
CODES = {422: UsageError.code, 409: WriterBusyError.code, 500: SondeError.code, 503: "busy"}
"""Names of mistakes that have none of their own, by status; other statuses are named as HTTP names them."""
FAILED = "the service failed; its log says why"
log = logging.getLogger("sonde.http")


class ProblemError(Exception):
    """A request that cannot be answered: HTTP status, what is wrong, the field that is, and the mistake's name."""

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
        """Return an error of the library under a status; fields of the request have the names that Python has."""
        return cls(status, str(error), error.field, code=error.code)


def problem(
    status: int, detail: str, errors: list[dict[str, str]] | None = None, headers: dict[str, str] | None = None,
    code: str | None = None,
) -> JSONResponse:  # fmt: skip
    """Return a problem document; `errors` name the fields that are wrong, `code` the mistake."""
    title = HTTPStatus(status).phrase
    code = code or CODES.get(status) or title.lower().replace(" ", "-")
    body: dict[str, Any] = {"type": "about:blank", "title": title, "status": status, "code": code}
    body |= {"detail": detail} | ({"errors": errors} if errors else {})
    return JSONResponse(body, status, headers, MEDIA_TYPE)


def busy(detail: str) -> JSONResponse:
    """Return 503, to be tried again."""
    return problem(503, detail, headers={"Retry-After": str(RETRY_SECONDS)})


def register(app: FastAPI) -> None:
    """Let every failure come out as a problem document."""
    app.add_exception_handler(ProblemError, _problem)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(SondeError, _failed)
    app.add_exception_handler(BusyError, _busy)
    app.add_exception_handler(TimeoutError, _late)
    app.add_middleware(Unbroken)


def _problem(_: Request, error: Any) -> JSONResponse:
    errors = [{"field": error.field, "problem": error.detail}] if error.field else None
    return problem(error.status, error.detail, errors, error.headers, error.code)


def _invalid(request: Request, error: Any) -> JSONResponse:
    errors = [_described(request, found) for found in error.errors()[:20]]
    first = errors[0]
    whole = error.errors()[0]["type"] in ("extra_forbidden", "json_invalid")
    return problem(422, first["problem"] if whole else f"{first['field']}: {first['problem']}", errors)


def _described(request: Request, found: Mapping[str, Any]) -> dict[str, str]:
    """Return the field that is wrong and what is wrong with it."""
    place, kind = found["loc"], found["type"]
    if kind == "json_invalid":
        why = found.get("ctx", {}).get("error", "")
        return {"field": "body", "problem": f"the body is not valid JSON: {why} at character {int(place[-1]) + 1}"}
    said = str(found["msg"])
    if kind == "extra_forbidden":
        close = get_close_matches(str(place[-1]), known := _fields_beside(request, place), 1)
        hint = f": did you mean {close[0]!r}?" if close else f": use {', '.join(known)}" if known else ""
        said = f"there is no option {str(place[-1])!r}{hint}"
    return {"field": _field(place), "problem": said}


def _fields_beside(request: Request, place: tuple[Any, ...]) -> list[str]:
    """Return the fields that a part of the body can have, by the place of one that it cannot have."""
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
    """Return where a value stands, without the part of the request that it came in."""
    parts = place[1:] if len(place) > 1 and place[0] in ("body", "query", "path", "header") else place
    return ".".join(str(part) for part in parts)


def _refused(_: Request, error: Any) -> JSONResponse:
    return problem(error.status_code, str(error.detail), headers=error.headers)


def _failed(_: Request, error: Any) -> JSONResponse:
    if isinstance(error, UsageError):
        return _problem(_, ProblemError.of(error, 422))
    if isinstance(error, WriterBusyError):
        detail = "another process is writing the collection: try again"
        return problem(409, detail, headers={"Retry-After": str(RETRY_SECONDS)})
    log.error("%s", error)  # its message may name folders, which are nobody's business outside
    return problem(500, FAILED)


def _busy(_: Request, __: Any) -> JSONResponse:
    return busy("too many requests are waiting: try again")


def _late(_: Request, __: Any) -> JSONResponse:
    return busy("the answer took too long: try again, or ask for less")


class Unbroken:
    """Middleware that answers an unexpected error with 500.

    Starlette's own handler answers too, but then raises the error again, for which the server closes the connection:
    the client's next request on it would fail.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand the request on; log an error, and answer it if nothing was sent yet."""
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
