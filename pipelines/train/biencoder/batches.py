"""Training examples: pairs from the texts of a collection, mined hard negatives, and the columns that a loss reads."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ....indexer.encoder import Encoder
from ....indexer.errors import SondeError
from ....indexer.progress import Notify, Progress, silent
from ....indexer.store.collection import StoredCollection
from ....indexer.store.passages import passages_in_order
from ..pairs import BETTER, SAME
from ..settings import BiencoderSettings
from .examples import FEWEST, Examples

if TYPE_CHECKING:
    import torch


SOURCES = ("titles", "neighbours", "both")
SHORTEST = 40
"""Characters below which a passage says too little to be a neighbour."""
MOST = 100_000
"""Pairs at most; of more documents, some are taken by chance."""


def pairs_of_collection(collection: StoredCollection, made_of: str = "both", seed: int = 0) -> Examples:
    """Return pairs of titles with the first passage of their text, and of neighbouring passages.

    The pairs of one document are one group, and documents of the same title or the same passage share it.

    Raises:
        SondeError: The collection has too few titles or long documents.
    """
    rows = list(_rows(collection, made_of))
    if len(rows) < FEWEST:
        raise SondeError(
            f"{collection.named} gives {len(rows)} pairs of {made_of}: at least {FEWEST} are needed; "
            "give a file of examples, or a collection with titles or longer texts"
        )
    if len(rows) > MOST:
        rows = [rows[place] for place in np.sort(np.random.default_rng(seed).choice(len(rows), MOST, replace=False))]
    numbers = np.unique([doc for doc, _, _ in rows], return_inverse=True)[1]
    return Examples(
        "pairs", tuple(row[1] for row in rows), tuple(row[2] for row in rows), groups=numbers.astype(np.int64)
    )


def _rows(collection: StoredCollection, made_of: str) -> Iterator[tuple[int, str, str]]:
    """Yield document, query and passage; texts that came before are passed over."""
    seen: set[str] = set()
    with collection.view() as view:
        before: tuple[int, str] = (-1, "")
        for doc, title, text, start, end in passages_in_order(view.catalog):
            passage = text[start:end].strip()
            first, previous = doc != before[0], before[1]
            before = (doc, passage)
            if passage in seen or not passage:
                continue
            seen.add(passage)
            if first and title.strip() and made_of != "neighbours" and len(passage) >= SHORTEST:
                yield doc, title.strip(), passage
            if not first and made_of != "titles" and min(len(previous), len(passage)) >= SHORTEST:
                yield doc, previous, passage


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


PAIRS_PER_TEXT = 8
"""Pairs of the same label, and as many of different ones, that are made of each labelled text."""


def columns_of(examples: Examples, settings: BiencoderSettings) -> dict[str, list[Any]]:
    """Return the columns of the data set: texts first, in the order that the loss takes, then `label` for scores."""
    if examples.kind == "pairs":
        return _pairs(examples, settings)
    if examples.kind == "labels":
        return _labelled(examples, settings.seed)
    low, high = min(examples.scores), max(examples.scores)
    scores = [(score - low) / (high - low) for score in examples.scores]
    return {"first": list(examples.first), "second": list(examples.second), "label": scores}


def _pairs(examples: Examples, settings: BiencoderSettings) -> dict[str, list[Any]]:
    """Wrong passages fill equally many columns; a row that has too few gets passages of other groups, by chance."""
    columns: dict[str, list[Any]] = {"anchor": list(examples.first), "positive": list(examples.second)}
    most = max((len(texts) for texts in examples.wrong), default=0)
    chance = np.random.default_rng(settings.seed)
    for number in range(min(most, max(settings.negatives, 1))):
        columns[f"negative_{number + 1}"] = [
            texts[number] if number < len(texts) else _other(examples, place, chance)
            for place, texts in enumerate(examples.wrong)
        ]
    return columns


def _other(examples: Examples, place: int, chance: np.random.Generator) -> str:
    other = place
    for _ in range(100):
        if examples.groups[other] != examples.groups[place]:
            break
        other = int(chance.integers(len(examples)))
    return examples.second[other]


def _labelled(examples: Examples, seed: int) -> dict[str, list[Any]]:
    """Return pairs of texts of one label (1) and of two (0), as many of both."""
    chance = np.random.default_rng(seed)
    names = sorted(set(examples.labels))
    members = {name: np.flatnonzero(np.array(examples.labels) == name) for name in names}
    rows: list[tuple[str, str, float]] = []
    for place, label in enumerate(examples.labels):
        for _ in range(PAIRS_PER_TEXT):
            same = [other for other in members[label].tolist() if other != place]
            different = names[(names.index(label) + 1 + int(chance.integers(len(names) - 1))) % len(names)]
            if same:
                rows.append((examples.first[place], examples.first[int(chance.choice(same))], 1.0))
            rows.append((examples.first[place], examples.first[int(chance.choice(members[different]))], 0.0))
    first, second, scores = zip(*rows, strict=True)
    return {"first": list(first), "second": list(second), "label": list(scores)}


def loss_of(examples: Examples, model: Any, settings: BiencoderSettings) -> Any:
    """Return the loss of a kind of examples, on float32 cosines whatever the model computes in.

    Pairs: multiple negatives ranking (Henderson et al., "Efficient Natural Language Response Suggestion", 2017), cached
    (Gao et al., "Scaling Deep Contrastive Learning Batch Size", 2021) where the settings say so. Scores, and labels as
    pairs of the same one (1) and of two (0), as in SetFit (Tunstall et al., 2022): CoSENT (Su, 2022).
    """
    from sentence_transformers.sentence_transformer import losses

    if examples.kind != "pairs":
        return losses.CoSENTLoss(model, scale=settings.scale, similarity_fct=_pairwise)
    if settings.cached:
        return losses.CachedMultipleNegativesRankingLoss(
            model, scale=settings.scale, similarity_fct=_cosines, mini_batch_size=settings.cached
        )
    return losses.MultipleNegativesRankingLoss(model, scale=settings.scale, similarity_fct=_cosines)


def _cosines(first: "torch.Tensor", second: "torch.Tensor") -> "torch.Tensor":
    from sentence_transformers.util import cos_sim

    return cos_sim(first.float(), second.float())


def _pairwise(first: "torch.Tensor", second: "torch.Tensor") -> "torch.Tensor":
    from sentence_transformers.util import pairwise_cos_sim

    return pairwise_cos_sim(first.float(), second.float())


def prompts_of(columns: Sequence[str], prompts: dict[str, str]) -> dict[str, str]:
    """Return the prompt of each column: a model that marks queries and documents is trained with its marks."""
    kinds = {"anchor": "query", "positive": "document"}
    named = {
        name: kinds.get(name, "document")
        for name in columns
        if name == "anchor" or name[:8] in ("positive", "negative")
    }
    return {name: prompts[kind] for name, kind in named.items() if prompts.get(kind)}
