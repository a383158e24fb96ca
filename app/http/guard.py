"""Access control: API keys and request rates."""

import hmac
import json
import logging
import os
import re
import secrets
import time
from collections import OrderedDict
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from hashlib import sha256
from pathlib import Path
from typing import Literal, get_args

from starlette.requests import Request

from ...indexer.errors import SondeError, UsageError
from ...indexer.files import check_file, write_durably
from ...indexer.wording import existing
from .problems import ProblemError

log = logging.getLogger("sonde.http")
Rights = Literal["read", "write"]
RIGHTS = get_args(Rights)
PREFIX = "sonde_"
BYTES = 32
"""Random bytes in a key: enough that a plain digest cannot be reversed and needs no salt."""
_DIGEST = re.compile("[0-9a-f]{64}")


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
            SondeError: The file cannot be read, is not a key file, holds no keys, or can be changed by other users
                than root and that of this process.
        """
        try:
            _check_safe(path)
            keys = _keys_in(path.read_text("utf-8"))
        except OSError as error:
            raise SondeError(f"cannot read the keys in {path}: {error.strerror}") from None
        except UnicodeDecodeError:
            raise _no_key_file(path, "it is not UTF-8") from None
        except ValueError as error:
            raise _no_key_file(path, str(error)) from None
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


def _check_safe(path: Path) -> None:
    if os.name != "posix":
        return
    status = path.stat()
    if status.st_mode & 0o022:
        raise SondeError(f"other users can add keys to {path}: run chmod 600 on it, then check its keys")
    if status.st_uid not in (0, os.geteuid()):
        raise SondeError(f"{path} belongs to another user: run chown on it, then check its keys")


def _keys_in(content: str) -> list[Key]:
    """Return the keys of a file's content.

    Raises:
        ValueError: It holds something else; the message says what.
    """
    try:
        held = json.loads(content)
    except json.JSONDecodeError as error:
        raise ValueError(f"{error.msg} in line {error.lineno}") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    entries = held.get("keys") if isinstance(held, dict) else None
    if not isinstance(entries, list):
        raise ValueError("it has no list of keys")
    return [_key_of(entry, f"entry {number} of its keys") for number, entry in enumerate(entries, 1)]


def _key_of(entry: object, called: str) -> Key:
    names = ("name", "rights", "digest")
    if not isinstance(entry, dict) or {*entry} != {*names} or not all(isinstance(entry[name], str) for name in names):
        raise ValueError(f"{called} needs name, rights and digest, each a text, and nothing else")
    if entry["rights"] not in RIGHTS:
        raise ValueError(f"{called} ({entry['name']!r}) has the rights {entry['rights']!r}: use read or write")
    if not _DIGEST.fullmatch(entry["digest"]):
        raise ValueError(f"{called} ({entry['name']!r}) has a digest that is not 64 hexadecimal digits")
    return Key(**entry)


def _no_key_file(path: Path, why: str) -> SondeError:
    said = f"{path} is not a key file: {why}; `sonde serve key FILE --name NAME` creates one under another name"
    return SondeError(said, code="not-keys")


class KeyFile:
    """The keys of a file, read again when it changes, so that a removed key stops working at once.

    Attributes:
        stale: Whether the file could not be used when it was last looked at, so that earlier keys are still valid.
    """

    def __init__(self, path: Path) -> None:
        """Read the file.

        Raises:
            SondeError: As for `Keys.load`.
        """
        self.stale = False
        self._path = path
        self._state = self._now()
        self._keys = Keys.load(path)

    def find(self, given: str) -> Key | None:
        """Return the stored key that matches `given`; if the file can no longer be used, its last keys stay valid."""
        self.look()
        return self._keys.find(given)

    def look(self) -> None:
        """Read the file again if it changed."""
        if (now := self._now()) == self._state:
            return
        self._state, self.stale = now, False
        try:
            self._keys = Keys.load(self._path)
        except SondeError as error:
            if error.code == "no-keys":  # the last one was removed, on purpose
                self._keys = Keys([])
            else:
                self.stale = True
                log.error("the keys were not read again, and the previous ones stay valid: %s", error)

    def _now(self) -> tuple[int, ...] | None:
        try:
            status = self._path.stat()
        except OSError:
            return None
        return status.st_ino, status.st_size, status.st_mtime_ns, status.st_mode, status.st_uid


def add_key(path: Path, name: str, rights: Rights) -> str:
    """Add a key to a file that only its owner may read, and return the key; it cannot be shown again.

    Raises:
        UsageError: The name is empty or taken, or the rights are not valid.
        SondeError: The file cannot be read or written.
    """
    if rights not in RIGHTS:
        raise UsageError(f"there are no rights {rights!r}: use read or write")
    check_file(path)
    known = _kept(path) if path.exists() else []
    if not name.strip() or any(key.name == name for key in known):
        raise UsageError(f"{name!r} cannot name a new key: " + ("it is taken" if name.strip() else "it is empty"))
    key = PREFIX + secrets.token_urlsafe(BYTES)
    _write(path, [*known, Key(name, rights, key_digest(key))])
    return key


def remove_key(path: Path, name: str) -> None:
    """Remove a key from a file; if it was the last one, no key is valid.

    Raises:
        UsageError: There is no key with this name.
        SondeError: The file cannot be read or written, or has no keys.
    """
    keys = Keys.load(path).keys
    names = [key.name for key in keys]
    if name not in names:
        close = get_close_matches(name, names, 1)
        raise UsageError(f"there is no key {name!r}: " + (f"did you mean {close[0]!r}?" if close else existing(names)))
    _write(path, [key for key in keys if key.name != name])


def _write(path: Path, keys: list[Key]) -> None:
    kept = {"keys": [asdict(key) for key in keys]}
    before = os.umask(0o077)
    try:
        write_durably(path, lambda stream: stream.write(json.dumps(kept, indent=1).encode()))
    finally:
        os.umask(before)


def _kept(path: Path) -> list[Key]:
    """Return the keys of an existing file to which a key will be added."""
    try:
        return Keys.load(path).keys
    except SondeError as error:
        if error.code == "no-keys":
            return []
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
