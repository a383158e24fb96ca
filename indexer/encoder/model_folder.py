"""A model's folder, which a stranger may have made: checked before a library reads it; its weights and their digest."""

import base64
import hashlib
import json
import math
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import SondeError
from ..files import sync_file
from ..small_files import LARGEST_OF_MODEL, read_json
from .settings import LARGEST_DIMENSION

if TYPE_CHECKING:
    from tokenizers import Tokenizer


LIMITS: dict[str, tuple[int, int]] = {
    "hidden_size": (1, LARGEST_DIMENSION),
    "num_attention_heads": (1, LARGEST_DIMENSION),
    "max_position_embeddings": (0, 10_000_000),
    "type_vocab_size": (0, 1_000),
    "num_labels": (0, 100_000),
}
"""The least and the largest values in a config.json. Libraries make objects or arrays of these sizes before they look
at the weights, so a file of a few bytes could take all memory. Known models are far inside.
"""
MOST_LAYERS = 1_000
MOST_TOKENS = 10_000_000
"""Largest id of a token: the tokenizers library makes a list with a place for each id."""
LONGEST_REASON = 200


@contextmanager
def in_one_line(failed: str, folder: Path | None = None) -> Iterator[None]:
    """Within the block, whatever a model makes a library raise becomes one line that begins with `failed`.

    If the model in `folder` needs code of its own, that is the reason, not the library's advice to run it.

    Raises:
        SondeError: Something in the block failed.
    """
    try:
        yield
    except (SondeError, MemoryError):  # too little memory is no fault of the model's, and has a message of its own
        raise
    except BaseException as error:
        # PyO3 derives its panics from BaseException, and no module exports the class.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        if folder is not None and isinstance(error, ValueError) and _has_own_code(folder):
            said = "it needs code of its own, and Sonde runs no code from models: use another one"
            raise SondeError(f"{failed}: {said}") from error
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:LONGEST_REASON]
        raise SondeError(f"{failed} ({reason}): get the model again, or use another one") from error


@contextmanager
def model_folder(folder: Path) -> Iterator[None]:
    """Within the block, libraries load the model of a folder, which is checked first.

    Raises:
        SondeError: It cannot be loaded.
    """
    with in_one_line(f"cannot load the model in {folder}"):
        _check_files(folder)
        for part in dict.fromkeys([folder, *_module_folders(folder)]):
            _check_config(part / "config.json")
            _check_ids(part / "tokenizer.json")
        yield


def _has_own_code(folder: Path) -> bool:
    """Return whether a model's configuration or one of its modules names a class that no library has."""
    configs = [_read(part / "config.json") for part in (folder, *_module_folders(folder))]
    if any(isinstance(config, dict) and config.get("auto_map") for config in configs):
        return True
    modules = _read(folder / "modules.json")
    kinds = [module.get("type") for module in modules if isinstance(module, dict)] if isinstance(modules, list) else []
    return any(isinstance(kind, str) and not kind.startswith("sentence_transformers.") for kind in kinds)


def _check_files(folder: Path) -> None:
    """Refuse what is neither a file nor a folder: a library that reads a pipe would wait forever."""
    for parent, _, names in os.walk(folder):
        for name in names:
            path = Path(parent, name)
            if path.exists() and not path.is_file():
                raise SondeError(f"{path} is not a regular file: remove it, or use another model")


def _read(file: Path) -> Any:
    if not file.is_file():
        return None
    try:
        return read_json(file, LARGEST_OF_MODEL)
    except ValueError as error:
        raise SondeError(f"{file} cannot be read ({error}): get the model again, or use another one") from error


def _check_config(file: Path) -> None:
    found = _read(file)
    for name, value in _numbers(found):
        least, most = (-MOST_LAYERS, MOST_LAYERS) if name.endswith("layers") else LIMITS.get(name, (value, value))
        if not least <= value <= most:
            raise SondeError(f"{file} has {name} {value}: a model has {least:,} to {most:,}; use another model")
    _check_dense(found, file.parent)


def _numbers(config: Any) -> Iterator[tuple[str, float]]:
    """Yield the numbers of a configuration and of those inside it, with their names."""
    for name, value in config.items() if isinstance(config, dict) else ():
        if isinstance(value, dict):
            yield from _numbers(value)
        elif isinstance(value, int | float):
            yield name, value


