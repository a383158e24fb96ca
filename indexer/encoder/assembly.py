"""From a loaded model to an encoder: its tokenizer, its specification, a replica on each device."""

import copy
from collections.abc import Callable
from typing import Any

from ..errors import UsageError, arg
from .encoder import Encoder, cores
from .forward import Replica
from .models import Located
from .settings import EncoderSettings, ModelSpec
from .tokenizer import OwnPreprocessing, StaticTokenizer, TextTokenizer, TransformerTokenizer

STATIC_WINDOW = 512
UNLIMITED_WINDOW = 512
"""Tokens of one text for models that set no limit of their own."""
SMALLEST_WINDOW = 8
MOST_WORKERS = 16
"""Workers on a CPU; more would wait for each other's Python."""
BATCH_TOKENS = {"cpu": 2_048, "mps": 8_192, "cuda": 65_536}
STATIC_BATCH_TOKENS = 1_000_000


def assemble_encoder(model: Any, located: Located, digest: str, settings: EncoderSettings) -> Encoder:
    """Put an encoder together from a `SentenceTransformer`.

    Raises:
        UsageError: A setting does not fit the model.
    """
    prompts = _prompts(model, settings)
    tokenizer = _tokenizer(model, settings, prompts)
    static = isinstance(tokenizer, StaticTokenizer)
    if static and settings.dtype == "int8":
        raise UsageError(f"{located.name} is a static model, which dtype int8 does not make faster: use float32")
    spec = ModelSpec(
        name=located.name,
        revision=located.revision,
        digest=digest,
        dimension=_dimension(model, settings.truncate_dim),
        max_tokens=tokenizer.window,
        query_prompt=prompts[1],
        document_prompt=prompts[0],
        normalize=settings.normalize,
        dtype=settings.dtype,
        truncate_dim=settings.truncate_dim,
        similarity="dot" if not settings.normalize and model.similarity_fn_name == "dot" else "cosine",
        kind="static" if static else "transformer",
    )
    replicas = [
        Replica(each, tokenizer, device, settings.truncate_dim, settings.normalize)
        for each, device in _copies(model, settings.devices)
    ]
    kind = settings.devices[0].partition(":")[0]
    return Encoder(spec, tokenizer, replicas, STATIC_BATCH_TOKENS if static else BATCH_TOKENS[kind])


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

    model, tokenizer = encoder.replicas[0].model, encoder.tokenizer
    if not isinstance(tokenizer, TransformerTokenizer):
        raise UsageError(
            f"{encoder.spec.name} is no plain transformer, so it has no int8 form: use {arg('dtype')} float32"
        )
    file = quantized_file(model[0], tokenizer, encoder.spec.digest, notify, per_channel)
    loss = remembered_loss(file)
    exact = None if loss else encoder.encode_texts(SAMPLE)
    replacement = OnnxTransformer(file, model[0].module_output_name)
    for replica in encoder.replicas:
        replica.model[0] = replacement
    encoder.loss = loss if exact is None else measure_loss(file, exact, encoder.encode_texts(SAMPLE))
    notify(f"int8: the vectors' cosine to float32's is {encoder.loss} over {len(SAMPLE)} sample sentences")


def _prompts(model: Any, settings: EncoderSettings) -> tuple[str, str]:
    """Return the prompts of documents and of queries: as given, else as the model names them."""
    document, query = settings.document_prompt, settings.query_prompt
    if document is None:
        document = next(filter(None, (model.prompts.get(name) for name in ("document", "passage", "corpus"))), "")
    return document, (model.prompts.get("query") or "") if query is None else query


def _tokenizer(model: Any, settings: EncoderSettings, prompts: tuple[str, str]) -> TextTokenizer:
    from sentence_transformers.base.modules import Transformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    first = model[0]
    if isinstance(first, StaticEmbedding):
        return StaticTokenizer(first, _window(STATIC_WINDOW, settings.max_tokens), prompts)
    window = _window(_limit(model), settings.max_tokens)
    if isinstance(first, Transformer):
        # The model's own preprocessing cuts there too, where it is used.
        first.max_seq_length = window
        if _takes_ids(first):
            return TransformerTokenizer(first, window, prompts)
    return OwnPreprocessing(model, window, prompts)


def _takes_ids(module: Any) -> bool:
    """Whether the module does nothing to plain text but tokenise it with a fast tokenizer."""
    plain = "text" in module.modality_config and "message" not in module.modality_config
    fast = getattr(module.tokenizer, "is_fast", False) and module.tokenizer is module.processor
    return plain and fast and module.query_expansion is None and not module.can_flatten_inputs


def _limit(model: Any) -> int:
    """Return the model's window; where it states none, what its position embeddings hold, else 512."""
    stated = model.max_seq_length
    if stated is not None and stated < 1_000_000:
        return int(stated)
    return UNLIMITED_WINDOW


def _window(limit: int, wanted: int | None) -> int:
    if wanted is not None and not SMALLEST_WINDOW <= wanted <= limit:
        raise UsageError(f"{arg('max_tokens')} {wanted} does not fit the model: give {SMALLEST_WINDOW} to {limit}")
    return wanted or limit


def _dimension(model: Any, truncate: int | None) -> int:
    full = model.get_embedding_dimension()
    if truncate is not None and not 1 <= truncate <= full:
        raise UsageError(f"{arg('truncate_dim')} {truncate} does not fit the model: give 1 to {full}")
    return truncate or full
