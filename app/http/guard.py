"""Access control: API keys and request rates."""

import hmac
import json
import logging
import os
import secrets
import time
from collections import OrderedDict
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Literal

from starlette.requests import Request

from ...indexer.errors import SondeError, UsageError
from ...indexer.files import check_file, write_durably
from .problems import ProblemError

log = logging.getLogger("sonde.http")
Rights = Literal["read", "write"]
PREFIX = "sonde_"
BYTES = 32
"""Random bytes in a key: enough that a plain digest cannot be reversed and needs no salt."""


@dataclass(frozen=True, slots=True)
class Key:
    """A stored key: its name, its rights ("write" includes reading) and its digest in hex."""

    name: str
    rights: Rights
    digest: str


class Keys:
    """The keys that the service accepts."""

    def __init__(self, keys: list[Key]) -> None:
        """Take the keys."""
        self.keys = keys

    @classmethod
    def load(cls, path: Path) -> "Keys":
        """Read a file of keys.

        Raises:
            SondeError: The file cannot be read, is not a key file, holds no keys, or can be changed by other users.
        """
        try:
            if os.name == "posix" and path.stat().st_mode & 0o022:
                raise SondeError(f"other users can add keys to {path}: run chmod 600 on it, then check its keys")
            keys = [Key(**entry) for entry in json.loads(path.read_text("utf-8"))["keys"]]
        except OSError as error:
            raise SondeError(f"cannot read the keys in {path}: {error.strerror}") from None
        except (ValueError, TypeError, KeyError):
            said = f"{path} is not a key file: create one under another name with `sonde serve key FILE --name NAME`"
            raise SondeError(said, code="not-keys") from None
        if not keys:
            said = f"{path} has no keys: create one with `sonde serve key {path} --name NAME`"
            raise SondeError(said, code="no-keys")
        return cls(keys)

    def find(self, given: str) -> Key | None:
        """Return the stored key that matches `given`; every key is compared, in constant time."""
        wanted, found = key_digest(given), None
        for key in self.keys:
            if hmac.compare_digest(key.digest, wanted):
                found = key
        return found


class KeyFile:
    """The keys of a file, read again when it changes, so that a removed key stops working at once."""

    def __init__(self, path: Path) -> None:
        """Read the file.

        Raises:
            SondeError: As for `Keys.load`.
        """
        self._path = path
        self._state = self._now()
        self._keys = Keys.load(path)

    def find(self, given: str) -> Key | None:
        """Return the stored key that matches `given`; if the file can no longer be used, its last keys stay valid."""
        if (now := self._now()) != self._state:
            self._state = now
            try:
                self._keys = Keys.load(self._path)
            except SondeError as error:
                if error.code == "no-keys":  # the last one was removed, on purpose
                    self._keys = Keys([])
                else:
                    log.error("the keys were not read again, and the previous ones stay valid: %s", error)
        return self._keys.find(given)

    def _now(self) -> tuple[int, int, int] | None:
        try:
            status = self._path.stat()
        except OSError:
            return None
        return status.st_ino, status.st_size, status.st_mtime_ns


def add_key(path: Path, name: str, rights: Rights) -> str:
    """Add a key to a file that only its owner may read, and return the key; it cannot be shown again.

    Raises:
        UsageError: The name is empty or taken, or the rights are not valid.
        SondeError: The file cannot be read or written.
    """
    if rights not in ("read", "write"):
        raise UsageError(f"there are no rights {rights!r}: use read or write")
    check_file(path)
    known = _kept(path) if path.exists() else []
    if not name.strip() or any(key.name == name for key in known):
        raise UsageError(f"{name!r} cannot name a new key: " + ("it is taken" if name.strip() else "it is empty"))
    key = PREFIX + secrets.token_urlsafe(BYTES)
    kept = {"keys": [asdict(entry) for entry in (*known, Key(name, rights, key_digest(key)))]}
    before = os.umask(0o077)
    try:
        write_durably(path, lambda stream: stream.write(json.dumps(kept, indent=1).encode()))
    finally:
        os.umask(before)
    return key


def _kept(path: Path) -> list[Key]:
    """Return the keys of an existing file to which a key will be added."""
    try:
        return Keys.load(path).keys
    except SondeError as error:
        if error.code != "not-keys":
            raise
        raise SondeError(f"{path} exists and is not a key file: give another name") from None


def key_digest(key: str) -> str:
    """Return the SHA-256 digest of a key in hex."""
    return sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


MOST_CLIENTS = 10_000
"""Maximum number of clients whose rate is tracked; the least recently active client is dropped first."""


class Guard:
    """Checks a request's key and its client's rate."""

    def __init__(self, keys: KeyFile | None, rate: float | None) -> None:
        """Take the keys, or None if no key is required, and the requests allowed per second for each client."""
        self.keys = keys
        self._buckets = Buckets(rate) if rate else None

    def admit(self, request: Request, rights: Rights) -> None:
        """Admit a request, or raise an error.

        Raises:
            ProblemError: The request has no valid key (401), its key lacks these rights (403), or its client sends too
                many requests (429).
        """
        key = self._key(request)
        if key is not None and rights == "write" and key.rights != "write":
            raise ProblemError(403, "this key may only read")
        client = key.name if key else (request.client.host if request.client else "")
        wait = self._buckets.take(client) if self._buckets else 0.0
        if wait > 0:
            raise ProblemError(429, "too many requests", headers={"Retry-After": str(max(1, round(wait)))})

    def _key(self, request: Request) -> Key | None:
        if self.keys is None:
            return None
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        given = token.strip() if scheme.lower() == "bearer" else ""
        found = self.keys.find(given) if given else None
        if found is None:
            said = "this API key is not valid" if given else "give an API key: Authorization: Bearer KEY"
            raise ProblemError(401, said, headers={"WWW-Authenticate": "Bearer"})
        return found


class Buckets:
    """A token bucket for each client: `rate` requests per second, and a burst of the same size."""

    def __init__(self, rate: float) -> None:
        """Take the number of requests allowed per second."""
        self.rate = rate
        self.depth = max(1.0, rate)
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, client: str, now: float | None = None) -> float:
        """Take one token and return 0, or return the seconds until a token is available."""
        now = time.monotonic() if now is None else now
        left, since = self._left.pop(client, (self.depth, now))
        left = min(self.depth, left + (now - since) * self.rate)
        allowed = left >= 1
        self._left[client] = (left - 1 if allowed else left, now)
        if len(self._left) > MOST_CLIENTS:
            self._left.popitem(last=False)
        return 0.0 if allowed else (1 - left) / self.rate
