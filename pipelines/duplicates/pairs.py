"""Pairs of similar documents: by their words (MinHash, Broder, SEQUENCES 1997) and by their embeddings."""

import re
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha1
from typing import Literal, get_args

import numpy as np

from ...indexer.ann.exact import inner_products
from ...indexer.errors import UsageError, arg, as_texts, out_of_range, unknown_option
from ...indexer.lexical.analysis import normalised
from ...indexer.progress import Notify, Progress
from ...indexer.store.view import View, document_vectors, normalized
from ..analysis.neighbours import neighbours
from ..search.candidates import check_complete, joined_dense

DuplicateKind = Literal["exact", "near", "meaning"]
KINDS: tuple[DuplicateKind, ...] = get_args(DuplicateKind)
FoundKind = Literal["exact", "value", "near", "meaning"]
Keep = Literal["first", "longest", "newest"]
KEEPS: tuple[Keep, ...] = get_args(Keep)


@dataclass(frozen=True, slots=True)
class DuplicateSettings:
    """Settings of a search for duplicates.

    Attributes:
        kinds: "exact" (the same words, whatever their case, spaces and punctuation), "near" (most of their sequences of
            words in common) and "meaning" (near vectors).
        near: Least Jaccard similarity of two texts' shingles, above 0, at most 1.
        meaning: Least cosine of two documents, above 0, at most 1.
        keep: The representative of a group: the "first" document that was stored, the "longest", or the "newest" by
            `date`, or by the order of storing where there is none.
        date: A date column, for "newest".
        pairs: Closest pairs by meaning to return besides, exact duplicates left out.
        same: A metadata column: documents with the same value in it are duplicates too, whatever their texts. DOIs are
            compared without the address before them.
    """

    kinds: tuple[DuplicateKind, ...] = KINDS
    near: float = 0.8
    meaning: float = 0.95
    keep: Keep = "first"
    date: str | None = None
    pairs: int = 0
    same: str | None = None

    def __post_init__(self) -> None:
        """Take one kind as one kind."""
        object.__setattr__(self, "kinds", tuple(as_texts(self.kinds, "kind of duplicate")))

    def check(self) -> None:
        """Check what can be checked without the collection.

        Raises:
            UsageError: A setting is not valid; the message names the alternatives.
        """
        unknown = [kind for kind in self.kinds if kind not in KINDS]
        if unknown or not self.kinds:
            said = f"{', '.join(map(repr, unknown)) or 'nothing'} is not a kind of duplicate: use {', '.join(KINDS)}"
            raise UsageError(said, code="unknown-option", field="kinds", value=self.kinds, alternatives=KINDS)
        if self.keep not in KEEPS:
            raise unknown_option("keep", self.keep, KEEPS)
        if self.date is not None and self.keep != "newest":
            said = f"a date column only serves to keep the newest: use {arg('keep')} newest"
            raise UsageError(said, code="conflict", field="date", value=self.date)
        for name in ("near", "meaning"):
            if not 0 < getattr(self, name) <= 1:
                raise out_of_range(name, getattr(self, name), "give a similarity above 0 and at most 1")
        if self.pairs < 0:
            raise out_of_range("pairs", self.pairs, "give a whole number, 0 or more")


Pairs = list[tuple[int, int, float]]
"""Places a < b of two documents, and how alike they are."""

SHINGLE = 3
EXACT_BELOW = 50_000
"""Passages up to which every pair is compared; beyond, the FAISS index proposes."""
DEPTH = 50
BLOCK = 1_024


def normalised_text(text: str) -> str:
    """Return the words of a text in one form: compatible characters, no case, single spaces, no punctuation."""
    words = re.findall(r"\w+", normalised(text).casefold())
    return " ".join(words) or text.strip()


def shingles(words: str) -> frozenset[str]:
    """Return the sequences of three words of a text as `plain` gives it; of a shorter one, of three characters."""
    parts = words.split()
    if len(parts) >= 2 * SHINGLE:
        return frozenset(" ".join(parts[at : at + SHINGLE]) for at in range(len(parts) - SHINGLE + 1))
    return frozenset(words[at : at + SHINGLE] for at in range(max(1, len(words) - SHINGLE + 1)))


def shingle_jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    """Return how much of two sets is in both, 0 to 1."""
    return len(one & other) / len(one | other)


