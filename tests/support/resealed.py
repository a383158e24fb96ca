"""Change a sharded collection's own files as someone would who also makes their digests again."""

import json
from pathlib import Path
from typing import Any

from sonde.indexer.small_files import DIGEST, sealed


def resealed(path: Path, **changes: Any) -> None:
    """Change values of a file, and give it the digest of what it then holds."""
    stored = json.loads(path.read_bytes())
    path.write_bytes(sealed({name: value for name, value in stored.items() if name != DIGEST} | changes))


def replaced(path: Path, old: str, new: str) -> None:
    """Replace a part of a file, and give it the digest of what it then holds."""
    content = path.read_text()
    assert old in content
    path.write_text(content.replace(old, new))
    resealed(path)
