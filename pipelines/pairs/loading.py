"""From a name to a pair model: a folder or the hub's "org/name", safetensors only, never a silent other model."""

import os
import re
from pathlib import Path
from typing import Any

from ...indexer.encoder import models
from ...indexer.encoder.forward import DeviceFullError, Notify, fitting
from ...indexer.encoder.loading import quiet
from ...indexer.encoder.model_folder import in_one_line, model_folder, weight_files
from ...indexer.encoder.models import Located
from ...indexer.encoder.settings import resolve_devices, resolve_dtype
from ...indexer.errors import MissingExtraError, SondeError, UsageError, arg
from ...indexer.small_files import read_json
from .model import PairModel, stored_activation

_REPOSITORY = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*")


def load_pair_model(
    name: str, *, device: str = "auto", dtype: str = "auto", notify: Notify = lambda _: None, field: str = "model"
) -> PairModel:
    """Load a sequence-classification model.

    Args:
        name: A model's folder, or the hub's "org/name". Only the second may reach the network, says so first, and
            only if it is not in the hub's cache.
        device: "auto", "cpu", "cuda", "cuda:1", "mps", or a list.
        dtype: "auto" (half precision on an NVIDIA GPU, else float32), "float32", "bfloat16" or "float16".
        notify: Receives sentences that the user should read.
        field: The argument that the name came from, for messages.

    Raises:
        UsageError: The name, the device or the precision is not valid.
        SondeError: The model is not available, is damaged, or classifies nothing.
    """
    devices = resolve_devices(device)
    precision = resolve_dtype(dtype, devices[0])
    if precision == "int8":
        said = f"int8 is for bi-encoders: give {arg('dtype')} float32, bfloat16 or float16"
        raise UsageError(said, code="conflict", field="dtype", value=dtype)
    located = locate_pair_model(name, notify, field)
    with model_folder(located.folder):
        try:
            model, tokenizer = load_folder(located, precision, devices[0])
        except DeviceFullError:
            notify(f"{located.name} does not fit into the memory of {devices[0]}: using the CPU")
            devices = ["cpu"]
            model, tokenizer = load_folder(located)
        activation = stored_activation(located.folder)
        return PairModel(model, tokenizer, name=located.name, devices=devices, activation=activation, notify=notify)


def locate_pair_model(name: str, notify: Notify, field: str = "model") -> Located:
    """Find a model: a folder as it is, "org/name" in the hub's cache or, after a note, on the hub.

    Raises:
        UsageError: It is neither a folder nor an "org/name".
        SondeError: It is not available.
    """
    name = name.strip()
    folder = Path(name).expanduser()
    if name and folder.is_dir():
        return Located(str(folder.resolve()), folder)
    if name[:1] in (".", "~", os.sep) or not _REPOSITORY.fullmatch(name):
        said = f"there is no model {name!r}: give {arg(field)} a model's folder or a hub name such as org/name"
        raise UsageError(said, code="not-found", field=field, value=name)
    found = models.fetch_model(name, None, notify, field)
    return Located(name, found, found.name)


def load_folder(located: Located, dtype: str = "float32", device: str = "cpu") -> tuple[Any, Any]:
    """Return the model and the tokenizer of a local folder.

    Raises:
        DeviceFullError: It does not fit into the device's memory.
        SondeError: It is damaged, has only pickled weights, or is not a sequence-classification model.
        MissingExtraError: The libraries that run it are not installed.
    """
    _check(located.folder)
    try:
        import torch
        from transformers import AutoModelForSequenceClassification, AutoTokenizer
    except ImportError as error:
        raise MissingExtraError("transformers", "all", f"the model {located.name}") from error
    options: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    failed = f"{located.name} cannot be loaded as a model of pairs"
    with in_one_line(failed, located.folder), quiet(), fitting(located.name, device):
        tokenizer = AutoTokenizer.from_pretrained(located.folder, **options)
        model, report = AutoModelForSequenceClassification.from_pretrained(
            located.folder, dtype=getattr(torch, dtype), use_safetensors=True, output_loading_info=True, **options
        )
        model = model.to(device).eval()
    if missing := sorted(report["missing_keys"]):
        raise SondeError(f"{located.name} has no weights for {missing[0]}: it is no model that scores pairs")
    return model, tokenizer


def _check(folder: Path) -> None:
    """Refuse what is no model, is pickled, or is another kind of model, before anything is loaded."""
    config = folder / "config.json"
    if not config.is_file():
        raise SondeError(f"{folder} holds no model: there is no config.json in it")
    try:
        kinds = [str(kind) for kind in read_json(config).get("architectures") or ()]
    except (ValueError, AttributeError, TypeError, OSError) as error:
        raise SondeError(f"{config} cannot be read ({error}): the model is damaged, fetch it again") from error
    if kinds and not any(kind.endswith("ForSequenceClassification") for kind in kinds):
        raise SondeError(f"{folder} is a {kinds[0]}, not a model that scores pairs (…ForSequenceClassification)")
    weight_files(folder)
