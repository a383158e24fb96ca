"""Names of topics: distinctive terms, chosen by how near they are to the topic's vector.

As in KeyBERT (Grootendorst, 2020): the collection's own bi-encoder embeds candidate terms, words and pairs of words
that stand side by side in the topic's typical texts, and those nearest to the topic's vector name it.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from .counts import Weighted, Words, short_name

CANDIDATES = 15
"""Words of a topic that are compared with its vector, and as many pairs at most."""
PAIR_TEXTS = 3
"""A pair of words must stand in so many of the topic's typical texts."""
RARITY = 0.3
"""The weight of a term counts with this power beside its cosine."""

Embed = Callable[[list[str]], np.ndarray]


def name_topics(
    terms: Sequence[Weighted], typical: Sequence[Sequence[str]], vectors: np.ndarray, words: Words, embed: Embed | None
) -> list[tuple[str, Weighted]]:
    """Return a name, and the terms nearest to the topic's vector with their cosines, for each topic.

    Args:
        terms: Of each topic, by c-TF-IDF, the heaviest first.
        typical: Texts of each topic.
        vectors: float32 [topics, d], of length 1.
        words: Takes the describing words out of a text.
        embed: Turns terms into vectors of length 1; None names topics by the weights alone.
    """
    if embed is None or not len(terms):
        return [(_named(number, [term for term, _ in weighted]), []) for number, weighted in enumerate(terms)]
    candidates = [_candidates(weighted, texts, words) for weighted, texts in zip(terms, typical, strict=True)]
    every = sorted({term for weighted in candidates for term, _ in weighted})
    places = {term: place for place, term in enumerate(every)}
    embedded = embed(every) if every else np.zeros((0, vectors.shape[1]))
    found = []
    for number, (weighted, vector) in enumerate(zip(candidates, vectors, strict=True)):
        cosines = embedded[[places[term] for term, _ in weighted]] @ vector if weighted else np.zeros(0)
        ranked = _ranked(weighted, cosines)
        found.append((_named(number, [term for term, _ in ranked]), ranked))
    return found


def _named(number: int, terms: list[str]) -> str:
    return short_name(terms) or f"topic {number}"


def _candidates(weighted: Weighted, texts: Sequence[str], words: Words) -> Weighted:
    """Return the heaviest words and their frequent pairs; a pair weighs what its words weigh on average."""
    weights = dict(weighted)
    seen: Counter[str] = Counter()
    for text in texts:
        found = words(text)
        pairs = pairwise(found)
        seen.update({f"{one} {other}" for one, other in pairs if one in weights and other in weights and one != other})
    frequent = [pair for pair, count in seen.items() if count >= PAIR_TEXTS]
    frequent.sort(key=lambda pair: (-seen[pair], pair))
    pairs = [(pair, sum(weights[word] for word in pair.split()) / 2) for pair in frequent[:CANDIDATES]]
    return [*weighted[:CANDIDATES], *pairs]


def _ranked(weighted: Weighted, cosines: np.ndarray) -> Weighted:
    """Order terms by cosine and weight; cosines are rounded, so that noise in their last digits decides nothing."""
    if not weighted:
        return []
    weights = np.array([weight for _, weight in weighted])
    rounded = np.round(cosines.astype(np.float64), 3)
    scores = np.maximum(rounded, 0) * (weights / weights.max()) ** RARITY
    order = sorted(range(len(weighted)), key=lambda place: (-scores[place], weighted[place][0]))
    return [(weighted[place][0], float(rounded[place])) for place in order]
