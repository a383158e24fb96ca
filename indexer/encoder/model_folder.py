"""A model's folder, which a stranger may have made: checked before a library reads it, and errors in one line."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..errors import SondeError
from ..small_files import LARGEST_OF_MODEL, read_json
from .settings import LARGEST_DIMENSION
from .weights import module_folders, weight_files

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
        for part in dict.fromkeys([folder, *module_folders(folder)]):
            _check_config(part / "config.json")
            _check_ids(part / "tokenizer.json")
        yield


def _has_own_code(folder: Path) -> bool:
    """Return whether a model's configuration or one of its modules names a class that no library has."""
    configs = [_read(part / "config.json") for part in (folder, *module_folders(folder))]
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
