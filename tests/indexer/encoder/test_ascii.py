"""The shortcut for plain ASCII gives the tokenizer's own ids."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_models import TEXTS, bytelevel, save_transformer, wordpiece
from tokenizers import AddedToken, Tokenizer
from tokenizers.normalizers import BertNormalizer

from sonde.indexer.encoder import load_encoder
from sonde.indexer.encoder.ascii import AsciiShortcut
from sonde.indexer.encoder.tokenizer import WORTHWHILE, FastTokenizer

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
    "日本",
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
    shortcut = TOKENIZERS[lower]._shortcut
    assert shortcut
    assert [text for text in ODD if shortcut.prepared(text) is None] == [
        "[CLS] a [MASK]", "[mask]", "a\x00b", "a\x0bb", "Zürich", "日本",
    ]  # fmt: skip
    assert shortcut.prepared("Plain TEXT") == ("plain text" if lower else "Plain TEXT")


@given(st.lists(st.text(st.characters(max_codepoint=0x17F), max_size=30), min_size=1, max_size=5), st.booleans())
def test_any_text(texts: list[str], lower: bool) -> None:
    check((texts * WORTHWHILE)[: WORTHWHILE + 3], lower)


def test_added_tokens_are_found_in_any_case() -> None:
    made = backend()
    made.add_tokens([AddedToken("refund", normalized=True), AddedToken("ACME", normalized=False)])
    tokenizer = FastTokenizer(Tokenizer.from_str(made.to_str()), 64, ("", ""), True)
    texts = ["a refund", "A Refund", "of ACME", "of acme", "plain"] * WORTHWHILE
    assert [text.ids.tolist() for text in tokenizer.tokenize(texts, False)] == [made.encode(text).ids for text in texts]


def test_other_kinds_have_none() -> None:
    other: Any = bytelevel().backend_tokenizer
    assert AsciiShortcut.of(other) is None


def test_few_texts_do_without_it(tmp_path: Path) -> None:
    encoder: Any = load_encoder(str(save_transformer(tmp_path)), device="cpu")
    encoder.tokenize(TEXTS)
    assert "_shortcut" not in vars(encoder.tokenizer)
