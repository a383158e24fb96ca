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
from ....indexer.late import Rarity, one_thread_each
from ....indexer.store.passages import passage_texts
from ....indexer.store.view import Generation, View
from .stage import TokenMatch, Unit
from .stored import StoredPassages, compare

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
        if isinstance(passages, StoredPassages) and len(passages):
            return self.score_stored(asked, passages)
        found = self.encoder.token_vectors(self.encoder.tokenize(passages))
        weights = [self.rarity(tokens.ids) for tokens in found]
        vectors = [tokens.vectors for tokens in found]
        return maxsim(asked.vectors, vectors, self.rarity(asked.ids), weights, BACKWARD)

    def score_stored(self, asked: TokenVectors, passages: StoredPassages) -> np.ndarray:
        """Return what `score` does for one passage of a collection or more, from the tokens of the query."""
        with one_thread_each():
            to = compare(asked.vectors, passages, self.encoder, self.rarity)
        return late_scores(to.similar, to.lengths, self.rarity(asked.ids), to.weights, BACKWARD)

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
