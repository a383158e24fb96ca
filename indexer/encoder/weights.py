"""Weights on disk: where they are, that they are safetensors, their digest; the user's cache folder."""

import contextlib
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ..errors import SondeError
from ..files import sync_file
from ..small_files import read_json


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
            sync_file(path)
    try:
        made.rename(target)
    except OSError:
        if not target.is_dir():
            raise


PICKLED = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")


def weights_digest(folder: Path) -> str:
    """Return the SHA-256 of a model's weights: of its one safetensors file, or over the names and digests of several.

    Raises:
        SondeError: There are no weights, or only pickled ones.
    """
    files = weight_files(folder)
    if len(files) == 1:
        return file_digest(files[0])
    lines = [f"{path.relative_to(folder).as_posix()} {file_digest(path)}\n" for path in files]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def weight_files(folder: Path) -> list[Path]:
    """Return the safetensors files that loading the model reads, in a fixed order.

    Raises:
        SondeError: There are none, or a part of the model has only pickled weights.
    """
    found: list[Path] = []
    for part in module_folders(folder):
        files = [path for path in sorted(part.rglob("*.safetensors")) if not _aside(path.relative_to(part))]
        if not files and (pickled := _pickled(part)):
            raise SondeError(
                f"{pickled} holds pickled weights, which can run code when loaded: use a model saved as safetensors"
            )
        found.extend(files)
    if not found:
        raise SondeError(f"{folder} holds no model: no model.safetensors in it; give a Sentence-Transformers folder")
    return list(dict.fromkeys(found))


def _aside(path: Path) -> bool:
    """Whether a file is a training checkpoint or another program's copy."""
    return any(part.startswith(("checkpoint-", "onnx", "openvino", ".")) for part in path.parts[:-1])


def module_folders(folder: Path) -> Iterator[Path]:
    """Yield the folder of each module of a model.

    Raises:
        SondeError: modules.json is damaged, or names a folder outside the model's.
    """
    modules = folder / "modules.json"
    if not modules.is_file():
        yield folder
        return
    try:
        paths = [str(module["path"]) for module in read_json(modules)]
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise SondeError(f"{modules} cannot be read ({error}): the model is damaged, fetch it again") from error
    for path in paths:
        if Path(path).is_absolute() or ".." in Path(path).parts:
            raise SondeError(f"{modules} names {path!r}, which is outside the model's folder: use another model")
        yield folder / path


def _pickled(part: Path) -> Path | None:
    return next((path for pattern in PICKLED for path in sorted(part.glob(pattern))), None)


def file_digest(path: Path) -> str:
    """Return a file's SHA-256, remembered in the cache folder for as long as its size and time stay the same."""
    path = path.resolve()
    state = path.stat()
    key = hashlib.sha256(f"{path}\n{state.st_size}\n{state.st_mtime_ns}".encode()).hexdigest()
    known = cache_folder() / "digests" / key
    with contextlib.suppress(OSError):
        digest = known.read_text("ascii")
        if len(digest) == 64:
            return digest
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    # A cache that cannot be written costs a tenth of a second at every start and nothing else.
    with contextlib.suppress(OSError):
        known.parent.mkdir(parents=True, exist_ok=True)
        written = known.with_name(f"{key}.{os.getpid()}")
        written.write_text(digest, "ascii")
        written.replace(known)
    return digest
