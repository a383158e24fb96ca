"""Wrong passages that look right: what the bi-encoder itself finds nearest to a query, less what may be an answer."""

from dataclasses import replace

import numpy as np

from ....indexer.encoder import Encoder
from ....indexer.progress import Notify, Progress, silent
from ..mining import BETTER, SAME
from .examples import Examples

DEPTH = 50
"""Nearest passages of each query that are looked at."""
AT_ONCE = 1024


def mined(examples: Examples, encoder: Encoder, count: int, notify: Notify = silent) -> Examples:
    """Return pairs with wrong passages added until each has `count`, or no more are found; known ones come first.

    Left out, since they may be unmarked answers: passages of the same group, those with a cosine of 0.92 or more to
    the right one, and those that are nearer to the query than the right one by more than 5 % (RocketQA, Qu et al.,
    NAACL 2021).
    """
    texts = list(dict.fromkeys(examples.second))
    places = {text: place for place, text in enumerate(texts)}
    right = np.array([places[text] for text in examples.second])
    group_of = np.zeros(len(texts), np.int64)
    group_of[right] = examples.groups
    notify(f"looking for wrong passages among {len(texts):,}")
    queries, vectors = _encoded(examples.first, encoder, True, notify), _encoded(texts, encoder, False, notify)
    own = examples.wrong or ((),) * len(examples)
    found: list[tuple[str, ...]] = []
    for start in range(0, len(examples), AT_ONCE):
        rows = slice(start, start + AT_ONCE)
        nearest = _nearest(queries[rows] @ vectors.T)
        for row, candidates in enumerate(nearest, start):
            kept = candidates[group_of[candidates] != examples.groups[row]]
            kept = kept[_wrong(kept, right[row], vectors, queries[row])]
            known = own[row]
            new = [texts[place] for place in kept.tolist() if texts[place] not in known]
            found.append((known + tuple(new[: max(0, count - len(known))]))[: max(count, len(known))])
    return replace(examples, wrong=tuple(found) if any(found) else ())


def _encoded(texts: "tuple[str, ...] | list[str]", encoder: Encoder, query: bool, notify: Notify) -> np.ndarray:
    done = 0

    def told(count: int) -> None:
        nonlocal done
        done += count
        notify(Progress("mine", done, len(texts), "texts"))

    return encoder.encode(encoder.tokenize(list(texts), query=query), on_batch=told)


def _nearest(similar: np.ndarray) -> np.ndarray:
    """Return int64 [m, depth], the nearest first."""
    depth = min(DEPTH, similar.shape[1])
    some = np.argpartition(-similar, depth - 1, axis=1)[:, :depth]
    order = np.argsort(-np.take_along_axis(similar, some, 1), axis=1, kind="stable")
    return np.take_along_axis(some, order, 1)


def _wrong(places: np.ndarray, right: int, vectors: np.ndarray, query: np.ndarray) -> np.ndarray:
    """Return bool [m]: which candidates do not look like answers."""
    same = vectors[places] @ vectors[right] >= SAME
    better = vectors[places] @ query > BETTER * float(vectors[right] @ query)
    return ~(same | better)
