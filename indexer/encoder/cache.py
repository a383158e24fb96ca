"""The user's cache folder: what can be made again, kept because making it takes time."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ..errors import SondeError


def cache_folder() -> Path:
    """Return $SONDE_CACHE, else $XDG_CACHE_HOME/sonde, else ~/.cache/sonde; it need not exist yet."""
    if chosen := os.environ.get("SONDE_CACHE"):
        return Path(chosen).expanduser()
    root = os.environ.get("XDG_CACHE_HOME")
    return (Path(root) if root else Path.home() / ".cache") / "sonde"


@contextlib.contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """Yield a temporary folder beside `target` which becomes `target` when the block ends well.

    Raises:
        SondeError: The cache cannot be written.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    except OSError as error:
        raise SondeError(f"the cache {target.parent} cannot be written ({error}): set SONDE_CACHE") from error
    try:
        yield made
        _publish(made, target)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _publish(made: Path, target: Path) -> None:
    for path in made.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())
    try:
        made.rename(target)
    except OSError:
        if not target.is_dir():
            raise
