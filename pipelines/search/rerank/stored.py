"""Passages of a collection for a second stage, and their tokens: from the late index, a cache, or the bi-encoder."""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import overload
from weakref import WeakKeyDictionary

import numpy as np

from ....indexer.ann import to_float32
from ....indexer.encoder import Encoder, TokenVectors
from ....indexer.ingest.chunker import passage_text
from ....indexer.late import Codec, LateIndex, Rarity, key
from ....indexer.store.view import View


class StoredPassages(Sequence[str]):
    """Passages by row, as they were embedded, the title in front; their texts are read when one is asked for."""

    def __init__(self, view: View, rows: np.ndarray) -> None:
        """Take a view and int64 [n] rows of it."""
        self.view = view
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        return self.texts[place]

    @cached_property
    def texts(self) -> list[str]:
        """The texts."""
        passages = self.view.passages(self.rows.tolist())
        documents = self.view.documents([passage.doc for passage in passages.values()])
        found = [passages[row] for row in self.rows.tolist()]
        return [passage_text(documents[p.doc].title, documents[p.doc].text[p.start : p.end]) for p in found]

    def take(self, places: Sequence[int]) -> "StoredPassages":
        """Return the passages at these places."""
        return StoredPassages(self.view, self.rows[list(places)])


LARGEST_CACHE = 64_000_000
"""Bytes of tokens that a process keeps: those of about 550 passages of 150 tokens, or of 20,000 packed ones."""

CacheKey = tuple[int, str, bytes]
"""Which encoder, which codec ("" for none), and the digest of a passage's text and of the model."""


class TokenCache:
    """The tokens of the passages that were read last, within a bound of bytes. Several threads may use it."""

    def __init__(self, largest: int = LARGEST_CACHE) -> None:
        """Take the bound, in bytes."""
        self.largest = largest
        self.bytes = 0
        self._kept: OrderedDict[CacheKey, tuple[np.ndarray, ...]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, wanted: CacheKey) -> tuple[np.ndarray, ...] | None:
        """Return what was stored under a key, unless it was evicted."""
        with self._lock:
            if wanted in self._kept:
                self._kept.move_to_end(wanted)
            return self._kept.get(wanted)

    def put(self, name: CacheKey, arrays: tuple[np.ndarray, ...]) -> None:
        """Keep arrays; if they exceed the bound, the least recently used are evicted."""
        with self._lock:
            if name not in self._kept:
                self._kept[name] = arrays
                self.bytes += sum(each.nbytes for each in arrays)
            while self.bytes > self.largest:
                self.bytes -= sum(each.nbytes for each in self._kept.popitem(last=False)[1])


CACHE = TokenCache()
_numbers: "WeakKeyDictionary[Encoder, int]" = WeakKeyDictionary()
_next = count()


@dataclass(frozen=True, slots=True)
class Compared:
    """Passages' tokens compared with a query's.

    Attributes:
        similar: float32 [q, t], of each token of the query to each of all passages.
        lengths: How many tokens each passage has.
        weights: float32 [t], of the passages' tokens.
    """

    similar: np.ndarray
    lengths: list[int]
    weights: np.ndarray


def compare(query: np.ndarray, passages: StoredPassages, encoder: Encoder, rarity: Rarity) -> Compared:
    """Compare a query's tokens, float32 [q, d] of length 1, with those of one passage or more.

    With a late index, the passages that it lacks are packed as it packs them, so that all scores are of one scale.
    """
    index = passages.view.late
    if index is not None:
        packed = _packed(passages, encoder, index)
        together = np.concatenate(packed)
        similar = index.codec.similarities(query, together)
        return Compared(similar, [len(each) for each in packed], index.codec.weights(together))
    digests = passages.view.digests(passages.rows.tolist())
    found = _tokens(passages, digests, encoder, None, "")
    vectors, ids = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return Compared(query @ to_float32(vectors).T, [len(each) for _, each in found], rarity(ids))


def _packed(passages: StoredPassages, encoder: Encoder, index: LateIndex) -> list[np.ndarray]:
    digests = passages.view.digests(passages.rows.tolist())
    found = index.read(passages.rows, np.array([key(digest) for digest in digests], np.int64))
    missing = [place for place, each in enumerate(found) if each is None]
    lacking = [digests[place] for place in missing]
    made = _tokens(passages.take(missing), lacking, encoder, index.codec, index.info.codec) if missing else []
    for place, (packed,) in zip(missing, made, strict=True):
        found[place] = packed
    return [each for each in found if each is not None]


def _tokens(
    passages: StoredPassages, digests: list[bytes], encoder: Encoder, codec: Codec | None, name: str
) -> list[tuple[np.ndarray, ...]]:
    """Return the tokens of each passage, packed or as (float16 vectors, ids), embedding what the cache lacks."""
    number = _number(encoder)
    names = [(number, name, digest) for digest in digests]
    found = {each: CACHE.get(each) for each in names}
    places = {each: place for place, each in enumerate(names) if found[each] is None}
    if places:
        texts = [passages[place] for place in places.values()]
        for each, tokens in zip(places, encoder.token_vectors(encoder.tokenize(texts)), strict=True):
            found[each] = kept = _kept(tokens, codec)
            CACHE.put(each, kept)
    return [each for name in names if (each := found[name]) is not None]


def _kept(tokens: TokenVectors, codec: Codec | None) -> tuple[np.ndarray, ...]:
    if codec:
        return (codec.pack(tokens.ids, tokens.vectors),)
    return tokens.vectors.astype(np.float16), tokens.ids


def _number(encoder: Encoder) -> int:
    """Return a number for an encoder that no other gets: two with the same digest may run in different ways."""
    if encoder not in _numbers:
        _numbers[encoder] = next(_next)
    return _numbers[encoder]
