"""Loading a model silently, offline where it is local, and with everything about it written down."""

import contextlib
import copy
import logging
import warnings
from collections.abc import Callable, Iterator
from typing import Any, TypedDict, Unpack

from ..errors import SondeError, UsageError
from .devices import resolve_devices, resolve_dtype
from .encoder import Encoder
from .models import DEFAULT_MODEL, STATIC_MODEL, Located, canonical_name, locate
from .opaque import OpaqueTokenizer
from .replica import Replica
from .spec import ModelSpec
from .static import distilled
from .tokenizer import StaticTokenizer, TransformerTokenizer
from .tokens import TextTokenizer
from .weights import weights_digest

Notify = Callable[[str], object]
STATIC_WINDOW = 512
UNLIMITED_WINDOW = 512
"""Tokens of one text for models that set no limit of their own."""
BATCH_TOKENS = {"cpu": 2_048, "mps": 8_192, "cuda": 65_536}
STATIC_BATCH_TOKENS = 1_000_000


class Options(TypedDict, total=False):
    """The settings of a model which change its vectors; see `load_encoder`."""

    truncate_dim: int | None
    query_prompt: str | None
    document_prompt: str | None
    normalize: bool
    max_tokens: int | None


def load_encoder(
    name: str = DEFAULT_MODEL,
    *,
    device: str = "auto",
    dtype: str = "auto",
    notify: Notify = lambda message: None,
    **options: Unpack[Options],
) -> Encoder:
    """Load a bi-encoder.

    Args:
        name: "all-MiniLM-L6-v2", "static" (or "static:BASE"), the folder of a Sentence-Transformers model, or the
            hub's "org/name". Only the last may reach the network, says so first, and only if it is not cached.
        device: "auto", "cpu", "cuda", "cuda:1", "mps", or a list: "cuda:0,cuda:1".
        dtype: "auto" (float16 on an NVIDIA GPU, else float32), "float32", "bfloat16", "float16", or "int8" (CPU).
        notify: Receives sentences that the user should read: a download, a distillation.
        options: `truncate_dim` (Matryoshka: keep the first dimensions), `query_prompt` and `document_prompt` (in place
            of the model's), `normalize` (default True: vectors of length 1), `max_tokens` (a smaller window).

    Raises:
        UsageError: The name, the device or an option cannot be right.
        SondeError: The model cannot be had, or is damaged.
    """
    devices = resolve_devices("cpu" if dtype == "int8" and device == "auto" else device)
    return _load(canonical_name(name), None, devices, resolve_dtype(dtype, devices[0]), None, notify, options)


def load_encoder_for(spec: ModelSpec, *, device: str = "auto", notify: Notify = lambda message: None) -> Encoder:
    """Load the model that a collection was built with, under the same settings.

    Half precision is computed in float32 on a CPU: slower to build, but equal to about three decimals and faster.

    Raises:
        SondeError: The model is gone, or its weights are others.
    """
    devices = resolve_devices("cpu" if spec.dtype == "int8" and device == "auto" else device)
    dtype = resolve_dtype(spec.dtype, devices[0])
    options = Options(
        truncate_dim=spec.truncate_dim,
        query_prompt=spec.query_prompt,
        document_prompt=spec.document_prompt,
        normalize=spec.normalize,
        max_tokens=spec.max_tokens,
    )
    return _load(spec.name, spec, devices, dtype, spec.revision, notify, options)


def _load(
    name: str,
    wanted: ModelSpec | None,
    devices: list[str],
    dtype: str,
    revision: str | None,
    notify: Notify,
    options: Options,
) -> Encoder:
    base, _, of = name.partition(":")
    static = base == STATIC_MODEL
    located = locate((of or DEFAULT_MODEL) if static else name, notify, revision)
    located, digest = distilled(located, name, notify) if static else (located, weights_digest(located.folder))
    if wanted and digest != wanted.digest:
        raise SondeError(
            f"the collection was built with {name} of SHA-256 {wanted.digest[:12]}…, but {located.folder} has "
            f"{digest[:12]}…: put the old weights back, or index again into a new collection"
        )
    model = load_model(located, devices[0], "float32" if devices[0] == "cpu" else dtype)
    return _assemble(model, located, digest, devices, dtype, wanted, options)


