"""The topics of a run as items: sizes, terms, typical documents, and names."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...indexer.progress import Notify, silent
from ...indexer.store.run_writing import NAME_ACCURACY
from ...indexer.store.runs import Item
from ...indexer.store.view import View
from ..analysis.corpus import Corpus, texts_of
from ..analysis.describe import ids_of, languages
from ..analysis.naming.choice import NameAccuracy
from ..analysis.naming.namer import ANSWER, EXAMPLES, Namer, ask_namer, known_answers
from ..analysis.naming.names import Naming, embedder, naming_of, with_accuracy
from ..analysis.terms import Words, tokenizer
from ..cluster.labelled import GroupLabel, label_groups, label_names
from .model import Assigned, TopicModel

TYPICAL = 30
"""Texts nearest to a topic's vector: from them come pairs of words for its name, and labels are compared with them."""
REPRESENTATIVES = 5
GAIN = 0.1
"""How much better readers must do for a name to repeat a word of the parent's name."""


@dataclass(frozen=True)
class Before:
    """What a run knew before it is written again: what stays the same keeps its name.

    Attributes:
        items: By topic.
        matched: Whether an item may name a topic whose leaves are others now (a run made again), if a person named it.
        namer: What is asked for names, if the user asked for it in this call.
        taken: Names of finer groups, which were named first: a group is not called like one of those inside it.
    """

    items: Mapping[int, Item] = field(default_factory=dict)
    matched: bool = False
    namer: Namer | None = None
    taken: frozenset[str] = frozenset()


def words_of(view: View) -> Words:
    """Return what takes the describing words out of the collection's texts."""
    return tokenizer(tuple(languages(view) or ["en"]))


@dataclass(frozen=True)
class _Said:
    """What a topic is called: by its terms, by a candidate label, and by a person, if one named it."""

    own: str
    keywords: Any
    label: GroupLabel | None
    given: str | None
    answer: dict[str, Any] | None = None

    @classmethod
    def again(cls, item: Item) -> "_Said":
        """Return what a stored item says."""
        data = item.data
        label = GroupLabel(data["label"], data["label_share"]) if "label" in data else None
        return cls(data.get("own", data["named"]), data["keywords"], label, given_name(item), data.get(ANSWER))

    def values(self, automatic: str) -> dict[str, Any]:
        """Return what an item keeps of it."""
        kept = {"named": automatic, "keywords": self.keywords}
        kept |= {ANSWER: self.answer} if self.answer else {}
        if self.label:
            kept |= {"own": self.own, "label": self.label.label, "label_share": self.label.share}
        return kept


def given_name(item: Item | None) -> str | None:
    """Return the name that a person gave to a topic, or None."""
    return item.name if item and item.name != item.data.get("named") else None


def topic_items(
    view: View, corpus: Corpus, model: TopicModel, assigned: Assigned, parameters: Mapping[str, Any], known: Before,
    notify: Notify = silent, parents: Mapping[int, tuple[int, str]] | None = None,
) -> tuple[list[Item], NameAccuracy | None]:  # fmt: skip
    """Return one item for each topic, and how well their names tell; None if every name is as it was.

    Its data: `size` (documents), `leaves`, `terms` (with c-TF-IDF weights), `keywords` (with cosines),
    `representatives` (ids of the documents nearest its vector), `named` (its automatic name) and, where there are
    candidate labels, `label`, `label_share` and `own` (its name by terms), and `name_accuracy`.

    Args:
        view: Of the collection.
        corpus: Its documents.
        model: The topics.
        assigned: Where the corpus's vectors belong.
        parameters: Of the run: how topics are named.
        known: What the run knew before: a topic that stays as it was is not renamed.
        notify: Receives sentences.
        parents: The number and name of the group one level above each topic, whose name is not repeated.
    """
    terms, typical = model.terms(), _typical(corpus, model, assigned)
    said: dict[int, _Said] = {}
    for topic, leaves in model.groups.items():
        item = known.items.get(topic)
        if item and not known.matched and tuple(item.data["leaves"]) == leaves:
            said[topic] = _Said.again(item)
    topics, fresh = list(model.groups), [topic for topic in model.groups if topic not in said]
    naming = _naming(view, corpus, model, assigned, parameters, notify) if fresh else None
    if naming:
        said |= dict(_fresh(view, corpus, fresh, said, known, typical, model, parameters, naming, notify, parents))
    automatic = label_names([said[topic].label for topic in topics], [said[topic].own for topic in topics])
    names = [said[topic].given or automatic[place] for place, topic in enumerate(topics)]
    sizes = np.unique_counts(assigned.topics[corpus.group])
    size_of = dict(zip(sizes.values.tolist(), sizes.counts.tolist(), strict=True))
    docs = corpus.snapshot.docs[corpus.first]
    items = [
        Item(topic, names[place], {
            "size": size_of.get(topic, 0), "leaves": list(model.groups[topic]), "terms": terms[place],
            **said[topic].values(automatic[place]),
            "representatives": ids_of(view, docs[typical[place][:REPRESENTATIVES]]),
        })
        for place, topic in enumerate(topics)
    ]  # fmt: skip
    if naming is None:
        return [_as_measured(item, known.items[item.number]) for item in items], None
    accuracy = naming.measure(names)
    return with_accuracy(items, accuracy), accuracy


