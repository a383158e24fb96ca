"""From a loaded model to an encoder: its tokenizer, its specification, a replica on each device."""

import copy
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from ..errors import SondeError, UsageError, arg, as_text
from ..progress import silent
from .encoder import Encoder
from .forward import Notify, Replica
from .model_folder import growth
from .models import Located
from .onnx_replica import BertSession, OnnxReplica
from .packed_replica import CudaGraphs, PackedReplica
from .plain import PlainModel, bert_weights
from .settings import EncoderSettings, ModelSpec, cores
from .static import PlainStatic, StaticReplica
from .tokenizer import OwnPreprocessing, PlainTokenizer, StaticTokenizer, TextTokenizer, TransformerTokenizer

STATIC_WINDOW = 512
UNLIMITED_WINDOW = 512
"""Tokens of one text for models that set no limit of their own."""
SMALLEST_WINDOW = 8
MOST_WORKERS = 16
"""Workers on a CPU; more would wait for each other's Python."""
BATCH_TOKENS = {"cpu": 2_048, "mps": 8_192, "cuda": 65_536}
STATIC_BATCH_TOKENS = 1_000_000
ONNX_BATCH_TOKENS = 512
"""A batch whose numbers stay in the processor's cache is faster."""
PACKED_BATCH_TOKENS = 16_384
"""The widest activations of MiniLM take 50 MB, as much as the cache of an H100 or H200 holds."""


def assemble_encoder(
    model: Any, located: Located, digest: str, settings: EncoderSettings, notify: Notify = silent
) -> Encoder:
    """Put an encoder together from a `SentenceTransformer`.

    Raises:
        UsageError: A setting does not fit the model.
    """
    prompts = _prompts(model.prompts, settings)
    tokenizer = _tokenizer(model, settings, prompts)
    static = isinstance(tokenizer, StaticTokenizer)
    if static:
        _check_static(located, settings)
    dimension = _dimension(model.get_embedding_dimension(), settings.truncate_dim)
    spec = _spec(located, digest, settings, tokenizer, dimension, model.similarity_fn_name)
    replicas = [
        Replica(each, tokenizer, device, settings.truncate_dim, settings.normalize, notify)
        for each, device in _copies(model, settings.devices)
    ]
    kind = settings.devices[0].partition(":")[0]
    usual = model.prompts.get(model.default_prompt_name or "") or ""
    tokens = STATIC_BATCH_TOKENS if static else BATCH_TOKENS[kind]
    return Encoder(spec, tokenizer, replicas, tokens, library=lambda: model, usual_prompt=usual)


def assemble_static(
    model: PlainStatic, located: Located, digest: str, settings: EncoderSettings, library: Callable[[], Any]
) -> Encoder:
    """Put an encoder together from a static model, which runs in NumPy; `library` loads it with torch.

    Raises:
        UsageError: A setting does not fit the model.
    """
    _check_static(located, settings)
    window = _window(STATIC_WINDOW, settings.max_tokens)
    tokenizer = StaticTokenizer.of(model.folder, window, _prompts(model.usual.prompts, settings))
    dimension = _dimension(model.table.shape[1], settings.truncate_dim)
    spec = _spec(located, digest, settings, tokenizer, dimension, model.usual.similarity)
    replica = StaticReplica(model, tokenizer, settings.truncate_dim, settings.normalize)
    workers = [replica] * min(cores(), MOST_WORKERS)
    return Encoder(spec, tokenizer, workers, STATIC_BATCH_TOKENS, library=library, usual_prompt=model.usual.prompt)


def _check_static(located: Located, settings: EncoderSettings) -> None:
    if settings.dtype == "int8":
        raise UsageError(f"{located.name} is a static model, and dtype int8 does not make it faster: use float32")


def assemble_plain(
    model: PlainModel, located: Located, digest: str, settings: EncoderSettings, library: Callable[[], Any]
) -> Encoder:
    """Put an encoder together from a plain model, which runs in ONNX Runtime; `library` loads it with torch.

    Raises:
        UsageError: A setting does not fit the model.
    """
    tokenizer, spec = _plain_parts(model, located, digest, settings)
    weights = partial(bert_weights, model.folder, model.shape)
    many, one = (BertSession(model.shape, weights, threads) for threads in (1, cores()))
    replica, alone = (
        OnnxReplica(model, each, tokenizer, settings.truncate_dim, settings.normalize) for each in (many, one)
    )
    workers = min(cores(), MOST_WORKERS)
    return Encoder(
        spec,
        tokenizer,
        [replica] * workers,
        ONNX_BATCH_TOKENS,
        library=library,
        usual_prompt=model.usual.prompt,
        alone=alone if workers > 1 else None,
    )


def assemble_packed(
    model: PlainModel,
    located: Located,
    digest: str,
    settings: EncoderSettings,
    library: Callable[[], Any],
    notify: Notify = silent,
) -> Encoder:
    """Put an encoder together from a plain model, which runs in torch without padding, one replica on each device.

    Raises:
        UsageError: A setting does not fit the model.
    """
    tokenizer, spec = _plain_parts(model, located, digest, settings)
    options = (settings.truncate_dim, settings.normalize)
    replicas = [
        PackedReplica(
            model, tokenizer, device, settings.compute, *options, CudaGraphs() if device != "cpu" else None, notify
        )
        for device in settings.devices
    ]
    return Encoder(spec, tokenizer, replicas, PACKED_BATCH_TOKENS, library=library, usual_prompt=model.usual.prompt)


