"""The chunker: offsets exact, nothing lost, no passage longer than the window, sentences whole, the overlap bounded."""

import gzip
import json
import time
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_models import save_router, save_static, save_transformer

from sonde.indexer.document import Document
from sonde.indexer.encoder import load_encoder
from sonde.indexer.ingest.chunker import Chunker, PassageInput, passage_text


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    """A BERT with a window of 48 tokens."""
    return load_encoder(str(save_transformer(tmp_path_factory.mktemp("tiny"))))


@pytest.fixture(scope="module", params=["bert", "roberta", "t5", "static", "router"])
def any_chunker(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    special = {"static": save_static, "router": save_router}
    path = special[request.param](folder) if request.param in special else save_transformer(folder, request.param)
    return Chunker(load_encoder(str(path), max_tokens=32))


def check(document: Document, passages: list[PassageInput], window: int) -> None:
    """Assert what holds for every document."""
    assert passages
    covered = np.zeros(len(document.text), dtype=bool)
    for passage in passages:
        assert 0 <= passage.start <= passage.end <= len(document.text)
        assert passage.text.endswith(document.text[passage.start : passage.end])
        assert len(passage.tokens.ids) <= window
        covered[passage.start : passage.end] = True
    assert all(done or character.isspace() for done, character in zip(covered, document.text, strict=True))
    starts = [(passage.start, passage.end) for passage in passages]
    assert starts == sorted(starts)


def test_a_short_document_is_one_passage_with_its_title(encoder):
    passage = Chunker(encoder).split([Document("Basil likes sun.", title="Herbs")])[0]
    assert [(each.start, each.end, each.text, each.cut) for each in passage] == [(0, 16, "Herbs\nBasil likes sun.", 0)]
    expected = encoder.tokenize(["Herbs\nBasil likes sun."])[0]
    assert list(passage[0].tokens.ids) == list(expected.ids)


def test_title_alone_and_text_alone(encoder):
    titled, blank, plain = Chunker(encoder).split([Document("", "Herbs"), Document("  \n", "Herbs"), Document("Basil")])
    assert [(each.start, each.end, each.text) for each in titled + blank + plain] == [
        (0, 0, "Herbs"),
        (0, 0, "Herbs"),
        (0, 5, "Basil"),
    ]


def test_sentences_stay_whole_and_passages_overlap(encoder):
    sentences = [f"The battery number {number} died." for number in range(20)]
    text = " ".join(sentences)
    passages = Chunker(encoder, overlap_tokens=12).split([Document(text, title="Report")])[0]
    assert len(passages) > 3
    for passage in passages:
        piece = text[passage.start : passage.end]
        assert piece.startswith("The battery")
        assert piece.endswith("died.")
        assert passage.text == f"Report\n{piece}"
    for before, after in pairwise(passages):
        assert before.start < after.start < before.end < after.end
        shared = text[after.start : before.end]
        assert 0 < encoder.tokenizer.counts([shared])[0] <= 12


def test_no_overlap_if_none_is_wanted(encoder):
    text = " ".join(f"The battery number {number} died." for number in range(20))
    passages = Chunker(encoder, overlap_tokens=0).split([Document(text)])[0]
    assert all(before.end < after.start for before, after in pairwise(passages))


def test_a_sentence_longer_than_the_window_is_cut_between_words(encoder):
    text = "battery week refund password " * 40
    passages = Chunker(encoder).split([Document(text)])[0]
    check(Document(text), passages, 48)
    words = [word for passage in passages for word in text[passage.start : passage.end].split()]
    assert words == text.split()
    assert sum(passage.cut for passage in passages) == 0


def test_a_long_title_gets_half_the_window_and_its_loss_is_counted(encoder):
    title, text = "refund and battery " * 20, "The battery died. " * 20
    passages = Chunker(encoder).split([Document(text, title=title)])[0]
    check(Document(text), passages, 48)
    head = passages[0].text.split("\n")[0]
    assert title.startswith(head)
    assert encoder.tokenizer.counts([head])[0] <= 24
    lost = encoder.tokenizer.counts([title])[0] - encoder.tokenizer.counts([head])[0]
    assert [passage.cut for passage in passages] == [lost, *([0] * (len(passages) - 1))]


def test_the_tokens_are_those_of_the_text(any_chunker):
    document = Document("How do I reset it? The battery died, and then it rose by eleven per cent. " * 9, title="Help")
    passages = any_chunker.split([document])[0]
    assert len(passages) > 1 or any_chunker.window > 200
    check(document, passages, any_chunker.tokenizer.window)
    for passage in passages:
        assert list(passage.tokens.ids) == list(any_chunker.encoder.tokenize([passage.text])[0].ids)
        assert passage.text == passage_text(document.title, document.text[passage.start : passage.end])
        assert passage.cut == 0


TEXT = st.text(
    st.one_of(st.sampled_from(" \n\t.!?abcdéß你😀\u200b\u0000\x1c"), st.characters(exclude_categories=["Cs"])),
    max_size=400,
)


@settings(max_examples=120)
@given(TEXT, st.text(max_size=80), st.sampled_from([None, "en", "de", "zh", "xx"]))
def test_offsets_are_exact_and_nothing_is_lost(any_chunker, text, title, language):
    document = Document(text, title=title, language=language)
    passages = any_chunker.split([document])[0]
    check(document, passages, any_chunker.tokenizer.window)
    assert [(each.start, each.end, each.text) for each in any_chunker.split([document])[0]] == [
        (each.start, each.end, each.text) for each in passages
    ]


@settings(max_examples=40)
@given(st.lists(TEXT, max_size=6))
def test_a_batch_gives_what_each_document_gives_alone(any_chunker, texts):
    documents = [Document(text) for text in texts]
    together = any_chunker.split(documents)
    alone = [any_chunker.split([document])[0] for document in documents]
    assert [[(p.start, p.end, p.cut) for p in each] for each in together] == [
        [(p.start, p.end, p.cut) for p in each] for each in alone
    ]


@pytest.mark.long
def test_megabytes_in_seconds(encoder):
    prose = "The battery died after a week. How do I reset my password? Profits rose.\n\n" * 20_000
    chinese, unbroken = "数字。" * 60_000, "x" * 300_000
    for text in (prose, chinese, unbroken):
        began = time.monotonic()
        passages = Chunker(encoder).split([Document(text)])[0]
        assert time.monotonic() - began < 30
        check(Document(text), passages, 48)


def test_real_articles(shared_data):
    path = shared_data / "topics/bbc.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for _, line in zip(range(40), lines, strict=False)]
    documents = [Document(row["text"], title=row["title"]) for row in rows]
    found = Chunker(load_encoder()).split(documents)
    for document, passages in zip(documents, found, strict=True):
        check(document, passages, 256)
        assert all(passage.cut == 0 for passage in passages)
    assert len(documents) < sum(map(len, found)) < 5 * len(documents)
