"""Answers as JSON, encoded in the thread that has the result."""

import json
from collections.abc import Callable
from typing import Any

from starlette.responses import Response

from ...indexer.progress import check_wanted

DEEP = 4
"""Levels whose parts are encoded one by one. The encoder holds Python's lock until it is done: a result of 1,000 long
texts in one go would keep the event loop from answering anyone."""
_encoder = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


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


def json_answer(body: bytes) -> Response:
    """Return an answer whose body is JSON."""
    return Response(body, media_type="application/json")


def answering(function: Callable[..., Any]) -> Callable[..., Response]:
    """Return the function with its result as an answer, encoded in the thread that calls it."""

    def call(*args: Any, **options: Any) -> Response:
        return json_answer(json_bytes(function(*args, **options)))

    return call
