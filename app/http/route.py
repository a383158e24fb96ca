"""Routes that check a request before its body is read, stop when nobody waits, and encode answers where the result is.

The checks are: key, address, kind of body, size, patience. Answers are encoded in the thread that has the result.
"""

import asyncio
import gzip
import json
import re
import reprlib
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any
from urllib.parse import unquote_to_bytes

from fastapi import Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.requests import ClientDisconnect

from ...indexer.errors import nearest
from ...indexer.progress import check_wanted
from .context import Context, reader, writer
from .guard import Rights
from .problems import ProblemError
from .settings import ServeSettings

NOBODY = 499
"""Status in the metrics for a client that left before its answer; nobody receives it."""
PACKED, LEVEL, QUICK = 1_000, 1, 20_000
"""Bytes from which on an answer is compressed, how hard, and up to how many it is done at once: 20 kB take 0.2 ms."""
_GZIP = re.compile(r"\bgzip\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))", re.IGNORECASE)
LARGE = 50_000
"""Bytes of a body from which on a thread reads it as JSON."""
MOST_SIGNS = 250_000
BRACKETS_COUNT = 5
"""Commas and brackets in a body, of which a bracket counts as five: reading that many takes up to 20 ms, during which
Python answers nobody. 4 MB of texts have far fewer, and take 4 ms."""

DEEP = 4
"""Levels whose parts are encoded one by one. The encoder holds Python's lock until it is done: a result of 1,000 long
texts in one go would keep the event loop from answering anyone."""
_encoder = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


class CheckedRoute(APIRoute):
    """Admits a request before its body is read, reads the body within limits, and cancels the work of a lost client."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler with these checks before it."""
        handler, rights = super().get_route_handler(), rights_of(self.dependant)
        known = _query_names(self.dependant)
        wants_body = self.body_field is not None

        async def checked(request: Request) -> Response:
            context: Context = request.app.state.context
            if rights:
                context.guard.admit(request, rights)
                _check_address(request)
                _check_query(request, known)
            if wants_body:
                _check_kind(request)
            try:
                received = Request(request.scope, request.receive)
                received._body = await _read(request, context.settings)
                if wants_body:
                    received._json = await _parsed(context, received._body)
                return await _packed(await _until_gone(handler(received), request), request)
            except ClientDisconnect:
                return Response(status_code=NOBODY)

        return checked


def rights_of(dependant: Dependant) -> Rights | None:
    """Return the rights that a route needs, None if it needs no key."""
    calls = [each.call for each in dependant.dependencies]
    return "write" if writer in calls else "read" if reader in calls else None


def _query_names(dependant: Dependant) -> list[str]:
    """Return the names that the query string of a route may have."""
    inner = [name for each in dependant.dependencies for name in _query_names(each)]
    return [field.alias for field in dependant.query_params] + inner


def _check_address(request: Request) -> None:
    """Refuse an address whose bytes are not UTF-8: they would be replaced, and another document would be meant."""
    given = request.scope.get("raw_path", b"") + b"?" + request.scope["query_string"]
    try:
        unquote_to_bytes(given).decode()
    except UnicodeDecodeError:
        raise ProblemError(400, "the address is not valid UTF-8: percent-encode its UTF-8 bytes") from None


def _check_query(request: Request, known: Sequence[str]) -> None:
    """Refuse a query string with an unknown name, which would be ignored, or with one twice, of which one would be.

    Raises:
        ProblemError: It has one (422).
    """
    names = [name for name, _ in request.query_params.multi_items()]
    for name in names:
        if name not in known:
            near = nearest(name, known)
            use = f"did you mean {near!r}?" if near else f"use {', '.join(known)}" if known else "this route takes none"
            said = f"there is no option {reprlib.repr(name)} in the query string: {use}"
            raise ProblemError(422, said, name, code="unknown-option")
        if names.count(name) > 1:
            raise ProblemError(
                422, f"{name} is in the query string more than once: give it once", name, code="repeated"
            )


