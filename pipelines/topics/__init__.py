"""Topics of a collection: BERTopic behind an adapter, kept as arrays that can be asked again."""

from .fit import make_topics
from .over import Breakdown
from .settings import TopicSettings, seed_words
from .stored import Answer, Member, Node, Topic, Topics

__all__ = ["Answer", "Breakdown", "Member", "Node", "Topic", "TopicSettings", "Topics", "make_topics", "seed_words"]
