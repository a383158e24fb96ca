"""Smaller and faster forms of one bi-encoder: other precisions, pruned weights, a static model."""

import re
from dataclasses import replace
from typing import Any

from ...indexer.encoder import STATIC_MODEL, Encoder, load_encoder
from ...indexer.encoder.assembly import quantize
from ...indexer.encoder.loading import quiet
from ...indexer.encoder.settings import resolve_devices
from ...indexer.errors import UsageError
from ...indexer.progress import Notify, silent
from ..similarity.embedding import load_symmetric

EXACT = "float32"
DTYPES = (EXACT, "bfloat16", "float16")
PER_CHANNEL, PER_TENSOR = "int8", "int8-tensor"
PRUNED = "pruned"
SHARE = 0.2
"""Share of the weights of each linear layer that pruning sets to zero, unless another is named."""
DIMENSIONS = "dims"
_FORM = re.compile(rf"({PRUNED}|{DIMENSIONS})(?::(\d*\.?\d+))?")


def usual_forms(device: str = "auto") -> tuple[str, ...]:
    """Return the forms that are compared when nobody chose; int8 runs on CPUs alone, float16 on GPUs well."""
    on_cpu = resolve_devices(device)[0] == "cpu"
    return (*DTYPES[:2], *((PER_TENSOR, PER_CHANNEL) if on_cpu else ("float16",)), PRUNED, STATIC_MODEL)


def check_form(form: str) -> str:
    """Return a form with its number written out: "pruned" is "pruned:0.2".

    Raises:
        UsageError: There is no such form, or its number is not valid.
    """
    form = form.strip()
    if form in (*DTYPES, PER_CHANNEL, PER_TENSOR, STATIC_MODEL):
        return form
    found = _FORM.fullmatch(form)
    if found and found[1] == PRUNED and 0 < (share := float(found[2] or SHARE)) < 1:
        return f"{PRUNED}:{share:g}"
    if found and found[1] == DIMENSIONS and (found[2] or "").isdigit() and int(found[2]) > 0:
        return f"{DIMENSIONS}:{int(found[2])}"
    known = ", ".join((*DTYPES, PER_CHANNEL, PER_TENSOR, f"{PRUNED}:0.2", f"{DIMENSIONS}:128", STATIC_MODEL))
    raise UsageError(f"there is no form {form!r} of a model: give {known}")


def load_form(model: str, form: str, device: str = "auto", notify: Notify = silent, symmetric: bool = True) -> Encoder:
    """Load a model in one of its forms, as `check_form` returns them; not "dims", which any vectors can be cut to.

    Args:
        model: The model's name.
        form: The form.
        device: Where to run it.
        notify: Receives sentences that the user should read.
        symmetric: Without the prompts of queries and documents, which are for search.

    Raises:
        UsageError: The model or the device does not go with the form.
        SondeError: The model is not available.
    """
    load = load_symmetric if symmetric else load_encoder
    if form == STATIC_MODEL:
        return load(f"{STATIC_MODEL}:{model}", device=device, dtype=EXACT, notify=notify)
    if form in (*DTYPES, PER_CHANNEL):
        return load(model, device=device, dtype=form, notify=notify)
    encoder = load(model, device="cpu" if form == PER_TENSOR else device, dtype=EXACT, notify=notify)
    if form == PER_TENSOR:
        with quiet():
            quantize(encoder, notify, per_channel=False)
        encoder.spec = replace(encoder.spec, dtype=PER_CHANNEL)
    else:
        prune(encoder.replicas[0].model, float(form.partition(":")[2]))
    return encoder


def prune(model: Any, share: float) -> float:
    """Set the smallest weights of each linear layer to zero, for good; return the share of zeros in these layers.

    Magnitude pruning without structure (Han et al., NIPS 2015): the zeros are stored and multiplied like any number.

    Args:
        model: A torch module.
        share: Of each layer's weights, 0 to 1.

    Raises:
        UsageError: It has no linear layer.
    """
    import torch
    from torch.nn.utils import prune as pruning

    layers = [module for module in model.modules() if isinstance(module, torch.nn.Linear)]
    if not layers:
        raise UsageError("the model has no linear layer that could be pruned")
    for layer in layers:
        pruning.l1_unstructured(layer, "weight", amount=share)
        pruning.remove(layer, "weight")
    zeros = sum(int((layer.weight == 0).sum()) for layer in layers)
    return zeros / sum(layer.weight.numel() for layer in layers)
