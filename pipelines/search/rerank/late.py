"""Late interaction over the collection's own bi-encoder: token embeddings and sums of their maximum similarities."""

import re
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from weakref import WeakKeyDictionary

import numpy as np

from ....indexer.ann import to_float32
from ....indexer.encoder import Encoder, TokenVectors
from ....indexer.encoder.token_vectors import locate_tokens
from ....indexer.encoder.tokenizer import TextTokenizer
from ....indexer.ingest.chunker import passage_text
from ....indexer.late import Codec, LateIndex, Rarity, key, one_thread_each
from ....indexer.lexical.analysis import stop_words
from ....indexer.store.passages import passage_texts
from ....indexer.store.view import Generation, View
from .stage import StoredPassages, TokenMatch, Unit

BACKWARD = 0.3
"""Weight of the way back, from the passage's tokens to the query's; chosen on the development sets."""


def maxsim(
    query: np.ndarray,
    passages: Sequence[np.ndarray],
    weights: np.ndarray | None = None,
    passage_weights: Sequence[np.ndarray] | None = None,
    backward: float = 0.0,
) -> np.ndarray:
    """Return float32 [n]: for each passage the weighted mean, over the query's tokens, of the best similarity.

    Khattab and Zaharia, "ColBERT", SIGIR 2020, as a mean instead of a sum, so that scores of long and short queries
    lie in one range. With `backward`, the weighted mean over the passage's tokens is added with that weight, and the
    whole is divided by 1 + backward.

    Args:
        query: float [q, d], vectors of length 1.
        passages: For each passage float [p, d], vectors of length 1, p at least 1.
        weights: float [q], 0 and up; all alike where None.
        passage_weights: float [p] for each passage; all alike where None.
        backward: Weight of the way back, 0 and up.
    """
    if not len(passages):
        return np.empty(0, np.float32)
    lengths = [len(passage) for passage in passages]
    similar = query @ np.concatenate(passages).T
    given = np.concatenate(passage_weights) if passage_weights else np.ones(similar.shape[1], np.float32)
    return late_scores(similar, lengths, weights, given, backward)


def late_scores(
    similar: np.ndarray, lengths: Sequence[int], weights: np.ndarray | None, given: np.ndarray, backward: float
) -> np.ndarray:
    """Return what `maxsim` does, from similarities [q, t] to the tokens of all passages, which have these weights."""
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    forward = _mean(np.maximum.reduceat(similar, starts, axis=1).T, weights)
    if not backward:
        return forward.astype(np.float32)
    total = np.add.reduceat(given, starts, dtype=np.float64)
    given = np.where(np.repeat(total, lengths) > 0, given, 1)  # a passage whose weights are all 0 gets a plain mean
    parts = np.add.reduceat(similar.max(axis=0) * given, starts, dtype=np.float64)
    parts /= np.where(total > 0, total, lengths)
    return ((forward + backward * parts) / (1 + backward)).astype(np.float32)