def near_pairs(texts: Sequence[str], least: float, notify: Notify) -> Pairs:
    """Return the pairs of texts whose shingles have at least this Jaccard similarity.

    Sketches propose pairs, and the similarity of each is computed exactly. A pair at the limit may be missed.
    """
    # What is proposed is compared exactly, so wrong proposals only cost time: look below the limit, and miss few.
    sketches = Sketches(max(0.05, least - 0.1))
    sets, found = [], []
    for place, text in enumerate(texts):
        mine = shingles(text)
        for other in sketches.add(mine):
            alike = shingle_jaccard(mine, sets[other])
            if alike >= least:
                found.append((other, place, alike))
        sets.append(mine)
        if place % 1_000 == 999:
            notify(Progress("comparing words", place + 1, len(texts), "texts"))
    return found


def meaning_pairs(view: View, docs: np.ndarray, least: float, notify: Notify) -> Pairs:
    """Return the pairs of documents (ascending numbers) whose vectors have at least this cosine.

    Up to 50,000 passages all pairs are compared; beyond, the nearest 50 that FAISS proposes for each document.
    """
    vectors = normalized(document_vectors(view, docs))
    proposed = _all(vectors, least) if not _large(view) else _indexed(view, docs, vectors, DEPTH)
    found: Pairs = []
    for done, (first, second) in proposed:
        cosines = inner_products(vectors, first, vectors, second)
        kept = cosines >= least
        found += zip(first[kept].tolist(), second[kept].tolist(), np.minimum(cosines[kept], 1).tolist(), strict=True)
        notify(Progress("comparing meaning", done, len(docs), "documents"))
    return sorted(set(found))


def closest_pairs(view: View, docs: np.ndarray, most: int, notify: Notify) -> Pairs:
    """Return the pairs of documents with the largest cosines, best first: of each document its nearest 50 compete."""
    vectors = normalized(document_vectors(view, docs))
    if _large(view):
        blocks = [pair for _, pair in _indexed(view, docs, vectors, DEPTH)]
        first, second = (np.concatenate(part) for part in zip(*blocks, strict=True))
    else:
        rows = neighbours(vectors, vectors, DEPTH, notify)[0]
        first, second = np.repeat(np.arange(len(docs)), rows.shape[1]), rows.ravel()
        first, second = _ordered(first, second)
    both = np.unique(np.stack([first, second], axis=1), axis=0)
    cosines = inner_products(vectors, both[:, 0], vectors, both[:, 1])
    best = np.lexsort((both[:, 1], both[:, 0], -cosines))[:most]
    return [(int(a), int(b), min(float(c), 1.0)) for (a, b), c in zip(both[best], cosines[best], strict=True)]


def _large(view: View) -> bool:
    indexed = bool(view.parts) or view.generation.ann is not None
    return int(view.generation.alive.sum()) > EXACT_BELOW and indexed


