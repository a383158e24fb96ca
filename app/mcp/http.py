"""The MCP server over streamable HTTP, behind the checks of `sonde serve`: host names, web pages, keys and rates."""

import asyncio
import json
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..http.guard import Guard, KeyFile, Rights
from ..http.origin import OwnPages
from ..http.problems import ProblemError, problem
from ..http.settings import ServeSettings

if TYPE_CHECKING:
    from mcp.server import MCPServer
    from starlette.applications import Starlette

PATH = "/mcp"
HEALTH = "/health"


def http_app(server: "MCPServer[Any]", settings: ServeSettings, rights: Rights = "read") -> "Starlette":
    """Return the application that answers at `PATH`, and at `HEALTH` without a key.

    Each request is independent, so any process may answer it.

    `rights` are those that a key needs.

    Raises:
        SondeError: The key file cannot be read.
    """
    from mcp.server.transport_security import TransportSecuritySettings

    from .checked import NO_REQUEST

    own_checks = TransportSecuritySettings(enable_dns_rebinding_protection=False)  # `OwnPages` makes them
    app = server.streamable_http_app(
        streamable_http_path=PATH, json_response=True, stateless_http=True, transport_security=own_checks,
        max_request_body_size=settings.max_body,
    )  # fmt: skip
    guard = Guard(KeyFile(settings.keys) if settings.keys else None, settings.rate)
    app.router.routes.append(Route(HEALTH, _health))
    app.add_middleware(OneLine, message=NO_REQUEST)
    app.add_middleware(Admitted, guard=guard, rights=rights)
    app.add_middleware(OwnPages, names=settings.names)
    app.state.ready = asyncio.Event()
    app.state.ready.set()
    return app


async def _health(_: Request) -> JSONResponse:
    return JSONResponse({"status": "alive"})


class OneLine:
    """Middleware that puts one line in place of pydantic's message about a request that is not valid."""

    def __init__(self, app: ASGIApp, message: str) -> None:
        self.app = app
        self.message = message

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and replace the body of a 400, which the SDK sends at once."""
        start: Message | None = None

        async def replace(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start" and message["status"] == HTTPStatus.BAD_REQUEST:
                start = message
                return
            if start is not None:
                body = self._replaced(message.get("body", b""))
                others = [(name, value) for name, value in start["headers"] if name.lower() != b"content-length"]
                await send({**start, "headers": [*others, (b"content-length", str(len(body)).encode())]})
                start, message = None, {**message, "body": body}
            await send(message)

        await self.app(scope, receive, replace)

    def _replaced(self, body: bytes) -> bytes:
        try:
            answer = json.loads(body)
            if "\n" in answer["error"]["message"]:
                answer["error"]["message"] = self.message
        except (ValueError, TypeError, KeyError):
            return body
        return json.dumps(answer).encode()


class Admitted:
    """Middleware that asks for a key, if there are keys, and limits the rate; `HEALTH` is open to all."""

    def __init__(self, app: ASGIApp, guard: Guard, rights: Rights) -> None:
        self.app = app
        self.guard = guard
        self.rights: Rights = rights

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer 401 or 429."""
        if scope["type"] == "http" and scope["path"] != HEALTH:
            try:
                self.guard.admit(Request(scope), self.rights)
            except ProblemError as error:
                await problem(error.status, error.detail, headers=error.headers)(scope, receive, send)
                return
        await self.app(scope, receive, send)