def load_model(located: Located, device: str, dtype: str) -> Any:
    """Return the `SentenceTransformer` of a local folder, in the given precision, ready for inference.

    Raises:
        SondeError: It is damaged, or not a bi-encoder.
    """
    import torch
    from sentence_transformers import SentenceTransformer

    precision = {"dtype": getattr(torch, dtype), "use_safetensors": True}
    try:
        with quiet():
            model = SentenceTransformer(
                str(located.folder), device=device, local_files_only=True, model_kwargs=precision
            )
            return model.to(getattr(torch, dtype)).eval()
    except (ImportError, torch.OutOfMemoryError):
        raise
    except Exception as error:  # a damaged folder fails in as many ways as there are files in it
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise SondeError(f"{located.folder} cannot be loaded as a Sentence-Transformers model: {reason}") from error


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Silence what transformers and its friends print while loading, and leave their settings as they were."""
    from huggingface_hub.utils.tqdm import are_progress_bars_disabled, enable_progress_bars
    from transformers.utils import logging as verbosity

    level, bars, hub_bars = verbosity.get_verbosity(), verbosity.is_progress_bar_enabled(), are_progress_bars_disabled()
    logger = logging.getLogger("sentence_transformers")
    own_level = logger.level
    verbosity.set_verbosity_error()
    verbosity.disable_progress_bar()
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(own_level)
        verbosity.set_verbosity(level)
        if bars:
            verbosity.enable_progress_bar()
        if not hub_bars:
            enable_progress_bars()


def _assemble(
    model: Any,
    located: Located,
    digest: str,
    devices: list[str],
    dtype: str,
    wanted: ModelSpec | None,
    options: Options,
) -> Encoder:
    """Put an encoder together from a loaded model, with a replica on each device."""
    normalize, truncate = options.get("normalize", True), options.get("truncate_dim")
    prompts = _prompts(model, options)
    tokenizer = _tokenizer(model, _window(model, options.get("max_tokens")), prompts)
    static = isinstance(tokenizer, StaticTokenizer)
    spec = wanted or ModelSpec(
        name=located.name,
        revision=located.revision,
        digest=digest,
        dimension=_dimension(model, truncate),
        max_tokens=tokenizer.window,
        query_prompt=prompts[1],
        document_prompt=prompts[0],
        normalize=normalize,
        dtype="float32" if static else dtype,
        truncate_dim=truncate,
        similarity="dot" if not normalize and model.similarity_fn_name == "dot" else "cosine",
        kind="static" if static else "transformer",
    )
    models = [model, *(copy.deepcopy(model).to(device) for device in devices[1:])]
    pairs = zip(models, devices, strict=True)
    replicas = [Replica(each, tokenizer, device, truncate, normalize) for each, device in pairs]
    budget = STATIC_BATCH_TOKENS if static else BATCH_TOKENS[devices[0].partition(":")[0]]
    return Encoder(spec, tokenizer, replicas, budget)


def _prompts(model: Any, options: Options) -> tuple[str, str]:
    """Return the prompts of documents and of queries: as given, else as the model names them."""
    document, query = options.get("document_prompt"), options.get("query_prompt")
    if document is None:
        document = next(filter(None, (model.prompts.get(name) for name in ("document", "passage", "corpus"))), "")
    return document, (model.prompts.get("query") or "") if query is None else query


def _tokenizer(model: Any, window: int, prompts: tuple[str, str]) -> TextTokenizer:
    from sentence_transformers.base.modules import Transformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    first = model[0]
    if isinstance(first, StaticEmbedding):
        return StaticTokenizer(first, window, prompts)
    if isinstance(first, Transformer) and _takes_ids(first):
        return TransformerTokenizer(first, window, prompts)
    return OpaqueTokenizer(model, window, prompts)


def _takes_ids(module: Any) -> bool:
    """Whether the module does nothing to plain text but tokenise it with a fast tokenizer."""
    plain = "text" in module.modality_config and "message" not in module.modality_config
    fast = getattr(module.tokenizer, "is_fast", False) and module.tokenizer is module.processor
    return plain and fast and module.query_expansion is None and not module.can_flatten_inputs


def _window(model: Any, wanted: int | None) -> int:
    limit = model.max_seq_length
    if isinstance(limit, float) or limit is None or limit > 1_000_000:
        limit = UNLIMITED_WINDOW if wanted is None else wanted
    if wanted is not None and not 8 <= wanted <= limit:
        raise UsageError(f"max_tokens {wanted} does not fit the model: give 8 to {limit}")
    return int(wanted or limit)


def _dimension(model: Any, truncate: int | None) -> int:
    full = model.get_embedding_dimension()
    if truncate is not None and not 1 <= truncate <= full:
        raise UsageError(f"truncate_dim {truncate} does not fit the model: give 1 to {full}")
    return truncate or full
