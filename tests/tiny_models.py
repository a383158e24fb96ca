"""Builders of tiny models with random weights: every architecture that the encoder must treat like its own library."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense, Normalize, Router, Transformer
from sentence_transformers.sentence_transformer.modules import Pooling, StaticEmbedding
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from transformers import (
    BertConfig,
    BertModel,
    DistilBertConfig,
    DistilBertModel,
    ModernBertConfig,
    ModernBertModel,
    MPNetConfig,
    MPNetModel,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaModel,
    T5Config,
    T5EncoderModel,
    XLMRobertaConfig,
    XLMRobertaModel,
    XLNetConfig,
    XLNetModel,
)

TEXTS = [
    "The battery died after a week.",
    "Basil likes sun and water; it does not like frost at all, and neither do tomatoes.",
    "refund",
    "",
    "Quarterly profits rose by eleven per cent, well above what analysts had expected from the company this year.",
    "Ünïcödé, 数字 and 😀 too.",
    "How do I reset my password? " * 12,
]
WINDOW = 48
VOCABULARY = 400


def wordpiece() -> PreTrainedTokenizerFast:
    """BERT's kind: [CLS] text [SEP], padded on the right."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.train_from_iterator(TEXTS, trainers.WordPieceTrainer(vocab_size=VOCABULARY, special_tokens=special))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, mask_token="[MASK]", model_max_length=WINDOW, **names)


def bytelevel() -> PreTrainedTokenizerFast:
    """RoBERTa's kind: byte-level pieces, <s> text </s>."""
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    tokenizer.train_from_iterator(TEXTS, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    names = {"pad_token": "<pad>", "unk_token": "<unk>", "cls_token": "<s>", "sep_token": "</s>", "eos_token": "</s>"}
    ids = ["input_ids", "attention_mask"]
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, model_max_length=WINDOW, model_input_names=ids, bos_token="<s>", **names
    )


def unigram(template: str, side: str = "right", types: dict[str, int] | None = None) -> PreTrainedTokenizerFast:
    """SentencePiece's kind, as T5 and XLNet use it, with special tokens after the text only."""
    special = ["<pad>", "</s>", "<unk>", "<sep>", "<cls>"]
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=VOCABULARY, special_tokens=special, unk_token="<unk>")
    tokenizer.train_from_iterator(TEXTS, trainer)
    numbers = [(token, number) for number, token in enumerate(special)]
    tokenizer.post_processor = processors.TemplateProcessing(single=template, special_tokens=numbers)
    names = ["input_ids", "attention_mask", *(["token_type_ids"] if types else [])]
    tokens = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>", "sep_token": "<sep>"}
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=WINDOW,
        padding_side=side,
        model_input_names=names,
        cls_token="<cls>",
        **(types or {}),
        **tokens,
    )


SMALL: dict[str, Any] = {
    "vocab_size": 600,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
}


def bert() -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """Token types, absolute positions."""
    return BertModel(BertConfig(**SMALL)), wordpiece()


def roberta() -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """Positions that start after the padding index."""
    return RobertaModel(RobertaConfig(**SMALL, pad_token_id=1)), bytelevel()


def xlm_roberta() -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """The same in XLM-R's class."""
    return XLMRobertaModel(XLMRobertaConfig(**SMALL, pad_token_id=1)), bytelevel()


def mpnet() -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """Relative attention bias beside positions."""
    return MPNetModel(MPNetConfig(**SMALL, pad_token_id=1)), bytelevel()


def distilbert() -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """No token types."""
    config = DistilBertConfig(vocab_size=600, dim=32, n_layers=2, n_heads=2, hidden_dim=64, max_position_embeddings=64)
    return DistilBertModel(config), wordpiece()


def modernbert() -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """Rotary positions, local and global attention."""
    ids: dict[str, Any] = {
        "pad_token_id": 0,
        "bos_token_id": 2,
        "cls_token_id": 2,
        "sep_token_id": 3,
        "eos_token_id": 3,
    }
    config = ModernBertConfig(**SMALL, **ids, local_attention=16)
    return ModernBertModel(config), wordpiece()


def t5() -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """An encoder without positions of its own, one special token at the end."""
    config = T5Config(vocab_size=600, d_model=32, d_kv=16, d_ff=64, num_layers=2, num_heads=2, dropout_rate=0.0)
    return T5EncoderModel(config), unigram("$A </s>")


def xlnet() -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """Padding on the left, two special tokens at the end, and a token type of their own."""
    config = XLNetConfig(vocab_size=600, d_model=32, n_layer=2, n_head=2, d_inner=64, pad_token_id=0)
    return XLNetModel(config), unigram("$A:0 <sep>:0 <cls>:2", "left", {"pad_token_type_id": 3})


ARCHITECTURES: dict[str, Callable[[], tuple[PreTrainedModel, PreTrainedTokenizerFast]]] = {
    build.__name__: build for build in (bert, roberta, xlm_roberta, mpnet, distilbert, modernbert, t5, xlnet)
}


def save_transformer(
    folder: Path,
    architecture: str = "bert",
    pooling: Any = "mean",
    include_prompt: bool = True,
    normalize: bool = False,
) -> Path:
    """Save a tiny transformer with pooling as a Sentence-Transformers model; the same weights every time."""
    torch.manual_seed(7)
    model, tokenizer = ARCHITECTURES[architecture]()
    with torch.no_grad():
        for weight in model.parameters():  # initial weights are so small that all texts would look alike
            weight.mul_(4 if weight.dim() > 1 else 1)
    model.eval().save_pretrained(folder / "raw")
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