def _ordered(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return each pair of different places with the smaller one first."""
    different = first != second
    return np.minimum(first, second)[different], np.maximum(first, second)[different]


def _all(vectors: np.ndarray, least: float) -> Iterator[tuple[int, tuple[np.ndarray, np.ndarray]]]:
    """Yield how many are done, and pairs whose product, as BLAS rounds it, comes near the limit."""
    for start in range(0, len(vectors), BLOCK):
        first, second = np.nonzero(vectors[start : start + BLOCK] @ vectors[start:].T >= least - 1e-5)
        yield min(start + BLOCK, len(vectors)), _upper(first + start, second + start)


def _upper(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return first[first < second], second[first < second]


def _indexed(
    view: View, docs: np.ndarray, vectors: np.ndarray, depth: int
) -> Iterator[tuple[int, tuple[np.ndarray, np.ndarray]]]:
    """Yield how many are done, and pairs of documents whose passages the index finds near a document's vector."""
    for start in range(0, len(docs), BLOCK):
        query, rows = _nearest(view, vectors[start : start + BLOCK], depth)
        owners = view.generation.owners[rows]
        places = np.minimum(np.searchsorted(docs, owners), len(docs) - 1)
        known = docs[places] == owners
        yield min(start + BLOCK, len(docs)), _ordered(query[known] + start, places[known])


def _nearest(view: View, vectors: np.ndarray, depth: int) -> tuple[np.ndarray, np.ndarray]:
    """Return int64 [m], the place of a vector, and int64 [m], the row of a passage that an index finds near it."""
    generation = view.generation
    if view.parts:
        dense = joined_dense(view, generation.alive)
        found = [each.rows for each in dense.search(vectors, depth)]
        check_complete(dense)
        return np.repeat(np.arange(len(found)), [len(each) for each in found]), np.concatenate(found)
    assert generation.ann is not None
    rows = generation.ann.search(vectors, depth, allowed=generation.alive, vectors=generation.segments)[1]
    query, column = np.nonzero(rows >= 0)
    return query, rows[query, column]


Likeness = tuple[FoundKind, float]


def likenesses(
    view: View, docs: np.ndarray, texts: Sequence[str], pairs: Sequence[tuple[int, int]], settings: DuplicateSettings,
    of_one_value: Container[tuple[int, int]],
) -> list[Likeness]:  # fmt: skip
    """Return for pairs of places, a representative and another each, the strictest kind that holds, and how far."""
    found = {pair: like for pair in pairs if (like := _by_words(texts, pair, settings, of_one_value))}
    rest = [pair for pair in pairs if pair not in found]
    if rest:
        places, both = np.unique(np.array(rest), return_inverse=True)
        vectors = normalized(document_vectors(view, docs[places]))
        both = both.reshape(-1, 2)
        cosines = np.minimum(inner_products(vectors, both[:, 0], vectors, both[:, 1]), 1)
        found |= {pair: ("meaning", cosine) for pair, cosine in zip(rest, cosines.tolist(), strict=True)}
    return [found[pair] for pair in pairs]


def _by_words(
    texts: Sequence[str], pair: tuple[int, int], settings: DuplicateSettings, of_one_value: Container[tuple[int, int]]
) -> Likeness | None:
    one, other = (texts[place] for place in pair)
    if "exact" in settings.kinds and one == other:
        return "exact", 1.0
    if pair in of_one_value:
        return "value", 1.0
    if "near" in settings.kinds:
        alike = shingle_jaccard(shingles(one), shingles(other))
        if alike >= settings.near or "meaning" not in settings.kinds:
            return "near", alike
    return None


PERMUTATIONS = 128
MISSED = 0.9
"""Weight of a pair that is missed, against 1 - MISSED of one that is proposed wrongly."""
STEPS = 2_000
"""Parts of the interval from 0 to 1 over which the chances of an error are summed."""


class Sketches:
    """Sketches of sets of texts, which find earlier sets with much in common: MinHash with locality-sensitive hashing.

    The hashes are those of `datasketch` 2, so that the same pairs are found.
    """

    def __init__(self, least: float) -> None:
        """Prepare to find sets whose Jaccard similarity is at least `least`, above 0 and below 1."""
        random = np.random.RandomState(1)
        self._factors = random.randint(0, 1 << 31, PERMUTATIONS, np.uint32) * np.uint32(2) + np.uint32(1)
        self._offsets = random.randint(0, 1 << 32, PERMUTATIONS, np.uint32)
        bands, self._width = _bands(least)
        self._buckets: list[defaultdict[bytes, list[int]]] = [defaultdict(list) for _ in range(bands)]
        self._count = 0

    def add(self, texts: Iterable[str]) -> list[int]:
        """Add a set; return the numbers of the earlier sets that are probably like it, from 0, ascending."""
        digests = (sha1(text.encode("utf-8", "replace")).digest() for text in texts)
        hashes = _mixed(np.array([int.from_bytes(digest[:4], "little") for digest in digests], np.uint32))
        sketch = (hashes[:, None] * self._factors + self._offsets).min(axis=0)
        found: set[int] = set()
        for band, buckets in enumerate(self._buckets):
            bucket = buckets[sketch[band * self._width : (band + 1) * self._width].tobytes()]
            found.update(bucket)
            bucket.append(self._count)
        self._count += 1
        return sorted(found)


def _mixed(hashes: np.ndarray) -> np.ndarray:
    """Return uint32 [n] hashes whose bits all depend on each other, by the last step of MurmurHash3."""
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        hashes = (hashes ^ (hashes >> np.uint32(shift))) * np.uint32(factor)
    return hashes


def _bands(least: float) -> tuple[int, int]:
    """Return into how many bands of how many hashes to divide a sketch, for the smallest weighted chance of an error.

    Two sets share a band of r hashes with the chance s ** r, where s is their Jaccard similarity.
    """
    similarity = (np.arange(STEPS) + 0.5) / STEPS
    below = np.clip(least * STEPS - np.arange(STEPS), 0, 1)  # how much of each part is below the limit

    def error(bands: int, width: int) -> float:
        apart = (1 - similarity**width) ** bands
        return float(((1 - MISSED) * (1 - apart) * below + MISSED * apart * (1 - below)).sum())

    shapes = [(b, r) for b in range(1, PERMUTATIONS + 1) for r in range(1, PERMUTATIONS // b + 1)]
    return min(shapes, key=lambda shape: error(*shape))
