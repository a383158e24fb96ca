"""Which names a service answers for, and which web pages may use it: checks of Host, Origin and Sec-Fetch-Site.

Without them, any web page could use a service on the reader's own machine: under a name of its own that leads there
(DNS rebinding), or with a simple cross-origin request.
"""

import ipaddress
import json
import re
import reprlib
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from ...indexer.errors import UsageError, arg
from .problems import MEDIA_TYPE

_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9_](?:[a-z0-9._-]*[a-z0-9_])?)\.?(?::\d{1,5})?", re.ASCII)
_ORIGIN = re.compile(r"https?://(\[[0-9a-f:.]+\]|[a-z0-9_](?:[a-z0-9._-]*[a-z0-9_])?)(?::\d{1,5})?", re.ASCII)
_EVERYWHERE = ("0.0.0.0", "::")
_READS = ("GET", "HEAD", "OPTIONS")


@dataclass(frozen=True, slots=True)
class Names:
    """The names and addresses under which a service answers.

    Attributes:
        bound: The address on which the service listens. If it is an address for all networks, any IP address is a name
            of the service: a page can never make a browser send one of these that is not its own.
        allowed: Further names, such as that of a reverse proxy; pages under them are pages of the service.
        origins: Origins of other pages that may use it, such as http://localhost:3000.

    Raises:
        UsageError: A name is not valid.
    """

    bound: str = "127.0.0.1"
    allowed: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in self.allowed:
            if host_name(name) is None or host_name(name) != _bare(name):
                said = f"{arg('allow_host')} is {name!r}: give a bare name such as search.example.org"
                raise UsageError(said, code="invalid", field="allow_host", value=name)
        for origin in self.origins:
            if not _ORIGIN.fullmatch(origin):
                said = (
                    f"{arg('allow_origin')} is {origin!r}: give an origin such as http://localhost:3000, without a path"
                )
                raise UsageError(said, code="invalid", field="allow_origin", value=origin)

    def answers_for(self, host: str | None) -> bool:
        """Return whether a Host header names this service; the port does not matter."""
        name = host_name(host or "")
        if name is None:
            return False
        if name == "localhost" or name.endswith(".localhost") or name == _bare(self.bound) or self.trusts(name):
            return True
        address = _address(name)
        return address is not None and (address.is_loopback or self.bound in _EVERYWHERE)

    def trusts(self, name: str | None) -> bool:
        """Return whether a name was given as one of the service."""
        return name in [_bare(each) for each in self.allowed]


def host_name(host: str) -> str | None:
    """Return the name in a Host header in lower case, without port, brackets and final dot; None if it is not valid."""
    found = _HOST.fullmatch(host.lower())
    return _bare(found[1]) if found else None


def _bare(name: str) -> str:
    return name.lower().removeprefix("[").removesuffix("]").removesuffix(".")


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


class OwnPages:
    """Middleware that answers only under the service's own names, and only its own pages or programs.

    A browser says with `Origin` and `Sec-Fetch-Site` which page a request comes from; programs send neither. A link
    from another page may be followed.
    """

    def __init__(self, app: ASGIApp, names: Names, way: str = "add --allow-host NAME") -> None:
        self.app = app
        self.names = names
        self.way = way

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer 421 (another host) or 403 (another page)."""
        refusal = self._refusal(scope, Headers(scope=scope)) if scope["type"] in ("http", "websocket") else None
        if refusal is None:
            await self.app(_without_origin(scope) if scope["type"] == "websocket" else scope, receive, send)
        elif scope["type"] == "http":
            await refusal(scope, receive, send)
        else:  # the server makes this a 403, and no page can read the body of such an answer
            await send({"type": "websocket.close", "code": 1008})

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self.names.answers_for(hosts[0]):
            return _other_host(", ".join(hosts))
        origin = headers.get("origin")
        if origin is not None:
            return None if self._own(origin, hosts[0]) else _other_page(origin, self.way)
        site, mode = headers.get("sec-fetch-site", "none"), headers.get("sec-fetch-mode")
        follows_link = mode == "navigate" and scope.get("method", "GET") in _READS
        return None if site in ("none", "same-origin") or follows_link else _other_page("another site", self.way)

    def _own(self, origin: str, host: str) -> bool:
        try:
            parts = urlsplit(origin)
            same = parts.netloc.lower() == host.lower() or origin in self.names.origins
            return same or self.names.trusts(parts.hostname)
        except ValueError:
            return False


def _without_origin(scope: Scope) -> Scope:
    """Return the request without the header that was checked.

    Streamlit compares the page of a reverse proxy with its own address, which it would ask other servers for.
    """
    return {**scope, "headers": [(name, value) for name, value in scope["headers"] if name != b"origin"]}


def _other_host(host: str) -> Response:
    named = host_name(host) or "NAME"
    said = f"this service does not answer for {reprlib.repr(host)}: if it is yours, add --allow-host {named}"
    return _refused(421, "Misdirected Request", "wrong-host", said)


def _other_page(page: str, way: str) -> Response:
    said = f"a web page of {reprlib.repr(page)} may not use this service: if it is yours, {way}"
    return _refused(403, "Forbidden", "wrong-origin", said)


def _refused(status: int, title: str, code: str, detail: str) -> Response:
    """Return problem details as `problems` does, without FastAPI, which the web UI does not need."""
    body = {"type": "about:blank", "title": title, "status": status, "code": code, "detail": detail}
    return Response(json.dumps(body), status, media_type=MEDIA_TYPE)
