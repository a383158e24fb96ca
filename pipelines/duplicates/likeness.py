"""How far the documents of a group say what its representative says."""

from collections.abc import Sequence

import numpy as np

from ...indexer.ann.exact import inner_products
from ...indexer.document_vectors import document_vectors, normalized
from ...indexer.view import View
from .pairs import jaccard, shingles
from .settings import DuplicateKind, DuplicateSettings

Likeness = tuple[DuplicateKind, float]


def likenesses(
    view: View, docs: np.ndarray, texts: Sequence[str], pairs: Sequence[tuple[int, int]], settings: DuplicateSettings
) -> list[Likeness]:
    """Return for pairs of places, a representative and another each, the strictest kind that holds, and how far."""
    found = {pair: like for pair in pairs if (like := _by_words(texts, pair, settings))}
    rest = [pair for pair in pairs if pair not in found]
    if rest:
        places, both = np.unique(np.array(rest), return_inverse=True)
        vectors = normalized(document_vectors(view, docs[places]))
        both = both.reshape(-1, 2)
        cosines = np.minimum(inner_products(vectors, both[:, 0], vectors, both[:, 1]), 1)
        found |= {pair: ("meaning", cosine) for pair, cosine in zip(rest, cosines.tolist(), strict=True)}
    return [found[pair] for pair in pairs]


def _by_words(texts: Sequence[str], pair: tuple[int, int], settings: DuplicateSettings) -> Likeness | None:
    one, other = (texts[place] for place in pair)
    if "exact" in settings.kinds and one == other:
        return "exact", 1.0
    if "near" in settings.kinds:
        alike = jaccard(shingles(one), shingles(other))
        if alike >= settings.near or "meaning" not in settings.kinds:
            return "near", alike
    return None
