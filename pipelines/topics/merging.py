"""Merging topics so that splitting gives them back: the same leaves, under the same numbers and names."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ...indexer.store.runs import Item
from .model import TopicModel

PARTS = "parts"
"""In the data of an item: the topics that it was merged from, with all of their data."""


@dataclass(frozen=True)
class Regrouped:
    """A model with other topics, and what is remembered of those that it had.

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
