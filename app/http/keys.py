"""API keys: random, shown once, kept as SHA-256 digests, compared in constant time."""

import hmac
import json
import os
import secrets
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Literal

from ...indexer.errors import SondeError, UsageError
from ...indexer.files import write_durably

Rights = Literal["read", "write"]
PREFIX = "sonde_"
BYTES = 32
"""Random bytes of a key: with so many, a plain digest cannot be guessed back and needs no salt."""


@dataclass(frozen=True, slots=True)
class Key:
    """A key as it is kept: its name, what it may do ("write" includes reading) and its digest in hex."""

    name: str
    rights: Rights
    digest: str


class Keys:
    """The keys that the service knows."""

    def __init__(self, keys: list[Key]) -> None:
        """Take the keys."""
        self.keys = keys

    @classmethod
    def load(cls, path: Path) -> "Keys":
        """Read a file of keys.

        Raises:
            SondeError: It cannot be read, is no such file, or holds no key.
        """
        try:
            keys = [Key(**entry) for entry in json.loads(path.read_text("utf-8"))["keys"]]
        except OSError as error:
            raise SondeError(f"cannot read the keys in {path}: {error.strerror}") from None
        except (ValueError, TypeError, KeyError):
            raise SondeError(f"{path} is no file of keys: make one with `sonde key {path} --name NAME`") from None
        if not keys:
            raise SondeError(f"{path} holds no key: make one with `sonde key {path} --name NAME`")
        return cls(keys)

    def find(self, given: str) -> Key | None:
        """Return the key that `given` is; every key is compared, in constant time."""
        wanted, found = key_digest(given), None
        for key in self.keys:
            if hmac.compare_digest(key.digest, wanted):
                found = key
        return found


def add_key(path: Path, name: str, rights: Rights) -> str:
    """Add a key to a file, which only its owner may read, and return it: it cannot be shown again.

    Raises:
        UsageError: The name is empty or taken, or there are no such rights.
        SondeError: The file cannot be read or written.
    """
    if rights not in ("read", "write"):
        raise UsageError(f"there are no rights {rights!r}: use read or write")
    known = Keys.load(path).keys if path.exists() else []
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


def key_digest(key: str) -> str:
    """Return the SHA-256 of a key in hex."""
    return sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
