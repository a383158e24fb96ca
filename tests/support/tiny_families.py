"""Every family of encoders, tiny: its configuration and the kind of tokenizer that its models come with."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tiny_tokenizers import bytelevel, unigram, wordpiece
from transformers import (
    AlbertConfig,
    BartConfig,
    BertConfig,
    DebertaConfig,
    DebertaV2Config,
    DistilBertConfig,
    ElectraConfig,
    ModernBertConfig,
    MPNetConfig,
    PretrainedConfig,
    PreTrainedTokenizerFast,
    RobertaConfig,
    T5Config,
    XLMRobertaConfig,
    XLNetConfig,
)

SMALL: dict[str, Any] = {
    "vocab_size": 600,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
}
IDS: dict[str, Any] = {"pad_token_id": 0, "bos_token_id": 2, "cls_token_id": 2, "sep_token_id": 3, "eos_token_id": 3}
RELATIVE: dict[str, Any] = {
    "relative_attention": True,
    "position_biased_input": False,
    "pos_att_type": ["p2c", "c2p"],
    "type_vocab_size": 0,
}
BART: dict[str, Any] = {
    "vocab_size": 600, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 2,
    "decoder_attention_heads": 2, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "max_position_embeddings": 64,
    "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 2, "forced_eos_token_id": 2,
}  # fmt: skip
T5: dict[str, Any] = {
    "vocab_size": 600, "d_model": 32, "d_kv": 16, "d_ff": 64, "num_layers": 2, "num_heads": 2, "dropout_rate": 0.0,
    "pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0,
}  # fmt: skip


@dataclass(frozen=True)
class Family:
    """What makes a tiny model.

    Attributes:
        config: Makes the configuration of its names and number of labels, which a bi-encoder ignores.
        tokenizer: Makes the tokenizer.
        encoder: The class in transformers that makes vectors, where AutoModel would take another.
        spread: What the matrices are multiplied by: initial weights are so small that all texts would look alike.
    """

    config: Callable[..., PretrainedConfig]
    tokenizer: Callable[[], PreTrainedTokenizerFast]
    encoder: str | None = None
    spread: float = 4.0


def _of(kind: type[PretrainedConfig], **fixed: Any) -> Callable[..., PretrainedConfig]:
    return lambda **labels: kind(**fixed, **labels)


def sentencepiece() -> PreTrainedTokenizerFast:
    """ALBERT's and DeBERTa's: <cls> first <sep> second <sep>."""
    return unigram("<cls>:0 $A:0 <sep>:0", "<cls>:0 $A:0 <sep>:0 $B:1 <sep>:1", types={})


def at_the_end() -> PreTrainedTokenizerFast:
    """T5's: first </s> second </s>."""
    return unigram("$A </s>", "$A:0 </s>:0 $B:0 </s>:0")


def on_the_left() -> PreTrainedTokenizerFast:
    """XLNet's: padding on the left, two special tokens at the end, and a token type of their own."""
    pair = "$A:0 <sep>:0 $B:1 <sep>:1 <cls>:2"
    return unigram("$A:0 <sep>:0 <cls>:2", pair, "left", {"pad_token_type_id": 3})


DISTIL: dict[str, Any] = {"dim": 32, "n_layers": 2, "n_heads": 2, "hidden_dim": 64}
XLNET: dict[str, Any] = {"d_model": 32, "n_layer": 2, "n_head": 2, "d_inner": 64}

FAMILIES: dict[str, Family] = {
    "bert": Family(_of(BertConfig, **SMALL), wordpiece),  # token types, absolute positions
    "distilbert": Family(
        _of(DistilBertConfig, vocab_size=600, max_position_embeddings=64, **DISTIL), wordpiece
    ),  # no token types
    "electra": Family(_of(ElectraConfig, embedding_size=16, **SMALL), wordpiece),  # narrow embeddings
    "modernbert": Family(
        _of(ModernBertConfig, **SMALL, **IDS, local_attention=16), wordpiece
    ),  # rotary positions, local and global attention
    "roberta": Family(_of(RobertaConfig, **SMALL, pad_token_id=1), bytelevel),  # positions after the padding index
    "xlm_roberta": Family(_of(XLMRobertaConfig, **SMALL, pad_token_id=1), bytelevel),  # the same in XLM-R's class
    "mpnet": Family(_of(MPNetConfig, **SMALL, pad_token_id=1), bytelevel),  # relative bias beside positions
    "bart": Family(_of(BartConfig, **BART), bytelevel),  # encoder and decoder
    "albert": Family(_of(AlbertConfig, embedding_size=16, **SMALL), sentencepiece),  # layers that share weights
    "deberta": Family(
        _of(DebertaConfig, **SMALL, **RELATIVE | {"type_vocab_size": 2}), sentencepiece
    ),  # relative positions
    "deberta_v2": Family(_of(DebertaV2Config, **SMALL, **RELATIVE), sentencepiece),  # the same, of version 2 and 3
    "t5": Family(_of(T5Config, **T5), at_the_end, "T5EncoderModel", 1.5),  # no positions of its own
    "xlnet": Family(_of(XLNetConfig, vocab_size=600, pad_token_id=0, **XLNET), on_the_left),
}
