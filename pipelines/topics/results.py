"""What topics return: a topic, its documents, the topic of a text, a node of the tree, and topics after an edit."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from ...indexer.store.runs import Item
from .model import TopicModel

PARTS = "parts"
"""In the data of an item: the topics that it was merged from, with all of their data."""


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic.

    Attributes:
        number: 0 and up; -1 stands for the outliers.
        name: What it is called.
        size: Documents that belong to it now.
        share: Of all documents that the run knows, 0 to 1.
        terms: Words that tell it from the others, with their c-TF-IDF weights, the heaviest first.
        keywords: Terms nearest to its vector, with their cosines; empty if it was named without the model.
        representatives: Ids of the documents nearest to its vector.
        leaves: The dense or fine groups that it is made of.
        parent: The number of the group one level above; None for the coarse level, and in a run of one level.
        name_accuracy: How well readers who know only the names put its texts, 0 to 1; None where that was not measured.
    """

    number: int
    name: str
    size: int
    share: float
    terms: tuple[tuple[str, float], ...]
    keywords: tuple[tuple[str, float], ...]
    representatives: tuple[str, ...]
    leaves: tuple[int, ...]
    parent: int | None = None
    name_accuracy: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return asdict(self) | {"share": round(self.share, 6)}


@dataclass(frozen=True, slots=True)
class TopicMember:
    """A document of a topic: `score` is the cosine to the vector of its dense group, higher is closer."""

    rank: int
    id: str
    score: float
    title: str
    text: str

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class TopicMatch:
    """The topic of a text: -1 if it is none; `score` is the cosine to the nearest group, `probability` 0 to 1."""

    topic: int
    name: str
    score: float
    probability: float

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Node:
    """An inner node of the tree: two nodes that join.

    Attributes:
        level: How many topics there are when the tree is cut above this node.
        distance: Mean cosine distance between the leaves of both sides, 0 to 2.
        left: Name of one side.
        right: Name of the other.
        name: From the terms of both together.
        topics: The topics of the run below it.
    """

    level: int
    distance: float
    left: str
    right: str
    name: str
    topics: tuple[int, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return asdict(self)


def topic_of(item: Item, size: int, total: int, above: dict[int, int]) -> Topic:
    """Return a stored topic with its size now; `above` has the group one level above each leaf."""
    terms, keywords = (tuple(map(tuple, item.data.get(name, ()))) for name in ("terms", "keywords"))
    representatives, leaves = (tuple(item.data.get(name, ())) for name in ("representatives", "leaves"))
    parent = above.get(leaves[0]) if leaves else None
    told = (terms, keywords, representatives, leaves, parent, item.data.get("name_accuracy"))
    return Topic(item.number, item.name, size, size / max(total, 1), *told)


@dataclass(frozen=True)
class Regrouped:
    """A model with other topics, and what is remembered of those that it had.

    So a split gives back the topics that were merged: the same leaves, under the same numbers and names.

    Attributes:
        model: The model.
        merged: By topic, the items that it was merged from.
        restored: Items that a split gives back, by topic.
    """

    model: TopicModel
    merged: Mapping[int, Sequence[Item]]
    restored: Mapping[int, Item]

    def remembered(self, items: Sequence[Item]) -> list[Item]:
        """Return items that know what they were merged from."""
        return [
            Item(item.number, item.name, {**item.data, PARTS: [_as_json(part) for part in self.merged[item.number]]})
            if item.number in self.merged
            else item
            for item in items
        ]


def merged_topics(model: TopicModel, items: Sequence[Item], topics: Sequence[int]) -> Regrouped:
    """Return the model with these topics made one, under the first one's number; see `TopicModel.merge`."""
    by_number = {item.number: item for item in items}
    new = model.merge(topics)
    chosen = [by_number[topic] for topic in dict.fromkeys(topics)]
    return Regrouped(new, _kept(new, items) | {chosen[0].number: chosen}, {})


def split_topic(model: TopicModel, items: Sequence[Item], topic: int) -> Regrouped:
    """Return the model with a topic in the parts that it was merged from; else in two, as the tree has it."""
    model.check(topic)
    parts = _parts(next((item for item in items if item.number == topic), None))
    leaves = sorted(leaf for part in parts for leaf in part.data["leaves"])
    taken = {number for number in model.groups if number != topic} & {part.number for part in parts}
    if len(parts) < 2 or taken or tuple(leaves) != model.groups[topic]:
        new = model.split(topic)
        return Regrouped(new, _kept(new, items), {})
    groups = {number: own for number, own in model.groups.items() if number != topic}
    groups |= {part.number: tuple(part.data["leaves"]) for part in parts}
    new = replace(model, groups=dict(sorted(groups.items())))
    restored = {part.number: part for part in parts}
    earlier = {part.number: below for part in parts if (below := _parts(part))}
    return Regrouped(new, _kept(new, items) | earlier, restored)


def regrouped(model: TopicModel, items: Sequence[Item]) -> Regrouped:
    """Return a model that was changed in another way, with what is remembered of topics that are the same."""
    return Regrouped(model, _kept(model, items), {})


def _kept(model: TopicModel, items: Sequence[Item]) -> dict[int, Sequence[Item]]:
    """Return the parts of the topics whose leaves the model has not changed."""
    return {
        item.number: parts
        for item in items
        if (parts := _parts(item)) and model.groups.get(item.number) == tuple(item.data["leaves"])
    }


def _parts(item: Item | None) -> list[Item]:
    stored = item.data.get(PARTS, ()) if item else ()
    return [Item(part["number"], part["name"], part["data"]) for part in stored]


def _as_json(item: Item) -> dict[str, object]:
    return {"number": item.number, "name": item.name, "data": dict(item.data)}