def _mean(values: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """Return the weighted mean over the last axis; the plain one where all weights are 0."""
    if weights is None or not weights.any():
        return values.mean(axis=-1)
    return values @ weights / weights.sum()


_LETTER = re.compile(r"\w")


@dataclass(frozen=True, slots=True)
class Word:
    """A word's characters, from and to, and its tokens' places among the token vectors."""

    start: int
    end: int
    tokens: tuple[int, ...]


def words(tokenizer: TextTokenizer, text: str, places: np.ndarray, query: bool) -> list[Word]:
    """Return the words of a text, with signs left out; nothing for a tokenizer that does not say where tokens are.

    Args:
        tokenizer: The model's.
        text: The text without its prompt.
        places: int [n], the places in `Tokens.ids` of the tokens that have vectors.
        query: Whether it was tokenised as a query.
    """
    spans = locate_tokens(tokenizer, text, query)
    found: list[Word] = []
    for number, place in enumerate(places.tolist()):
        start, end = spans[place] if spans and place < len(spans) else (0, 0)
        if not _LETTER.search(text[start:end]):
            continue
        # Some tokenizers count the space before a word as part of it.
        start += len(text[start:end]) - len(text[start:end].lstrip())
        if found and found[-1].end == start and _LETTER.fullmatch(text[start : start + 1]):
            found[-1] = Word(found[-1].start, end, (*found[-1].tokens, number))
        else:
            found.append(Word(start, end, (number,)))
    return found


SAMPLE = 1_000
"""Passages, spread evenly over the collection; a sample of 500 ranks as well (benchmarks/README.md)."""


_known: "WeakKeyDictionary[Generation, Rarity]" = WeakKeyDictionary()


def rarity(view: View, encoder: Encoder) -> Rarity:
    """Return the rarities in a view, measured once for each generation of a collection."""
    found = _known.get(view.generation)
    if found is None:
        found = _known[view.generation] = Rarity.of([text.ids for text in encoder.tokenize(_sample(view))])
    return found


def is_measured(view: View) -> bool:
    """Whether the rarities in a view are known."""
    return view.generation in _known


def _sample(view: View) -> list[str]:
    rows = np.flatnonzero(view.generation.alive)
    passages = view.passages(rows[:: max(1, len(rows) // SAMPLE)][:SAMPLE].tolist())
    return [passage_text(title, text) for title, text in passage_texts(view.catalog, list(passages))]


WEIGHT = 0.4
"""Share in the fusion; chosen on the development sets (benchmarks/README.md), like the agreement."""
AGREEMENT = 0.4
FUNCTION_WORD = 0.5
"""How much the tokens of the query's function words and signs count. They are rare in texts that answer questions."""
MATCHES = 8


class LateInteraction:
    """Rare tokens count more than frequent ones, and the way back from passage to query counts too."""

    kind = "late interaction"
    unit: Unit = "similarity"
    weight = WEIGHT
    agreement = AGREEMENT

    def __init__(self, encoder: Encoder, rarity: Rarity, name: str = "late", languages: Sequence[str] = ()) -> None:
        """Take the bi-encoder, how rare its tokens are in the collection, and the languages of the texts."""
        self.encoder = encoder
        self.rarity = rarity
        self.name = name
        self.languages = languages

    def score(self, query: str, passages: Sequence[str]) -> np.ndarray:
        """Return float32 [n], -1 to 1; query and passages are cut to the model's window, as when they were embedded."""
        [asked] = self.encoder.token_vectors(self.encoder.tokenize([query], query=True))
        if isinstance(passages, StoredPassages) and len(passages):
            return self.score_stored(query, asked, passages)
        found = self.encoder.token_vectors(self.encoder.tokenize(passages))
        weights = [self.rarity(tokens.ids) for tokens in found]
        vectors = [tokens.vectors for tokens in found]
        return maxsim(asked.vectors, vectors, self.weights(query, asked), weights, BACKWARD)

    def score_stored(self, query: str, asked: TokenVectors, passages: StoredPassages) -> np.ndarray:
        """Return what `score` does for one passage of a collection or more, from a query and its tokens."""
        with one_thread_each():
            to = compare(asked.vectors, passages, self.encoder, self.rarity)
        return late_scores(to.similar, to.lengths, self.weights(query, asked), to.weights, BACKWARD)

    def weights(self, query: str, asked: TokenVectors) -> np.ndarray:
        """Return float32 [q], the weights of a query's tokens: how rare they are, less for function words and signs."""
        found = words(self.encoder.tokenizer, query, asked.places, query=True)
        is_stop_word = stop_words(query, self.languages)
        telling = [token for word in found if not is_stop_word(query[word.start : word.end]) for token in word.tokens]
        share = np.full(len(asked.ids), FUNCTION_WORD if telling else 1.0, np.float32)
        share[telling] = 1.0
        return self.rarity(asked.ids) * share

    def matches(self, query: str, passage: str) -> list[TokenMatch]:
        """Return the best match of each word of the query; those that add most to the score first."""
        [asked] = self.encoder.token_vectors(self.encoder.tokenize([query], query=True))
        [found] = self.encoder.token_vectors(self.encoder.tokenize([passage]))
        ours = words(self.encoder.tokenizer, query, asked.places, query=True)
        theirs = words(self.encoder.tokenizer, passage, found.places, query=False)
        if not ours or not theirs:
            return []
        return self._best(query, passage, asked, found, ours, theirs)

    def _best(
        self, query: str, passage: str, asked: TokenVectors, found: TokenVectors, ours: list[Word], theirs: list[Word]
    ) -> list[TokenMatch]:
        similar = asked.vectors @ found.vectors.T
        weights = self.weights(query, asked)
        of_token = {token: word for word in theirs for token in word.tokens}
        placed = np.array(sorted(of_token))
        gains: dict[str, tuple[float, TokenMatch]] = {}
        for word in ours:
            # A word of several tokens matches where the one does that adds most.
            best = max(word.tokens, key=lambda token: float(weights[token] * similar[token, placed].max()))
            there = of_token[int(placed[similar[best, placed].argmax()])]
            value = float(similar[best, placed].max())
            text = passage[there.start : there.end]
            match = TokenMatch(query[word.start : word.end], text, there.start, there.end, value)
            gain = (float(weights[best]) * value, match)
            gains[match.query.lower()] = max(gains.get(match.query.lower(), gain), gain, key=lambda each: each[0])
        ordered = sorted(gains.values(), key=lambda each: -each[0])
        return [match for _, match in ordered[:MATCHES]]


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
