"""What the service is told."""

import ipaddress
from dataclasses import dataclass
from pathlib import Path

from ...indexer.errors import UsageError


@dataclass(frozen=True, slots=True)
class ServeSettings:
    """Where the service listens and what it allows.

    Attributes:
        host: Address to listen on; any but a loopback one needs `keys`.
        port: Port, 0 for a free one.
        keys: File of API keys, as `sonde key` writes it; None: no key is asked for.
        device: Where models run: "auto", "cpu", "cuda" …
        max_body: Bytes of a request's body.
        max_text: Characters of one text.
        max_texts: Texts, documents or labels of one request.
        max_k: Hits of one search, `offset` included.
        queue: Requests that may wait; beyond it the answer is 503.
        batch: Queries that are answered together at most.
        timeout: Seconds after which a request is given up with 503.
        rate: Requests a second for each key, or for each address where no key is asked for; None: no limit.

    Raises:
        UsageError: A limit is not positive.
    """

    host: str = "127.0.0.1"
    port: int = 8080
    keys: Path | None = None
    device: str = "auto"
    max_body: int = 4_000_000
    max_text: int = 100_000
    max_texts: int = 1_000
    max_k: int = 1_000
    queue: int = 256
    batch: int = 64
    timeout: float = 30.0
    rate: float | None = None

    def __post_init__(self) -> None:
        for name in ("max_body", "max_text", "max_texts", "max_k", "queue", "batch", "timeout"):
            if getattr(self, name) <= 0:
                raise UsageError(f"{name} is {getattr(self, name)}: it must be positive")
        if self.rate is not None and self.rate <= 0:
            raise UsageError(f"the rate is {self.rate}: it counts requests a second, more than 0")

    def check_exposure(self) -> None:
        """Refuse to listen beyond this machine without keys.

        Raises:
            UsageError: `host` is not a loopback address and there are no keys.
        """
        if self.keys is None and not is_loopback(self.host):
            raise UsageError(
                f"listening on {self.host} lets other machines in, so it needs --keys FILE: "
                "`sonde key FILE --name NAME` makes one"
            )


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address; a name other than localhost counts as reachable."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
