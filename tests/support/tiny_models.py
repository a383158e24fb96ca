"""Builders of tiny models with random weights: every architecture that the encoder must treat like its own library."""

from pathlib import Path
from typing import Any

import torch
import transformers
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense, Normalize, Router, Transformer
from sentence_transformers.sentence_transformer.modules import Pooling, StaticEmbedding
from tiny_families import FAMILIES, SMALL
from tiny_tokenizers import TEXTS, WINDOW, bytelevel, wordpiece
from transformers import AutoModel, PreTrainedModel, PreTrainedTokenizerFast

__all__ = ["ARCHITECTURES", "SMALL", "TEXTS", "WINDOW", "bytelevel", "wordpiece"]

ARCHITECTURES = tuple(FAMILIES)


def build_encoder(architecture: str = "bert") -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """Return a tiny transformer without a head, and its tokenizer; the same weights every time."""
    torch.manual_seed(7)
    family = FAMILIES[architecture]
    config = family.config()
    model = getattr(transformers, family.encoder)(config) if family.encoder else AutoModel.from_config(config)
    spread(model, family.spread)
    return model.eval(), family.tokenizer()


def spread(model: PreTrainedModel, factor: float) -> None:
    """Multiply the matrices."""
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(factor if weight.dim() > 1 else 1)


def save_transformer(
    folder: Path,
    architecture: str = "bert",
    pooling: Any = "mean",
    include_prompt: bool = True,
    normalize: bool = False,
) -> Path:
    """Save a tiny transformer with pooling as a Sentence-Transformers model; the same weights every time."""
    model, tokenizer = build_encoder(architecture)
    model.save_pretrained(folder / "raw")
    tokenizer.save_pretrained(folder / "raw")
    first = Transformer(str(folder / "raw"), max_seq_length=WINDOW)
    second = Pooling(first.get_embedding_dimension(), pooling_mode=pooling, include_prompt=include_prompt)
    modules = [first, second, *([Normalize()] if normalize else [])]
    prompts = {"query": "query: ", "document": "passage: "}
    SentenceTransformer(modules=modules, device="cpu", prompts=prompts).save(
        str(folder / "model"), create_model_card=False
    )
    return folder / "model"


def save_static(folder: Path) -> Path:
    """Save a tiny static model."""
    torch.manual_seed(7)
    module = StaticEmbedding(wordpiece().backend_tokenizer, embedding_dim=16)
    SentenceTransformer(modules=[module], device="cpu").save(str(folder / "static"), create_model_card=False)
    return folder / "static"


def save_router(folder: Path) -> Path:
    """Save a model that takes queries and documents through different modules."""
    torch.manual_seed(7)
    query = StaticEmbedding(wordpiece().backend_tokenizer, embedding_dim=16)
    document = StaticEmbedding(wordpiece().backend_tokenizer, embedding_dim=16)
    router = Router.for_query_document(query_modules=[query], document_modules=[document, Dense(16, 16)])
    SentenceTransformer(modules=[router], device="cpu").save(str(folder / "router"), create_model_card=False)
    return folder / "router"
