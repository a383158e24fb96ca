"""The MCP server over streamable HTTP, behind the checks of `sonde serve`: host names, web pages, keys and rates."""

import asyncio
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from ..http.guard import Guard, KeyFile, Rights
from ..http.origin import OwnPages
from ..http.problems import ProblemError, problem
from ..http.settings import ServeSettings

if TYPE_CHECKING:
    from mcp.server import MCPServer
    from starlette.applications import Starlette

PATH = "/mcp"


def http_app(server: "MCPServer[Any]", settings: ServeSettings, rights: Rights = "read") -> "Starlette":
    """Return the application that answers at `PATH`; each request is independent, so any process may answer it.

    `rights` are those that a key needs.

    Raises:
        SondeError: The key file cannot be read.
    """
    from mcp.server.transport_security import TransportSecuritySettings

    own_checks = TransportSecuritySettings(enable_dns_rebinding_protection=False)  # `OwnPages` makes them
    app = server.streamable_http_app(
        streamable_http_path=PATH, json_response=True, stateless_http=True, transport_security=own_checks,
        max_request_body_size=settings.max_body,
    )  # fmt: skip
    guard = Guard(KeyFile(settings.keys) if settings.keys else None, settings.rate)
    app.add_middleware(Admitted, guard=guard, rights=rights)
    app.add_middleware(OwnPages, names=settings.names)
    app.state.ready = asyncio.Event()
    app.state.ready.set()
    return app


class Admitted:
    """Middleware that asks for a key, if there are keys, and limits the rate."""

    def __init__(self, app: ASGIApp, guard: Guard, rights: Rights) -> None:
        self.app = app
        self.guard = guard
        self.rights: Rights = rights

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer 401 or 429."""
        if scope["type"] == "http":
            try:
                self.guard.admit(Request(scope), self.rights)
            except ProblemError as error:
                await problem(error.status, error.detail, headers=error.headers)(scope, receive, send)
                return
        await self.app(scope, receive, send)
