"""Topics of a collection: BERTopic behind an adapter, kept as arrays that can be asked again."""

from .fit import make_topics
from .over import Breakdown
from .results import Node, Topic, TopicMatch, TopicMember
from .settings import TopicSettings, seed_words
from .stored import Topics

__all__ = [
    "Breakdown",
    "Node",
    "Topic",
    "TopicMatch",
    "TopicMember",
    "TopicSettings",
    "Topics",
    "make_topics",
    "seed_words",
]
