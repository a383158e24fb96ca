"""The topics of a run as items: sizes, terms, typical documents, and names."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from ...indexer.errors import SondeError
from ...indexer.progress import Notify, silent
from ...indexer.store.collection import StoredCollection
from ...indexer.store.runs import Item
from ...indexer.store.view import View
from ..analysis.corpus import Corpus, texts_of
from ..analysis.describe import ids_of, languages
from ..analysis.neighbours import one_thread
from ..analysis.terms import Weighted, Words, tokenizer, topic_name
from ..cluster.labelled import GroupLabel, label_groups, label_names
from .model import Assigned, TopicModel

CANDIDATES = 15
"""Words of a topic that are compared with its vector, and as many pairs at most."""
PAIR_TEXTS = 3
"""A pair of words must occur in this many of the topic's typical texts."""
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
    return topic_name(terms) or f"topic {number}"


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


TYPICAL = 30
"""Texts nearest to a topic's vector: from them come pairs of words for its name, and labels are compared with them."""
REPRESENTATIVES = 5


@dataclass(frozen=True)
class Before:
    """What a run knew before it is written again: what stays the same keeps its name.

    Attributes:
        items: By topic.
        matched: Whether an item may name a topic whose leaves are others now (a run made again), if a person named it.
    """

    items: Mapping[int, Item] = field(default_factory=dict)
    matched: bool = False


def words_of(view: View) -> Words:
    """Return what takes the describing words out of the collection's texts."""
    return tokenizer(tuple(languages(view) or ["en"]))


def embedder(collection: StoredCollection, choice: str, notify: Notify = silent) -> Embed | None:
    """Return what embeds terms: the collection's model, or None if it is not wanted, or not available.

    Raises:
        SondeError: It is wanted ("model") and is not available.
    """
    if choice == "terms" or (choice == "auto" and not collection.encoder_at_hand):
        return None
    try:
        encoder = collection.encoder
    except SondeError as error:
        if choice == "model":
            raise
        error.prefix("topics are named by their terms alone")
        notify(error.message)
        return None

    def embed(terms: list[str]) -> np.ndarray:
        with one_thread():
            return encoder.encode_texts(terms)

    return embed


@dataclass(frozen=True)
class _Said:
    """What a topic is called: by its terms, by a candidate label, and by a person, if one named it."""

    own: str
    keywords: Any
    label: GroupLabel | None
    given: str | None

    @classmethod
    def again(cls, item: Item) -> "_Said":
        """Return what a stored item says."""
        data = item.data
        label = GroupLabel(data["label"], data["label_share"]) if "label" in data else None
        return cls(data.get("own", data["named"]), data["keywords"], label, given_name(item))

    def values(self, automatic: str) -> dict[str, Any]:
        """Return what an item keeps of it."""
        kept = {"named": automatic, "keywords": self.keywords}
        if self.label:
            kept |= {"own": self.own, "label": self.label.label, "label_share": self.label.share}
        return kept


def given_name(item: Item | None) -> str | None:
    """Return the name that a person gave to a topic, or None."""
    return item.name if item and item.name != item.data.get("named") else None


def topic_items(
    view: View, corpus: Corpus, model: TopicModel, assigned: Assigned, parameters: Mapping[str, Any], known: Before,
    notify: Notify = silent,
) -> list[Item]:  # fmt: skip
    """Return one item for each topic.

    Its data: `size` (documents), `leaves`, `terms` (with c-TF-IDF weights), `keywords` (with cosines),
    `representatives` (ids of the documents nearest its vector), `named` (its automatic name) and, where there are
    candidate labels, `label`, `label_share` and `own` (its name by terms).

    Args:
        view: Of the collection.
        corpus: Its documents.
        model: The topics.
        assigned: Where the corpus's vectors belong.
        parameters: Of the run: how topics are named.
        known: What the run knew before: a topic that stays as it was is not renamed.
        notify: Receives sentences.
    """
    terms, typical = model.terms(), _typical(corpus, model, assigned)
    said: dict[int, _Said] = {}
    for topic, leaves in model.groups.items():
        item = known.items.get(topic)
        if item and not known.matched and tuple(item.data["leaves"]) == leaves:
            said[topic] = _Said.again(item)
    fresh = [place for place, topic in enumerate(model.groups) if topic not in said]
    topics = list(model.groups)
    for place, one in zip(
        fresh, _items_named(view, corpus, fresh, terms, typical, model, parameters, notify), strict=True
    ):
        own, keywords, label = one
        said[topics[place]] = _Said(own, keywords, label, given_name(known.items.get(topics[place])))
    automatic = label_names([said[topic].label for topic in topics], [said[topic].own for topic in topics])
    sizes = np.unique_counts(assigned.topics[corpus.group])
    size_of = dict(zip(sizes.values.tolist(), sizes.counts.tolist(), strict=True))
    docs = corpus.snapshot.docs[corpus.first]
    return [
        Item(topic, said[topic].given or automatic[place], {
            "size": size_of.get(topic, 0), "leaves": list(model.groups[topic]), "terms": terms[place],
            **said[topic].values(automatic[place]),
            "representatives": ids_of(view, docs[typical[place][:REPRESENTATIVES]]),
        })
        for place, topic in enumerate(topics)
    ]  # fmt: skip


def _items_named(
    view: View, corpus: Corpus, fresh: Sequence[int], terms: Sequence[Any], typical: Sequence[np.ndarray],
    model: TopicModel, parameters: Mapping[str, Any], notify: Notify,
) -> list[tuple[str, Any, GroupLabel | None]]:  # fmt: skip
    """Return name, keywords and label of the topics at these places."""
    if not fresh:
        return []
    docs = corpus.snapshot.docs[corpus.first]
    embed = embedder(view.collection, parameters.get("names", "auto"), notify)
    texts = [texts_of(view, docs[typical[place]]) if embed else [] for place in fresh]
    vectors = model.topic_vectors()[list(fresh)]
    own = name_topics([terms[place] for place in fresh], texts, vectors, words_of(view), embed)
    labels: list[GroupLabel | None] = [None] * len(fresh)
    if parameters.get("labels"):
        labels = [*label_groups(
            view.collection.encoder, corpus.vectors, [typical[place] for place in fresh],
            lambda rows: texts_of(view, docs[rows]), parameters["labels"], parameters["engine"], notify,
        )]  # fmt: skip
    return [(name, keywords, label) for (name, keywords), label in zip(own, labels, strict=True)]


def _typical(corpus: Corpus, model: TopicModel, assigned: Assigned) -> list[np.ndarray]:
    """Return, for each topic, the int64 rows of the vectors nearest to its own, the nearest first."""
    found = []
    for topic, vector in zip(model.groups, model.topic_vectors(), strict=True):
        rows = np.flatnonzero(assigned.topics == topic)
        cosines = np.round((corpus.vectors[rows] @ vector).astype(np.float64), 5)
        found.append(rows[np.lexsort((rows, -cosines))[:TYPICAL]])
    return found
