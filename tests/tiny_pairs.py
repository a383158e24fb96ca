"""Tiny sequence-classification models with random weights: the kinds of tokenizer and model that read pairs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from tiny_models import SMALL, bytelevel, unigram, wordpiece
from tokenizers import processors
from transformers import (
    BartConfig,
    BartForSequenceClassification,
    BertConfig,
    BertForSequenceClassification,
    DebertaV2Config,
    DebertaV2ForSequenceClassification,
    DistilBertConfig,
    DistilBertForSequenceClassification,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaForSequenceClassification,
)

NLI = {0: "CONTRADICTION", 1: "neutral", 2: "Entailment"}
Built = tuple[PreTrainedModel, PreTrainedTokenizerFast]


def labels(names: dict[int, str]) -> dict[str, Any]:
    return {"num_labels": len(names), "id2label": names, "label2id": {name: n for n, name in names.items()}}


def roberta_pairs() -> PreTrainedTokenizerFast:
    """<s> first </s></s> second </s>."""
    tokenizer = bytelevel()
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s>:0 $A:0 </s>:0 </s>:0 $B:0 </s>:0", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    return tokenizer


def bert(names: dict[int, str]) -> Built:
    return BertForSequenceClassification(BertConfig(**SMALL, **labels(names))), wordpiece()


def distilbert(names: dict[int, str]) -> Built:
    config = DistilBertConfig(
        vocab_size=600, dim=32, n_layers=2, n_heads=2, hidden_dim=64, max_position_embeddings=64, **labels(names)
    )
    return DistilBertForSequenceClassification(config), wordpiece()


def roberta(names: dict[int, str]) -> Built:
    config = RobertaConfig(**SMALL, pad_token_id=1, **labels(names))
    return RobertaForSequenceClassification(config), roberta_pairs()


def bart(names: dict[int, str]) -> Built:
    config = BartConfig(
        vocab_size=600, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=64, decoder_ffn_dim=64, max_position_embeddings=64,
        pad_token_id=1, bos_token_id=0, eos_token_id=2, decoder_start_token_id=2, forced_eos_token_id=2,
        **labels(names),
    )  # fmt: skip
    return BartForSequenceClassification(config), roberta_pairs()


def deberta(names: dict[int, str]) -> Built:
    """SentencePiece's kind of tokenizer, relative positions."""
    config = DebertaV2Config(
        **SMALL, relative_attention=True, position_biased_input=False, pos_att_type=["p2c", "c2p"], type_vocab_size=0,
        **labels(names),
    )  # fmt: skip
    tokenizer = unigram("<cls>:0 $A:0 <sep>:0")
    ids = tokenizer.get_vocab()
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="<cls>:0 $A:0 <sep>:0", pair="<cls>:0 $A:0 <sep>:0 $B:1 <sep>:1",
        special_tokens=[("<cls>", ids["<cls>"]), ("<sep>", ids["<sep>"])],
    )  # fmt: skip
    return DebertaV2ForSequenceClassification(config), tokenizer


KINDS: dict[str, Callable[[dict[int, str]], Built]] = {
    build.__name__: build for build in (bert, distilbert, roberta, bart, deberta)
}


def build_pairs(kind: str = "bert", names: dict[int, str] | None = None) -> Built:
    """Return a tiny model and its tokenizer: the same weights every time, but a vocabulary that is trained anew."""
    torch.manual_seed(11)
    model, tokenizer = KINDS[kind](names or NLI)
    with torch.no_grad():
        for weight in model.parameters():  # initial weights are so small that all texts would look alike
            weight.mul_(4 if weight.dim() > 1 else 1)
    return model.eval(), tokenizer


def save_pairs(folder: Path, kind: str = "bert", names: dict[int, str] | None = None) -> Path:
    """Save a tiny model as a folder."""
    model, tokenizer = build_pairs(kind, names)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