async def _packed(answer: Response, request: Request) -> Response:
    """Compress an answer with gzip if its client takes that and it is large enough, outside the event loop."""
    if len(answer.body) < PACKED:
        return answer
    answer.headers.add_vary_header("Accept-Encoding")
    if _GZIP.search(request.headers.get("accept-encoding", "")) is None:
        return answer
    body = bytes(answer.body)
    small = (
        await asyncio.to_thread(gzip.compress, body, LEVEL, mtime=0)
        if len(body) > QUICK
        else gzip.compress(body, LEVEL, mtime=0)
    )
    answer.body = small
    answer.headers["content-encoding"] = "gzip"
    answer.headers["content-length"] = str(len(small))
    return answer


def _check_kind(request: Request) -> None:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise ProblemError(415, "send the body as JSON with the header Content-Type: application/json")


async def _read(request: Request, settings: ServeSettings) -> bytes:
    """Return the body.

    Raises:
        ProblemError: It is too large or has too many values (413), or comes too slowly (408).
        ClientDisconnect: The client left.
    """
    stated, size, signs, parts = request.headers.get("content-length", ""), 0, 0, list[bytes]()
    if stated.isdecimal() and (len(stated) > 18 or int(stated) > settings.max_body):
        raise _too_large(settings)
    try:
        async with asyncio.timeout(settings.receive):
            async for part in request.stream():
                size += len(part)
                signs += part.count(b",") + BRACKETS_COUNT * (part.count(b"[") + part.count(b"{"))
                if size > settings.max_body:
                    raise _too_large(settings)
                if signs > MOST_SIGNS:  # known before the rest has come
                    raise ProblemError(413, "the body has too many commas and brackets: send fewer values at once")
                parts.append(part)
    except TimeoutError:
        said = f"the body did not arrive within {settings.receive:g} s: send it faster, or in parts"
        raise ProblemError(408, said, headers={"Connection": "close"}) from None
    return b"".join(parts)


def _too_large(settings: ServeSettings) -> ProblemError:
    return ProblemError(413, f"the body has more than {settings.max_body:,} bytes")


async def _parsed(context: Context, body: bytes) -> Any:
    """Return the body's JSON.

    Raises:
        ProblemError: It is not valid JSON (400).
    """
    try:
        return json.loads(body) if len(body) < LARGE else await context.lanes.slow.run(lambda: json.loads(body))
    except json.JSONDecodeError as error:
        said = f"the body is not valid JSON: {error.msg} at character {error.pos + 1}"
    except UnicodeDecodeError:
        said = "the body is not valid JSON: write it in UTF-8"
    except RecursionError:
        said = "the body is not valid JSON: it is nested too deeply"
    except ValueError:
        said = "the body is not valid JSON: a number in it has too many digits"
    raise ProblemError(400, said, "body")


async def _until_gone(work: Awaitable[Response], request: Request) -> Response:
    """Return the answer, or cancel the work when the client leaves.

    Raises:
        ClientDisconnect: The client left.
    """
    task, left = asyncio.ensure_future(work), asyncio.ensure_future(request.receive())
    try:
        await asyncio.wait({task, left}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise ClientDisconnect
    finally:
        left.cancel()
        task.cancel()


def answering(function: Callable[..., Any]) -> Callable[..., Response]:
    """Return the function with its result as an answer, encoded in the thread that calls it."""

    def call(*args: Any, **options: Any) -> Response:
        return json_answer(json_bytes(function(*args, **options)))

    return call


def json_answer(body: bytes) -> Response:
    """Return an answer whose body is JSON."""
    return Response(body, media_type="application/json")


def json_bytes(content: Any) -> bytes:
    """Return JSON values as UTF-8.

    Raises:
        ValueError: A number is infinite or NaN.
    """
    return b"".join(_pieces(content, DEEP))


def _pieces(content: Any, deep: int) -> list[bytes]:
    if deep and isinstance(content, list) and content:
        parts = [b"".join((b",", *_pieces(part, deep - 1))) for part in content]
        return [b"[", parts[0][1:], *parts[1:], b"]"]
    if deep and isinstance(content, dict) and content and all(isinstance(name, str) for name in content):
        named = [b"".join((b",", _one(name), b":", *_pieces(part, deep - 1))) for name, part in content.items()]
        return [b"{", named[0][1:], *named[1:], b"}"]
    return [_one(content)]


def _one(content: Any) -> bytes:
    check_wanted()
    return _encoder.encode(content).encode()
