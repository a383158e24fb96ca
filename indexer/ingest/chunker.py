"""Long documents become passages: whole sentences that fit into the model's window, with overlap."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ..document import Document
from ..encoder import Encoder, Tokens
from ..encoder.tokenizer import whitespace_before

BLOCK = 50_000
"""Characters that are split into sentences at once; longer texts are first cut at white space."""
LONG = 40
"""Characters per token of the window above which a document is split without trying it whole."""
OVERLAP = 0.15
"""Share of the window that two neighbouring passages have in common, at most."""


@dataclass(frozen=True, slots=True)
class PassageInput:
    """A passage ready for the encoder.

    Attributes:
        start: First character in the document's text.
        end: The character after the last.
        text: What is embedded: `passage_text(title, document.text[start:end])`, with a very long title shortened.
        tokens: The tokens of that text.
        cut: Tokens that no passage holds: of a title too long, or of a text that cannot be split.
    """

    start: int
    end: int
    text: str
    tokens: Tokens
    cut: int


class Unit(NamedTuple):
    """A stretch of text that is kept together: its characters, from and to, and its tokens."""

    start: int
    end: int
    tokens: int


def passage_text(title: str, text: str) -> str:
    r"""Return what is embedded for a passage: title, newline, text; or the one of them that is not blank.

    Example:
        >>> passage_text("Herbs", "Basil likes sun.")
        'Herbs\nBasil likes sun.'
    """
    if not text.strip():
        return title
    return f"{title}\n{text}" if title.strip() else text


class Chunker:
    """Splits documents into passages for an encoder, at sentence boundaries."""

    def __init__(self, encoder: Encoder, overlap_tokens: int | None = None) -> None:
        """Take the encoder, and the most tokens that neighbouring passages share (15 % of the window unless given)."""
        self.encoder = encoder
        self.tokenizer = encoder.tokenizer
        self.window = self.tokenizer.window - self.tokenizer.overhead(query=False)
        self.overlap = int(self.window * OVERLAP) if overlap_tokens is None else overlap_tokens

    def split(self, documents: Sequence[Document]) -> list[list[PassageInput]]:
        """Return the passages of each document, in order; one where the whole document fits into the window.

        Together they cover every character that is not white space. The same document gives the same passages.
        """
        whole = [passage_text(document.title, document.text) for document in documents]
        tried = [place for place, text in enumerate(whole) if len(text) <= LONG * self.window]
        tokens = dict(zip(tried, self.encoder.tokenize([whole[place] for place in tried]), strict=True))
        found: list[list[PassageInput]] = []
        for place, (document, text) in enumerate(zip(documents, whole, strict=True)):
            fits = tokens.get(place)
            if fits and (not fits.cut or not document.text.strip()):
                end = len(document.text) if document.text.strip() else 0
                found.append([PassageInput(0, end, text, fits, fits.cut)])
            else:
                found.append(self._split(document))
        return found

    def _split(self, document: Document) -> list[PassageInput]:
        title, lost = self._title(document.title)
        used = self.tokenizer.counts([passage_text(title, ".")])[0] if title else 0
        room = max(1, self.window - used)
        units = [unit for start, end in _blocks(document.text) for unit in self._units(document, start, end, room)]
        spans = _pack(units, room, self.overlap) or [(0, 0)]
        passages = list(self._passages(document, title, spans))
        passages[0] = _with_cut(passages[0], lost)
        return passages

    def _title(self, title: str) -> tuple[str, int]:
        """Return the title, cut at half the window, and how many tokens that loses."""
        count = self.tokenizer.counts([title])[0]
        half = self.window // 2
        if count <= half:
            return title, 0
        ends = self.tokenizer.offsets(title[:BLOCK])[:half]
        return title[: ends[-1][1] if ends else 0].rstrip(), count - half

    def _units(self, document: Document, start: int, end: int, room: int) -> Iterator[Unit]:
        """Yield the sentences of a block of text, those that are too long in pieces."""
        spans = _sentences(document.text, start, end, document.language or "en")
        counts = self.tokenizer.counts([document.text[first:last] for first, last in spans])
        for (first, last), count in zip(spans, counts, strict=True):
            if count <= room:
                yield Unit(first, last, count)
            else:
                for piece in self._pieces(document.text, first, last, room):
                    if span := _stripped(document.text, piece.start, piece.end):
                        yield Unit(*span, piece.tokens)

    def _pieces(self, text: str, start: int, end: int, room: int) -> Iterator[Unit]:
        """Cut a sentence that is longer than the window, at words where there are any."""
        offsets = [first for first, _ in self.tokenizer.offsets(text[start:end])]
        begins = start + np.maximum.accumulate(np.array(offsets, dtype=np.int64))
        here, token = start, 0
        while token + room < len(begins):
            cut = whitespace_before(text, int(begins[token + room]), here)
            following = int(np.searchsorted(begins, max(cut, here + 1)))
            if following == len(begins):
                break
            yield Unit(here, max(cut, here + 1), following - token)
            here, token = max(cut, here + 1), following
        yield Unit(here, end, len(begins) - token)

    def _passages(self, document: Document, title: str, spans: list[tuple[int, int]]) -> Iterator[PassageInput]:
        texts = [passage_text(title, document.text[start:end]) for start, end in spans]
        for (start, end), text, tokens in zip(spans, texts, self.encoder.tokenize(texts), strict=True):
            # Sentences joined can take a few tokens more than each on its own.
            if tokens.cut and (halves := _halves(document.text, start, end)):
                yield from self._passages(document, title, halves)
            else:
                yield PassageInput(start, end, text, tokens, tokens.cut)


def _blocks(text: str) -> Iterator[tuple[int, int]]:
    """Cut a long text at the last line break, or else white space, of every 50,000 characters."""
    start = 0
    while len(text) - start > BLOCK:
        newline = text.rfind("\n", start + BLOCK // 2, start + BLOCK) + 1
        end = newline or whitespace_before(text, start + BLOCK, start + BLOCK // 2)
        yield start, end
        start = end
    yield start, len(text)


def _sentences(text: str, start: int, end: int, language: str) -> list[tuple[int, int]]:
    from sentencex import get_sentence_boundaries  # pyright: ignore[reportAttributeAccessIssue]  (written in Rust)

    found = get_sentence_boundaries(language, text[start:end])
    edges = [start, *(start + boundary["start_index"] for boundary in found[1:]), end]
    return [span for first, last in pairwise(edges) if (span := _stripped(text, first, last))]


def _stripped(text: str, start: int, end: int) -> tuple[int, int] | None:
    """Return the characters from `start` to `end` without white space around them; None if nothing is left."""
    piece = text[start:end]
    start += len(piece) - len(piece.lstrip())
    end -= len(piece) - len(piece.rstrip())
    return (start, end) if start < end else None


def _pack(units: Sequence[Unit], room: int, overlap: int) -> list[tuple[int, int]]:
    """Fill passages of at most `room` tokens with whole units; the next one repeats up to `overlap` tokens."""
    spans: list[tuple[int, int]] = []
    first = 0
    while first < len(units):
        last, total = first + 1, units[first].tokens
        while last < len(units) and total + units[last].tokens <= room:
            total += units[last].tokens
            last += 1
        spans.append((units[first].start, units[last - 1].end))
        if last == len(units):
            break
        first, repeated = last, 0
        budget = min(overlap, room - units[last].tokens)
        while first - 1 > 0 and units[first - 1].start > spans[-1][0] and repeated + units[first - 1].tokens <= budget:
            first -= 1
            repeated += units[first].tokens
    return spans


def _halves(text: str, start: int, end: int) -> list[tuple[int, int]]:
    if end - start < 2:
        return []
    middle = (start + end) // 2
    cut = whitespace_before(text, middle, start) if middle > start else middle
    return [half for half in (_stripped(text, start, cut), _stripped(text, cut, end)) if half]


def _with_cut(passage: PassageInput, lost: int) -> PassageInput:
    if not lost:
        return passage
    return PassageInput(passage.start, passage.end, passage.text, passage.tokens, passage.cut + lost)
