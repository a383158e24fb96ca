"""Ids by word are the tokenizer's own; a memo of words asks once for a word, and forgets."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_models import TEXTS, bytelevel, save_transformer, wordpiece
from tokenizers import AddedToken, Tokenizer
from tokenizers.normalizers import BertNormalizer

from sonde.indexer import memo
from sonde.indexer.encoder import load_encoder
from sonde.indexer.encoder.tokenizer import FastTokenizer
from sonde.indexer.encoder.word_pieces import WordPieces
from sonde.indexer.memo import Memo

ODD = [
    "[CLS] a [MASK]",
    "[mask]",
    "a\x00b",
    "a\x0bb",
    "tab\tline\r\nend",
    "",
    " ",
    "don't_stop",
    "Zürich",
    "日本 語",
    "日本語でこのように書かれた文は単語の間に空白を置かない",
    "a\x1cb a\x85b a\u2028b a\u3000b a\u200bb",
    "e\u0301te\u0301 \u0301a",
    "ΟΔΟΣ İstanbul ǅ",
    "A" * 200,
]


def backend(lower: bool = True) -> Tokenizer:
    found: Any = wordpiece().backend_tokenizer
    made = Tokenizer.from_str(found.to_str())
    made.normalizer = BertNormalizer(lowercase=lower)
    return made


TOKENIZERS = {lower: FastTokenizer(backend(lower), 64, ("", ""), True) for lower in (True, False)}
NAIVE = {lower: backend(lower) for lower in (True, False)}


def check(texts: list[str], lower: bool) -> None:
    found = TOKENIZERS[lower].tokenize(texts, False)
    expected = [NAIVE[lower].encode(text).ids for text in texts]
    assert [text.total for text in found] == [len(ids) for ids in expected]
    assert [text.ids.tolist() for text in found if not text.cut] == [ids for ids in expected if len(ids) <= 64]


@pytest.mark.parametrize("lower", [True, False])
def test_odd_texts_among_plain_ones(lower: bool) -> None:
    check([*TEXTS, *ODD] * 10, lower)
    words = TOKENIZERS[lower]._words
    assert words
    assert [text for text in ODD if words.ids(text) is None] == [
        "a\x00b", "a\x0bb", " ", "日本語でこのように書かれた文は単語の間に空白を置かない",
        "a\x1cb a\x85b a\u2028b a\u3000b a\u200bb", "A" * 200,
    ]  # fmt: skip


@given(st.lists(st.text(max_size=30) | st.text("aB.é \t", max_size=30), min_size=2, max_size=5), st.booleans())
def test_any_text(texts: list[str], lower: bool) -> None:
    check(texts, lower)


def test_added_tokens_are_found_in_any_case() -> None:
    made = backend()
    made.add_tokens([AddedToken("refund", normalized=True), AddedToken("ACME", normalized=False)])
    tokenizer = FastTokenizer(Tokenizer.from_str(made.to_str()), 64, ("", ""), True)
    texts = ["a refund", "A Refund", "of ACME", "of acme", "refunds", "plain"]
    assert [text.ids.tolist() for text in tokenizer.tokenize(texts, False)] == [made.encode(text).ids for text in texts]


def test_other_kinds_have_none() -> None:
    other: Any = bytelevel().backend_tokenizer
    assert WordPieces.of(other) is None
    made = backend()
    made.add_tokens(["two words"])
    assert WordPieces.of(made) is None


def test_one_text_does_without_them(tmp_path: Path) -> None:
    encoder: Any = load_encoder(str(save_transformer(tmp_path)), device="cpu")
    encoder.tokenize(TEXTS[:1])
    assert "_words" not in vars(encoder.tokenizer)
    encoder.tokenize(TEXTS)
    assert encoder.tokenizer._words


def test_words_are_asked_once_long_ones_each_time_and_all_are_forgotten_when_there_are_too_many(monkeypatch) -> None:
    monkeypatch.setattr(memo, "MOST_WORDS", 2)
    asked: list[str] = []
    known: Memo[int] = Memo(lambda word: asked.append(word) or len(word))
    assert [known[word] for word in ("a", "bb", "a")] == [1, 2, 1]
    assert [known["x" * 41] for _ in range(2)] == [41, 41]
    assert asked == ["a", "bb", "x" * 41, "x" * 41]
    assert known["ccc"] == 3
    assert dict(known) == {"ccc": 3}