def _check_dense(config: Any, folder: Path) -> None:
    """Refuse a layer that is larger than its weights."""
    given = dict(_numbers(config))
    size = given.get("in_features", 0) * given.get("out_features", 0)
    if size and size > sum(file.stat().st_size for file in weight_files(folder)):
        raise SondeError(f"{folder / 'config.json'} describes a layer larger than its weights: use another model")


def _check_ids(file: Path) -> None:
    if not file.is_file():
        return
    found = _read(file)
    if not isinstance(found, dict) or not isinstance(found.get("model"), dict):
        raise SondeError(f"{file} holds no tokenizer: get the model again, or use another one")
    vocabulary = found["model"].get("vocab") or {}
    ids = [*vocabulary.values()] if isinstance(vocabulary, dict) else []
    ids += [token["id"] for token in found.get("added_tokens") or ()]
    if ids and not 0 <= min(ids) <= max(ids) <= MOST_TOKENS:
        raise SondeError(f"{file} has ids of tokens from {min(ids)} to {max(ids)}: use 0 to {MOST_TOKENS:,}")


def cache_folder() -> Path:
    """Return $SONDE_CACHE, else $XDG_CACHE_HOME/sonde, else ~/.cache/sonde; it need not exist yet."""
    if chosen := os.environ.get("SONDE_CACHE"):
        return Path(chosen).expanduser()
    root = os.environ.get("XDG_CACHE_HOME")
    return (Path(root) if root else Path.home() / ".cache") / "sonde"


@contextmanager
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


_PICKLED = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")


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
    for part in _module_folders(folder):
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


def _module_folders(folder: Path) -> Iterator[Path]:
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
    return next((path for pattern in _PICKLED for path in sorted(part.glob(pattern))), None)


def file_digest(path: Path) -> str:
    """Return a file's SHA-256, remembered in the cache folder for as long as its size and time stay the same."""
    path = path.resolve()
    state = path.stat()
    key = hashlib.sha256(f"{path}\n{state.st_size}\n{state.st_mtime_ns}".encode()).hexdigest()
    known = cache_folder() / "digests" / key
    with suppress(OSError):
        digest = known.read_text("ascii")
        if len(digest) == 64:
            return digest
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    # A cache that cannot be written costs a tenth of a second at every start and nothing else.
    with suppress(OSError):
        known.parent.mkdir(parents=True, exist_ok=True)
        written = known.with_name(f"{key}.{os.getpid()}")
        written.write_text(digest, "ascii")
        written.replace(known)
    return digest


_LARGEST_GROWTH = 64
"""Known tokenizers stay below 8."""
_USUAL = {"Precompiled": 18, "ByteLevel": 4}
"""Characters that SentencePiece's table (NFKC) and bytes in UTF-8 make of one; not counted, once."""
_TABLE_SIZE = 4


def growth(backend: "Tokenizer") -> int:
    """Return how many characters a tokenizer can make of one, apart from Unicode's own forms.

    Raises:
        SondeError: It makes too many.
    """
    steps = [step for part in (backend.normalizer, backend.pre_tokenizer) for step in _steps(_state(part))]
    product = math.prod(_factor(step) for step in steps)
    for kind, usual in _USUAL.items():
        if any(step["type"] == kind for step in steps):
            product = -(-product // usual)
    if product > _LARGEST_GROWTH:
        said = f"the model's tokenizer can make a text {product:,} times as long; the maximum is {_LARGEST_GROWTH}"
        raise SondeError(f"{said}: use another model")
    return max(1, product)


def _state(part: Any) -> dict[str, Any]:
    """Return the settings of a part; {} for none, and for one in Python, which no file can bring."""
    with suppress(Exception):  # the library has no type of its own for this
        return json.loads(part.__getstate__())
    return {}


def _steps(part: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for each in part.get("normalizers") or part.get("pretokenizers") or ():
        yield from _steps(each)
    if "type" in part:
        yield part


def _factor(step: dict[str, Any]) -> int:
    """Return how many characters a step can make of one."""
    match step["type"]:
        case "Replace":
            length, pattern = len(step["content"]), step["pattern"].get("String")
            # An expression may match nothing at every place.
            return max(1, -(-length // len(pattern))) if pattern else 1 + length
        case "Prepend":
            return 1 + len(step["prepend"])
        case "Precompiled":
            table = base64.b64decode(step["precompiled_charsmap"])
            pieces = table[_TABLE_SIZE + int.from_bytes(table[:_TABLE_SIZE], "little") :].split(b"\0")
            return max(1, *(len(piece.decode(errors="replace")) for piece in pieces))
        case kind:
            return _USUAL.get(kind, 1)