def _as_measured(item: Item, before: Item) -> Item:
    kept = {NAME_ACCURACY: before.data[NAME_ACCURACY]} if NAME_ACCURACY in before.data else {}
    return Item(item.number, item.name, {**item.data, **kept})


def _naming(
    view: View, corpus: Corpus, model: TopicModel, assigned: Assigned, parameters: Mapping[str, Any], notify: Notify
) -> Naming:
    """Return what names the topics, in the order of the model's groups."""
    groups = np.full(len(assigned.topics), -1)
    for place, topic in enumerate(model.groups):
        groups[assigned.topics == topic] = place
    embed = embedder(view.collection, parameters.get("names", "auto"), notify)
    return naming_of(view, corpus, groups, len(model.groups), parameters.get("seed", 0), embed)


def _fresh(
    view: View, corpus: Corpus, fresh: Sequence[int], said: Mapping[int, _Said], known: Before,
    typical: Sequence[np.ndarray], model: TopicModel, parameters: Mapping[str, Any], naming: Naming, notify: Notify,
    parents: Mapping[int, tuple[int, str]] | None = None,
) -> Iterator[tuple[int, _Said]]:  # fmt: skip
    """Yield these topics, each with what it is called."""
    places = {topic: place for place, topic in enumerate(model.groups)}
    kept = {places[topic]: each.given or each.own for topic, each in said.items()}
    kept |= {places[topic]: name for topic in fresh if (name := given_name(known.items.get(topic)))}
    if parents:
        own = _apart(naming, kept, [parents[topic] for topic in model.groups], known.taken)
    else:
        own = naming.choose(kept, taken=known.taken)
    own, vectors = naming.or_quoted(own), model.topic_vectors()
    answers: dict[int, dict[str, Any]] = {}
    if known.namer:
        texts = {
            places[topic]: texts_of(view, corpus.snapshot.docs[corpus.first[typical[places[topic]][:EXAMPLES]]])
            for topic in fresh
            if places[topic] not in kept
        }
        asked = ask_namer(known.namer, naming, own, texts, known_answers(view.catalog), notify)
        own, answers = asked.names, asked.answers
    labels: list[GroupLabel | None] = [None] * len(fresh)
    docs = corpus.snapshot.docs[corpus.first]
    if parameters.get("labels"):
        labels = [*label_groups(
            view.collection.encoder, corpus.vectors, [typical[places[topic]] for topic in fresh],
            lambda rows: texts_of(view, docs[rows]), parameters["labels"], parameters["engine"], notify,
        )]  # fmt: skip
    for topic, label in zip(fresh, labels, strict=True):
        place = places[topic]
        keywords = naming.nearest(place, vectors[place])
        name = own[place] or f"topic {topic}"
        yield topic, _Said(name, keywords, label, given_name(known.items.get(topic)), answers.get(place))


def _apart(
    naming: Naming, kept: Mapping[int, str], parents: Sequence[tuple[int, str]], elsewhere: Collection[str] = ()
) -> list[str]:
    """Return names inside larger groups: without the words of the parent's name, unless readers need them.

    A parent such as "kettle, coffee, toaster" has the best words of its children. Without them, nobody could tell what
    "sent" is.
    """
    apart = naming.choose(kept, parents, taken=elsewhere)
    free = naming.choose(kept, [(number, "") for number, _ in parents], taken=elsewhere)
    worth = zip(naming.compare(apart).groups, naming.compare(free).groups, strict=True)
    names, taken = list(apart), {name.casefold() for name in (*apart, *(name for _, name in parents))}
    for place, (banned, unbanned) in enumerate(worth):
        name = free[place]
        if (unbanned or 0) > (banned or 0) + GAIN and name.casefold() not in taken:
            taken.add(name.casefold())
            names[place] = name
    return names


def _typical(corpus: Corpus, model: TopicModel, assigned: Assigned) -> list[np.ndarray]:
    """Return, for each topic, the int64 rows of the vectors nearest to its own, the nearest first."""
    found = []
    for topic, vector in zip(model.groups, model.topic_vectors(), strict=True):
        rows = np.flatnonzero(assigned.topics == topic)
        cosines = np.round((corpus.vectors[rows] @ vector).astype(np.float64), 5)
        found.append(rows[np.lexsort((rows, -cosines))[:TYPICAL]])
    return found
