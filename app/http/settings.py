"""Settings of the HTTP service."""

import errno
import ipaddress
import os
import socket
from dataclasses import dataclass
from pathlib import Path

from ...indexer.errors import SondeError, UsageError, arg, is_finite, out_of_range
from .origin import Names

_WANTED = {
    "timeout": "a number of seconds above 0",
    "receive": "a number of seconds above 0",
    "rate": "a number of requests per second above 0",
}

LIMITS = (
    *("max_body", "max_text", "max_filter", "max_texts", "max_k", "queue", "batch", "timeout", "rate"),
    *("connections", "receive"),
)


@dataclass(frozen=True, slots=True)
class ServeSettings:
    """The address of the service and its limits.

    Attributes:
        host: Address to listen on; any address other than loopback requires `keys`.
        port: Port, 0 for a free one.
        keys: File of API keys, as written by `sonde serve key`; None: no key is required.
        device: Where models run: "auto", "cpu", "cuda" …
        max_body: Maximum bytes of a request's body.
        max_text: Maximum characters of one text.
        max_filter: Maximum characters of a filter; a longer one would keep Python busy for too long at once.
        max_texts: Maximum texts, documents or labels in one request.
        max_k: Maximum hits of one search, including `offset`.
        queue: Maximum number of waiting requests; further requests are answered with 503.
        batch: Maximum number of queries that are answered together.
        timeout: Seconds after which a request fails with 503.
        rate: Requests per second for each key, or for each address if no key is required; None: no limit.
        allow_host: Further names under which the service answers; see `Names`.
        allow_origin: Origins of web pages elsewhere that may use the service; requires `keys`.
        connections: Maximum number of open connections; beyond it, those that have waited longest are closed.
        receive: Seconds within which the headers of a request must arrive, and then its body.

    Raises:
        UsageError: A limit is not a number above 0, or the port is not valid.
    """

    host: str = "127.0.0.1"
    port: int = 8080
    keys: Path | None = None
    device: str = "auto"
    max_body: int = 4_000_000
    max_text: int = 100_000
    max_filter: int = 10_000
    max_texts: int = 1_000
    max_k: int = 1_000
    queue: int = 256
    batch: int = 64
    timeout: float = 30.0
    rate: float | None = None
    allow_host: tuple[str, ...] = ()
    allow_origin: tuple[str, ...] = ()
    connections: int = 500
    receive: float = 20.0

    def __post_init__(self) -> None:
        for name in LIMITS:
            value = getattr(self, name)
            valid = is_finite(value) if name in _WANTED else _is_whole(value)
            if not (valid and value > 0) and (name, value) != ("rate", None):
                raise out_of_range(name, value, f"give {_WANTED.get(name, 'a whole number from 1')}")
        if not (_is_whole(self.port) and 0 <= self.port <= 65_535):
            raise out_of_range("port", self.port, "give one from 1 to 65535, or 0 for a free one")
        _ = self.names

    @property
    def names(self) -> Names:
        """The names under which the service answers."""
        return Names(self.host, self.allow_host, self.allow_origin)

    def check_exposure(self) -> None:
        """Check that a service reachable from other machines or from other web pages has keys.

        Raises:
            UsageError: `host` is not a loopback address or other pages are allowed, and there are no keys.
        """
        if self.keys is None and self.allow_origin:
            raise UsageError(
                "--allow-origin lets web pages use the service, so it needs --keys FILE: "
                "`sonde serve key FILE --name NAME` creates one"
            )
        if self.keys is None and not is_loopback(self.host):
            raise UsageError(
                f"listening on {self.host} lets other machines in, so it needs --keys FILE: "
                "`sonde serve key FILE --name NAME` creates one"
            )


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def listening(host: str, port: int) -> socket.socket:
    """Return a listening socket, so that the address is known and reserved before it is announced.

    Raises:
        UsageError: The host is not an address of this machine.
        SondeError: The port is in use, or this user may not listen on it.
    """
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        made = socket.socket(family, kind)
    except (OSError, UnicodeError):
        raise _no_address(host) from None
    try:
        if os.name == "posix":  # on Windows it would share the port with another process
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen()
    except OSError as error:
        made.close()
        raise _unbound(host, port, error) from None
    return made


def _unbound(host: str, port: int, error: OSError) -> SondeError:
    if error.errno == errno.EADDRNOTAVAIL:
        return _no_address(host)
    why = {errno.EADDRINUSE: "is in use", errno.EACCES: "is not allowed to this user"}
    said = why.get(error.errno or 0, f"cannot be used ({error.strerror})")
    return SondeError(f"port {port} of {host} {said}: choose another with {arg('port')}", field="port", value=port)


def _no_address(host: str) -> UsageError:
    said = f"{arg('host')} is {host!r}: it is not an address of this machine; give 127.0.0.1, or 0.0.0.0 for all"
    return UsageError(said, code="invalid", field="host", value=host)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address; any name other than localhost counts as reachable by others."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
