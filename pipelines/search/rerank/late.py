"""Late interaction over the collection's own bi-encoder: sums of maximum token similarities."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from ....indexer.encoder import Encoder, TokenVectors
from ....indexer.encoder.token_vectors import locate_tokens
from ....indexer.encoder.tokenizer import TextTokenizer
from ....indexer.ingest.chunker import passage_text
from ....indexer.store.passages import passage_texts
from ....indexer.store.view import Generation, View
from .stage import TokenMatch, Unit

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
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    similar = query @ np.concatenate(passages).T
    forward = _mean(np.maximum.reduceat(similar, starts, axis=1).T, weights)
    if not backward:
        return forward.astype(np.float32)
    back, ends = similar.max(axis=0), starts + lengths
    given = passage_weights or [None] * len(passages)
    parts = [float(_mean(back[a:b], w)) for a, b, w in zip(starts, ends, given, strict=True)]
    return ((forward + backward * np.array(parts)) / (1 + backward)).astype(np.float32)


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
"""Passages, spread evenly over the collection; a sample of 500 ranks as well (docs/reranking.md)."""


@dataclass(frozen=True, slots=True, eq=False)
class Rarity:
    """Inverse document frequencies of token ids.

    Attributes:
        ids: int64 [n], the ids seen, ascending.
        values: float32 [n], greater than 0.
        unseen: The value of every other id, greater than all of `values`.
    """

    ids: np.ndarray
    values: np.ndarray
    unseen: float

    @classmethod
    def of(cls, passages: list[np.ndarray]) -> "Rarity":
        """Count in how many passages, given as their token ids, each id occurs."""
        once = [np.unique(ids) for ids in passages]
        ids, counts = np.unique(np.concatenate([*once, np.empty(0, np.int64)]), return_counts=True)
        return cls(
            ids.astype(np.int64), _inverse(counts, len(passages)), float(_inverse(np.zeros(1), len(passages))[0])
        )

    def __call__(self, ids: np.ndarray) -> np.ndarray:
        """Return float32 [n], the weight of each id."""
        if not len(self.ids):
            return np.full(len(ids), self.unseen, np.float32)
        places = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
        return np.where(self.ids[places] == ids, self.values[places], self.unseen).astype(np.float32)


def _inverse(counts: np.ndarray, total: int) -> np.ndarray:
    return np.log(1 + (total - counts + 0.5) / (counts + 0.5)).astype(np.float32)


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
"""Share in the fusion; chosen on the development sets (docs/reranking.md), like the agreement."""
AGREEMENT = 0.4
MATCHES = 8


class LateInteraction:
    """Rare tokens count more than frequent ones, and the way back from passage to query counts too."""

    kind = "late interaction"
    unit: Unit = "similarity"
    weight = WEIGHT
    agreement = AGREEMENT

    def __init__(self, encoder: Encoder, rarity: Rarity, name: str = "late") -> None:
        """Take the bi-encoder and how rare its tokens are in the collection."""
        self.encoder = encoder
        self.rarity = rarity
        self.name = name

    def score(self, query: str, passages: Sequence[str]) -> np.ndarray:
        """Return float32 [n], -1 to 1; query and passages are cut to the model's window, as when they were embedded."""
        [asked] = self.encoder.token_vectors(self.encoder.tokenize([query], query=True))
        found = self.encoder.token_vectors(self.encoder.tokenize(passages))
        weights = [self.rarity(tokens.ids) for tokens in found]
        vectors = [tokens.vectors for tokens in found]
        return maxsim(asked.vectors, vectors, self.rarity(asked.ids), weights, BACKWARD)

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
        weights = self.rarity(asked.ids)
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
