"""Loading a model silently, offline where it is local, and with everything about it written down."""

import contextlib
import logging
import warnings
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

from ..errors import MissingExtraError, SondeError
from ..small_files import read_json
from .assembly import assemble_encoder, assemble_packed, assemble_plain, assemble_static, quantize
from .encoder import Encoder
from .forward import DeviceFullError, Notify, fitting
from .model_folder import cache_folder, in_one_line, model_folder, new_folder, weights_digest
from .models import DEFAULT_MODEL, STATIC_MODEL, Located, canonical_name, locate
from .packed_bert import runs_flash
from .plain import PlainModel, read_plain
from .precision import multiplies_in_bfloat16
from .settings import EncoderSettings, ModelSpec
from .static import distil, read_static, static_digest


def load_encoder(
    name: str = DEFAULT_MODEL,
    *,
    device: str = "auto",
    dtype: str = "auto",
    truncate_dim: int | None = None,
    query_prompt: str | None = None,
    document_prompt: str | None = None,
    normalize: bool = True,
    max_tokens: int | None = None,
    engine: str = "auto",
    notify: Notify = lambda _: None,
) -> Encoder:
    """Load a bi-encoder.

    Args:
        name: "all-MiniLM-L6-v2", "static" (or "static:BASE"), the folder of a Sentence-Transformers model, or the
            hub's "org/name". Only the last may reach the network, says so first, and only if it is not cached.
        device: "auto", "cpu", "cuda", "cuda:1", "mps", or a list: "cuda:0,cuda:1".
        dtype: "auto" (half precision on an NVIDIA GPU, else float32), "float32", "bfloat16", "float16", or "int8"
            (CPU only; `Encoder.loss` is the measured loss).
        truncate_dim: Matryoshka: keep this many dimensions.
        query_prompt: In place of the model's own; "" for none.
        document_prompt: In place of the model's own; "" for none.
        normalize: Whether vectors get length 1.
        max_tokens: A window smaller than the model's.
        engine: "torch" runs the library's model. "auto" is faster with BERT-like models: ONNX Runtime in float32 on a
            CPU, and "packed" (torch without padding) in half precision on an NVIDIA GPU. "packed" also runs on a CPU.
        notify: Receives sentences that the user should read: a download, a distillation.

    Raises:
        UsageError: The name, the device or an option is not valid.
        SondeError: The model is not available, or is damaged.
    """
    settings = EncoderSettings.of(
        device,
        dtype,
        truncate_dim=truncate_dim,
        query_prompt=query_prompt,
        document_prompt=document_prompt,
        normalize=normalize,
        max_tokens=max_tokens,
    )
    encoder = _load(canonical_name(name), settings, notify, engine=engine)
    if dtype == "auto" and settings.dtype == "float16" and not encoder.finite():
        # Some models (T5's encoder is one) overflow in float16.
        notify(f"{name} overflows in float16: using bfloat16")
        encoder = _load(canonical_name(name), replace(settings, dtype="bfloat16", compute="bfloat16"), notify)
    return encoder


def load_encoder_for(
    spec: ModelSpec, *, device: str = "auto", passages: bool = False, notify: Notify = lambda _: None
) -> Encoder:
    """Load the model that a collection was built with, under the same settings.

    What was embedded in half precision, a CPU computes in float32: closer to the truth, and faster for a query. Many
    `passages` are faster in bfloat16 on a processor that multiplies in it.

    Raises:
        UsageError: This machine lacks the device.
        SondeError: The model is gone, or its weights are others.
    """
    half = passages and spec.dtype == "bfloat16" and multiplies_in_bfloat16()
    encoder = _load(spec.name, EncoderSettings.like(spec, device, half_on_cpu=half), notify, spec)
    if encoder.spec.dimension != spec.dimension:
        raise SondeError(
            f"{spec.name} now produces {encoder.spec.dimension} dimensions, but the collection has {spec.dimension}"
        )
    encoder.spec = spec
    return encoder


def _load(
    name: str, settings: EncoderSettings, notify: Notify, wanted: ModelSpec | None = None, engine: str = "auto"
) -> Encoder:
    tier, _, base = name.partition(":")
    static = tier == STATIC_MODEL
    located = locate((base or DEFAULT_MODEL) if static else name, notify, wanted.revision if wanted else None)
    with model_folder(located.folder):
        return _loaded(located, name, static, settings, notify, wanted, engine)


def _loaded(
    located: Located, name: str, static: bool, settings: EncoderSettings, notify: Notify, wanted: ModelSpec | None,
    engine: str,
) -> Encoder:  # fmt: skip
    weights = weights_digest(located.folder)
    digest = static_digest(weights) if static else weights
    if wanted and digest != wanted.digest:
        raise SondeError(
            f"the collection was built with {name} of digest {wanted.digest[:12]}…, but {located.folder} has "
            f"{digest[:12]}…: restore the old weights, or index into a new collection"
        )
    _check_kind(located, notify)
    if static:
        located = _static(located, weights, name, notify)
    try:
        return _assembled(located, digest, settings, notify, engine)
    except DeviceFullError:
        notify(f"{located.name} does not fit into the memory of {settings.devices[0]}: using the CPU")
        return _assembled(located, digest, replace(settings, devices=["cpu"], compute="float32"), notify, engine)


