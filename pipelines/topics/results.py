"""What topics return: a topic, its documents, the topic of a text, and a node of the tree."""

from dataclasses import asdict, dataclass
from typing import Any

from ...indexer.store.runs import Item


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
