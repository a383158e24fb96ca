"""Small tokenizers of every kind; their vocabularies are made by rules, since training breaks ties by chance."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

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
STEM = 4
"""Longer words are two pieces: their first letters, and the rest."""


def wordpiece() -> PreTrainedTokenizerFast:
    """BERT's kind: [CLS] text [SEP], padded on the right."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer = Tokenizer(models.WordPiece({}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    words = _words(tokenizer)
    letters = sorted({letter for word in words for letter in word})
    pieces = [*special, *letters, *(f"##{letter}" for letter in letters)]
    pieces += [piece for word in words for piece in ([word[:STEM], f"##{word[STEM:]}"] if word[STEM:] else [word])]
    tokenizer.model = models.WordPiece(_numbered(pieces), unk_token="[UNK]")
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
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = _merges(_words(tokenizer), VOCABULARY - len(special) - len(alphabet))
    vocabulary = _numbered([*special, *alphabet, *(one + two for one, two in merges)])
    tokenizer.model = models.BPE(vocabulary, merges)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s>:0 $A:0 </s>:0 </s>:0 $B:0 </s>:0", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    names = {"pad_token": "<pad>", "unk_token": "<unk>", "cls_token": "<s>", "sep_token": "</s>", "eos_token": "</s>"}
    ids = ["input_ids", "attention_mask"]
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, model_max_length=WINDOW, model_input_names=ids, bos_token="<s>", **names
    )


def unigram(
    template: str, pair: str | None = None, side: str = "right", types: dict[str, int] | None = None
) -> PreTrainedTokenizerFast:
    """SentencePiece's kind, as T5, ALBERT, DeBERTa and XLNet use it, with their own special tokens around the text."""
    special = ["<pad>", "</s>", "<unk>", "<sep>", "<cls>"]
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    words = _words(tokenizer)
    letters = dict.fromkeys(sorted({letter for word in words for letter in word}), -9.0)
    whole = {word: -4.0 - place / 100 for place, word in enumerate(words) if len(word) > 1 and place % 3}
    halves = {word[:STEM]: -5.0 - place / 100 for place, word in enumerate(words) if len(word) > STEM}
    scores = dict.fromkeys(special, 0.0) | letters | halves | whole
    tokenizer.model = models.Unigram(list(scores.items()), special.index("<unk>"), False)
    numbers = [(token, number) for number, token in enumerate(special)]
    options = {"pair": pair} if pair else {}
    tokenizer.post_processor = processors.TemplateProcessing(single=template, special_tokens=numbers, **options)
    names = ["input_ids", "attention_mask", *(["token_type_ids"] if types is not None else [])]
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


def _words(tokenizer: Tokenizer) -> list[str]:
    """Return the distinct words of the texts, as the tokenizer cuts them, the most frequent first, then by letters."""
    counts: Counter[str] = Counter()
    for text in TEXTS:
        plain = tokenizer.normalizer.normalize_str(text) if tokenizer.normalizer else text
        counts.update(word for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(plain))  # type: ignore[union-attr]
    return sorted(counts, key=lambda word: (-counts[word], word))


def _numbered(pieces: Iterable[str]) -> dict[str, int]:
    return {piece: number for number, piece in enumerate(dict.fromkeys(pieces)) if piece}


def _merges(words: Sequence[str], count: int) -> list[tuple[str, str]]:
    """Return merges of byte-pair encoding (Sennrich, Haddow and Birch, ACL 2016), ties in the order of the letters."""
    split, merges = [list(word) for word in words], []
    for _ in range(count):
        pairs = Counter(pair for word in split for pair in pairwise(word))
        if not pairs:
            break
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        merges.append(best)
        split = [_joined(word, best) for word in split]
    return merges


def _joined(word: list[str], pair: tuple[str, str]) -> list[str]:
    found: list[str] = []
    for piece in word:
        if found and (found[-1], piece) == pair:
            found[-1] += piece
        else:
            found.append(piece)
    return found
