"""Late interaction over the collection's own bi-encoder: no weights beside those that made the vectors."""

from collections.abc import Sequence

import numpy as np

from ...indexer.encoder import Encoder, TokenVectors
from .maxsim import BACKWARD, maxsim
from .rarity import Rarity
from .reranker import Match, Unit
from .words import Word, words

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

    def matches(self, query: str, passage: str) -> list[Match]:
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
    ) -> list[Match]:
        similar = asked.vectors @ found.vectors.T
        weights = self.rarity(asked.ids)
        of_token = {token: word for word in theirs for token in word.tokens}
        placed = np.array(sorted(of_token))
        gains: dict[str, tuple[float, Match]] = {}
        for word in ours:
            # A word of several tokens matches where the one does that adds most.
            best = max(word.tokens, key=lambda token: float(weights[token] * similar[token, placed].max()))
            there = of_token[int(placed[similar[best, placed].argmax()])]
            value = float(similar[best, placed].max())
            text = passage[there.start : there.end]
            match = Match(query[word.start : word.end], text, there.start, there.end, value)
            gain = (float(weights[best]) * value, match)
            gains[match.query.lower()] = max(gains.get(match.query.lower(), gain), gain, key=lambda each: each[0])
        ordered = sorted(gains.values(), key=lambda each: -each[0])
        return [match for _, match in ordered[:MATCHES]]
