"""The models that ship with Sonde, as files: which they are, whether they are intact, and how to unpack them."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ....indexer.encoder.model_folder import weights_digest
from ....indexer.encoder.models import DEFAULT_MODEL, locate
from ....indexer.errors import SondeError, UsageError, arg
from ....indexer.files import sha256

CODE, SCALE, CHANGE = ".code", ".scale", ".change"
FOLDER = Path(__file__).parent
WEIGHTS = "weights.safetensors"
WINDOW = 256
"""Tokens of a pair: the default bi-encoder's own window."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """A model that is shipped.

    Attributes:
        name: Its folder beside this file, with the weights and a README.md about them.
        digest: SHA-256 of its weights' file.
        purpose: What it does, for messages.
    """

    name: str
    digest: str
    purpose: str


BUNDLED = {
    "nli": Bundle(
        "nli", "e9ab249f16d89d1034f495d3a4bd0b56775f0af1716ae784ef432c4d18b1e8ce", "inference between two texts"
    ),
}


@dataclass(frozen=True, slots=True, eq=False)
class Packed:
    """The content of a bundle's file.

    Attributes:
        config: The configuration, as transformers writes it.
        arrays: What `unpack` takes.
        base: The folder of the model that it differs from.
    """

    config: dict[str, Any]
    arrays: dict[str, np.ndarray]
    base: Path


def open_bundle(name: str, notify: Callable[[str], object]) -> Packed:
    """Check the file of a bundled model and read it.

    Raises:
        UsageError: There is no such bundled model.
        SondeError: The default model that it builds on is not available, or a file is not the one it should be.
    """
    if (bundle := BUNDLED.get(name)) is None:
        raise UsageError(f"there is no bundled model {name!r}; available: {', '.join(BUNDLED) or 'none'}")
    path = FOLDER / bundle.name / WEIGHTS
    if not path.is_file():
        raise SondeError(f"{path} is missing: install sonde again")
    if (digest := sha256(path)) != bundle.digest:
        raise SondeError(
            f"{path} is not the file that came with sonde (its SHA-256 is {digest[:12]}…, not {bundle.digest[:12]}…): "
            "install sonde again"
        )
    return read_bundle(path, bundle, _base(bundle, notify))


def _base(bundle: Bundle, notify: Callable[[str], object]) -> Path:
    try:
        return locate(DEFAULT_MODEL, notify).folder
    except SondeError as error:
        raise SondeError(
            f"the bundled model for {bundle.purpose} builds on {DEFAULT_MODEL}, which is not available: "
            f"install sonde again, or give a model's folder with {arg('model')}"
        ) from error


def read_bundle(path: Path, bundle: Bundle, base: Path) -> Packed:
    """Read a bundle's file.

    Raises:
        SondeError: The base is not the one that the bundle was made from.
    """
    from safetensors import safe_open

    with safe_open(path, "numpy") as file:
        about = json.loads(file.metadata()["bundle"])
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - it is no mapping
    if (digest := weights_digest(base)) != about["base"]:
        raise SondeError(
            f"the bundled model for {bundle.purpose} builds on {DEFAULT_MODEL} with the digest {about['base'][:12]}…, "
            f"but {base} has {digest[:12]}…: install sonde again, or give a model's folder with {arg('model')}"
        )
    return Packed(about["config"], arrays, base)


def unpack(packed: Mapping[str, np.ndarray], base: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the float32 weights that `pack` was given, as near as its codes allow."""
    weights = {name: np.asarray(weight, np.float32) for name, weight in base.items()}
    for name, part in packed.items():
        exact = np.asarray(part, np.float32)
        if name.endswith(CODE):
            name = name.removesuffix(CODE)
            change = exact * np.asarray(packed[name + SCALE], np.float32)
            weights[name] = np.asarray(weights[name] + change, np.float32)
        elif name.endswith(CHANGE):
            name = name.removesuffix(CHANGE)
            weights[name] = weights[name] + exact
        elif not name.endswith(SCALE):
            weights[name] = exact
    return weights