def _plain_parts(
    model: PlainModel, located: Located, digest: str, settings: EncoderSettings
) -> tuple[PlainTokenizer, ModelSpec]:
    window = _window(model.window, settings.max_tokens)
    tokenizer = PlainTokenizer(model.folder, window, _prompts(model.usual.prompts, settings))
    dimension = _dimension(model.shape.hidden, settings.truncate_dim)
    return tokenizer, _spec(located, digest, settings, tokenizer, dimension, model.usual.similarity)


def _spec(
    located: Located,
    digest: str,
    settings: EncoderSettings,
    tokenizer: TextTokenizer,
    dimension: int,
    similarity: str | None,
) -> ModelSpec:
    return ModelSpec(
        name=located.name,
        revision=located.revision,
        digest=digest,
        dimension=dimension,
        max_tokens=tokenizer.window,
        query_prompt=tokenizer.prompts[1],
        document_prompt=tokenizer.prompts[0],
        normalize=settings.normalize,
        dtype=settings.dtype,
        truncate_dim=settings.truncate_dim,
        similarity="dot" if not settings.normalize and similarity == "dot" else "cosine",
        kind="static" if isinstance(tokenizer, StaticTokenizer) else "transformer",
    )


def _copies(model: Any, devices: list[str]) -> list[tuple[Any, str]]:
    """Return a model for each worker: one worker per device, or as many as there are cores sharing one model."""
    if devices == ["cpu"]:
        return [(model, "cpu")] * min(cores(), MOST_WORKERS)
    return [(model, devices[0]), *((copy.deepcopy(model).to(device), device) for device in devices[1:])]


def quantize(encoder: Encoder, notify: Callable[[str], object], per_channel: bool = True) -> None:
    """Put the int8 transformer in the place of the float32 one; measure what that loses when it is made.

    With `per_channel`, each output channel has a scale of its own, else each matrix.

    Raises:
        UsageError: The model is not run from token ids.
        SondeError: It cannot be exported.
        MissingExtraError: The extra "int8" is not installed.
    """
    from .int8 import SAMPLE, OnnxTransformer, measure_loss, quantized_file, remembered_loss

    model, tokenizer = encoder.library(), encoder.tokenizer
    if not isinstance(tokenizer, TransformerTokenizer):
        raise UsageError(
            f"{encoder.spec.name} is not a plain transformer, so int8 is not available: use {arg('dtype')} float32"
        )
    file = quantized_file(model[0], tokenizer, encoder.spec.digest, notify, per_channel)
    loss = remembered_loss(file)
    exact = None if loss else encoder.encode_texts(SAMPLE)
    model[0] = OnnxTransformer(file, model[0].module_output_name)  # on a CPU, all replicas share the model
    encoder.loss = loss if exact is None else measure_loss(file, exact, encoder.encode_texts(SAMPLE))
    notify(f"int8: the vectors' cosine to float32's is {encoder.loss} over {len(SAMPLE)} sample sentences")


def _prompts(known: Mapping[str, str], settings: EncoderSettings) -> tuple[str, str]:
    """Return the prompts of documents and of queries: as given, else as the model names them."""
    document, query = settings.document_prompt, settings.query_prompt
    if document is None:
        document = next(filter(None, (known.get(name) for name in ("document", "passage", "corpus"))), "")
    query = (known.get("query") or "") if query is None else query
    try:
        return as_text(document, "prompt"), as_text(query, "prompt")
    except UsageError as error:
        error.prefix("the model's prompt")
        raise


def _tokenizer(model: Any, settings: EncoderSettings, prompts: tuple[str, str]) -> TextTokenizer:
    from sentence_transformers.base.modules import Transformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    first = model[0]
    if isinstance(first, StaticEmbedding):
        return StaticTokenizer.of_module(first, _window(STATIC_WINDOW, settings.max_tokens), prompts)
    window = _window(_limit(model), settings.max_tokens)
    if isinstance(first, Transformer):
        # The model's own preprocessing cuts there too, where it is used.
        first.max_seq_length = window
        if _takes_ids(first):
            return TransformerTokenizer(first, window, prompts)
        if backend := getattr(first.tokenizer, "backend_tokenizer", None):
            growth(backend)
    return OwnPreprocessing(model, window, prompts)


def _takes_ids(module: Any) -> bool:
    """Whether the module does nothing to plain text but tokenise it with a fast tokenizer."""
    plain = "text" in module.modality_config and "message" not in module.modality_config
    fast = getattr(module.tokenizer, "is_fast", False) and module.tokenizer is module.processor
    return plain and fast and module.query_expansion is None and not module.can_flatten_inputs


def _limit(model: Any) -> int:
    """Return the model's window; where it states none, what its position embeddings hold, else 512."""
    stated = model.max_seq_length
    if not isinstance(stated, int | float | None):
        raise SondeError(f"the model's max_seq_length is {stated!r}, which is not a number: use another model")
    if stated is not None and stated < 1_000_000:
        return int(stated)
    return UNLIMITED_WINDOW


def _window(limit: int, wanted: int | None) -> int:
    if wanted is not None and not SMALLEST_WINDOW <= wanted <= limit:
        raise UsageError(f"{arg('max_tokens')} {wanted} does not fit the model: give {SMALLEST_WINDOW} to {limit}")
    return wanted or limit


def _dimension(full: int, truncate: int | None) -> int:
    if truncate is not None and not 1 <= truncate <= full:
        raise UsageError(f"{arg('truncate_dim')} {truncate} does not fit the model: give 1 to {full}")
    return truncate or full