def _assembled(located: Located, digest: str, settings: EncoderSettings, notify: Notify, engine: str) -> Encoder:
    """Return the encoder that computes in the fastest way that the model and the device allow.

    Raises:
        DeviceFullError: The model does not fit into the device's memory.
    """
    library = cache(lambda: load_model(located, settings))
    exact_on_cpu = settings.devices == ["cpu"] and settings.compute == "float32"
    if exact_on_cpu and engine != "torch" and (table := read_static(located.folder)):
        return assemble_static(table, located, digest, settings, library)
    plain = read_plain(located.folder) if engine != "torch" and settings.dtype != "int8" else None
    if plain and (engine == "packed" or _all_run_flash(plain, settings)):
        with fitting(located.name, settings.devices[0]):
            return assemble_packed(plain, located, digest, settings, library, notify)
    if plain and exact_on_cpu:
        return assemble_plain(plain, located, digest, settings, library)
    encoder = assemble_encoder(library(), located, digest, settings, notify)
    if settings.dtype == "int8":
        with quiet():
            quantize(encoder, notify)
    return encoder


def _all_run_flash(model: PlainModel, settings: EncoderSettings) -> bool:
    return all(runs_flash(model.shape, device, settings.compute) for device in settings.devices)


def _check_kind(located: Located, notify: Notify) -> None:
    """Refuse a classifier or cross-encoder, which would load and give vectors that mean nothing."""
    config = located.folder / "config.json"
    if (located.folder / "modules.json").is_file() or not config.is_file():
        return
    with contextlib.suppress(ValueError, TypeError, AttributeError):
        for architecture in read_json(config).get("architectures") or ():
            if "ForSequenceClassification" in architecture:
                raise SondeError(f"{located.folder} is a {architecture}, not a model that computes embeddings")
    notify(f"{located.folder} defines no pooling: using the mean of its tokens")


def _static(base: Located, weights: str, name: str, notify: Notify) -> Located:
    """Return the static model of `base`, distilled now if it is not in the cache."""
    folder = cache_folder() / "static" / static_digest(weights)[:32]
    if not folder.is_dir():
        notify(f"distilling the static model from {base.name} (only once; about half a minute on two cores)")
        settings = EncoderSettings.of("cpu", "float32", normalize=False, query_prompt="", document_prompt="")
        with new_folder(folder) as made:
            distil(_bare(base, weights, settings), made)
    return Located(name, folder, base.revision)


def _bare(base: Located, weights: str, settings: EncoderSettings) -> Encoder:
    """Return a base whose vectors keep their lengths."""
    if plain := read_plain(base.folder):
        library = cache(lambda: load_model(base, settings))
        return assemble_plain(replace(plain, normalized=False), base, weights, settings, library)
    model = load_model(base, settings)
    _drop_normalize(model)
    return assemble_encoder(model, base, weights, settings)


def _drop_normalize(model: Any) -> None:
    from sentence_transformers.base.modules import Normalize

    for name, module in list(model.named_children()):
        if isinstance(module, Normalize):
            del model._modules[name]


def load_model(located: Located, settings: EncoderSettings) -> Any:
    """Return the `SentenceTransformer` of a local folder, in the given precision, ready for inference.

    Raises:
        SondeError: It is damaged, or not a bi-encoder.
        MissingExtraError: Sentence-Transformers is not installed.
    """
    try:
        import torch
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise MissingExtraError("Sentence-Transformers", "all", f"the model {located.name}") from error

    precision, device = getattr(torch, settings.compute), settings.devices[0]
    options = {"dtype": precision, "use_safetensors": True}
    failed = f"{located.folder} cannot be loaded as a Sentence-Transformers model"
    with in_one_line(failed, located.folder), quiet(), fitting(located.name, device):
        model = SentenceTransformer(str(located.folder), device=device, local_files_only=True, model_kwargs=options)
        return model.to(precision).eval()


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Silence what transformers and its friends print while loading, and leave their settings as they were."""
    from huggingface_hub.utils.tqdm import are_progress_bars_disabled, enable_progress_bars
    from transformers.utils import logging as verbosity

    bars, hub_bars, disabled = (
        verbosity.is_progress_bar_enabled(),
        not are_progress_bars_disabled(),
        logging.root.manager.disable,
    )
    verbosity.disable_progress_bar()
    logging.disable(max(disabled, logging.WARNING))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(disabled)
        if bars:
            verbosity.enable_progress_bar()
        if hub_bars:
            enable_progress_bars()
