"""A topic run as it is stored: its topics, their documents and tree, and what can be asked of it or changed in it."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, overload

import numpy as np

from ...indexer.ann.devices import on_its_device
from ...indexer.argument_types import typed_methods
from ...indexer.document import Document
from ...indexer.encoder import Encoder
from ...indexer.errors import Message, SondeError, Texts, UsageError, arg, as_text, as_texts, out_of_range
from ...indexer.ingest.chunker import Chunker
from ...indexer.progress import Notify, silent
from ...indexer.store.collection import StoredCollection
from ...indexer.store.fields import Period
from ...indexer.store.kinds import LEVELS, TOPIC
from ...indexer.store.members import members_of
from ...indexer.store.runs import Run, assignments_of, check_model, find_run, items_of
from ...indexer.store.tabular import Shown
from ...indexer.store.view import normalized
from ...indexer.wording import counted
from ..analysis.neighbours import one_thread
from ..analysis.runs import newest
from ..analysis.terms import terms_of, topic_name
from ..search.settings import check_page
from .fit import load_topic_model, rewrite
from .levels import at_level
from .model import OUTLIER, TopicModel, nodes
from .over import Breakdown, by_column, over_column
from .results import Node, Regrouped, Topic, TopicMatch, TopicMember, merged_topics, regrouped, split_topic, topic_of


@on_its_device
@typed_methods
class Topics(Shown, Sequence[Topic]):
    """The topics of a run by number; what changes them rewrites the run and returns the new one."""

    def __init__(self, collection: StoredCollection, name: str | None = None, notify: Notify = silent) -> None:
        """Open a run, the newest if no name is given; `coarse:NAME`, `middle:NAME` and `fine:NAME` open a level of it.

        Raises:
            SondeError: There is none, or it has no levels.
        """
        self.collection = collection
        self._notify = notify
        with collection.view() as view:
            self.run: Run = newest(view.catalog, TOPIC, name)
            whole = find_run(view.catalog, TOPIC, self.run.name)
            self.model: TopicModel = load_topic_model(view, whole)
            if self.run.kind is not TOPIC:
                self.model = at_level(self.model, LEVELS.index(self.run.kind))
            docs, numbers, _ = assignments_of(view.catalog, self.run)
            self._items = items = items_of(view.catalog, self.run)
            self.newer = view.catalog.counts()[0] - len(docs)
        sizes = dict(zip(*(part.tolist() for part in np.unique(numbers, return_counts=True)), strict=True))
        above = self._above()
        made = [topic_of(item, sizes.get(item.number, 0), len(docs), above) for item in items]
        self.outliers: int = sizes.get(OUTLIER, 0)
        self._topics = [topic for topic in made if topic.number != OUTLIER]

    @property
    def name(self) -> str:
        """The run's name; with the level before it, as in `fine:topics`, if a level was opened."""
        return self.run.name if self.run.kind is TOPIC else self.run.kind.column(self.run.name)

    @property
    def levels(self) -> dict[str, int]:
        """How many groups each level has, the coarsest first; empty for a run of one level."""
        return {} if self.model.levels is None else self.model.levels.sizes()

    @property
    def suggested(self) -> str | None:
        """The level that is suggested; None for a run of one level."""
        return None if self.model.levels is None else str(LEVELS[self.model.levels.suggested])

    @property
    def topics(self) -> list[Topic]:
        """All topics by number, without the outliers."""
        return list(self._topics)

    @property
    def level(self) -> str | None:
        """The level of the topics; None for a run of one level."""
        return str(self.run.kind) if self.run.kind is not TOPIC else self.run.report.get("level")

    def inside(self) -> dict[int, tuple[Topic, ...]]:
        """Return the groups of the next finer level that differs, by the topic that they lie in, the largest first.

        A topic that no finer level splits is left out; without levels, none is there.
        """
        sizes = list(self.levels.items())
        names = [name for name, size in sizes[self._place + 1 :] if size > len(self)] if sizes else []
        if not names:
            return {}
        finer = Topics(self.collection, f"{names[0]}:{self.run.name}", self._notify)
        own = self.model.topic_of_leaf
        found: dict[int, list[Topic]] = {}
        for topic in finer:
            found.setdefault(int(own[topic.leaves[0]]), []).append(topic)
        ordered = {number: sorted(topics, key=lambda topic: -topic.size) for number, topics in found.items()}
        return {number: tuple(topics) for number, topics in sorted(ordered.items()) if len(topics) > 1}

    @property
    def _place(self) -> int:
        return list(self.levels).index(self.level) if self.level in self.levels else 0

    def _above(self) -> dict[int, int]:
        """Return the group of each leaf one level above; empty where there is none."""
        if self.model.levels is None or not self._place:
            return {}
        return dict(enumerate(self.model.levels.groups[self._place - 1].tolist()))

    def __len__(self) -> int:
        return len(self._topics)

    @overload
    def __getitem__(self, index: int) -> Topic: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Topic]: ...
    def __getitem__(self, index: int | slice) -> Topic | Sequence[Topic]:
        return self._topics[index]

    def __iter__(self) -> Iterator[Topic]:
        return iter(self._topics)

    def rows(self) -> list[dict[str, Any]]:
        """Return one row for each topic, as JSON values."""
        return [topic.to_dict() for topic in self]

    def __repr__(self) -> str:
        shown = f"{self.name!r}, {counted(len(self), 'topic')}, {counted(self.run.documents, 'document')}"
        if self.run.report.get("clear") is not False:
            return f"Topics({shown})"
        low, high = self.run.report["equal"]
        about = f"{low:,} to {high:,} are about as good" if low < high else "other seeds give other groups"
        return f"Topics({shown}; their number is not clear: {about})"

    def topic(self, number: int) -> Topic:
        """Return the topic of this number.

        Raises:
            SondeError: There is none.
        """
        self.model.check(number)
        return next(topic for topic in self if topic.number == number)

    def documents(self, number: int, k: int = 10, offset: int = 0) -> list[TopicMember]:
        """Return the documents of a topic, the most typical first; -1 gives the outliers.

        Raises:
            SondeError: There is no such topic.
            UsageError: k is below 1, or the offset below 0.
        """
        check_page(k, offset)
        if number != OUTLIER:
            self.model.check(number)
        with self.collection.view() as view:
            run = find_run(view.catalog, self.run.kind, self.run.name)
            found = members_of(view.catalog, run, number, k, offset)
            documents = view.documents([doc for doc, _ in found])
        return [
            TopicMember(
                rank, documents[doc].id, -1.0 if score is None else score, documents[doc].title, documents[doc].text
            )
            for rank, (doc, score) in enumerate(found, offset + 1)
        ]

    def search(self, query: str, k: int = 10) -> list[tuple[Topic, float]]:
        """Return the topics nearest to a query with their cosines, the nearest first.

        Raises:
            UsageError: The query is empty, or k below 1.
            SondeError: The collection's model is not available.
        """
        query = as_text(query, "query")
        if not query.strip():
            raise UsageError("the query is empty", code="empty", field="query")
        if k < 1:
            raise out_of_range("k", k, "it must be 1 or more")
        if not len(self):
            return []
        encoder = self.collection.encoder
        check_model(self.run, encoder.spec)
        [vector] = encoder.encode_texts([query], query=True)
        with one_thread():
            cosines = np.round((self.model.topic_vectors() @ vector).astype(np.float64), 6)
        order = sorted(range(len(self)), key=lambda place: (-cosines[place], place))[:k]
        return [(self._topics[place], float(cosines[place])) for place in order]

    def of(self, texts: Texts) -> list[TopicMatch]:
        """Return the topic of texts that need not be in the collection.

        Raises:
            UsageError: A text is empty.
            SondeError: The collection's model is not available.
        """
        texts = as_texts(texts, "text")
        if any(not text.strip() for text in texts):
            raise UsageError("a text is empty", code="empty", field="texts")
        encoder = self.collection.encoder
        check_model(self.run, encoder.spec)
        vectors = np.array([_embedded(encoder, text) for text in texts], np.float32)
        found = self.model.assign(vectors.reshape(len(texts), self.model.vectors.shape[1]))
        names = {topic.number: topic.name for topic in self} | {OUTLIER: "outliers"}
        return [
            TopicMatch(topic, names[topic], round(score, 6), probability)
            for topic, score, probability in zip(
                found.topics.tolist(), found.cosines.tolist(), found.probabilities.tolist(), strict=True
            )
        ]

    def tree(self) -> list[Node]:
        """Return the inner nodes of the tree, the most alike first; cutting it gives fewer topics."""
        below = nodes(self.model.tree, len(self.model.vectors))
        count, of_leaf = len(self.model.vectors), self.model.topic_of_leaf
        named = {topic.leaves: topic.name for topic in self}
        names = [named.get(leaves) or self._name(leaves) for leaves in below]
        return [
            Node(count - step, round(float(row[2]), 6), names[int(row[0])], names[int(row[1])], names[count + step],
                 tuple(sorted({int(of_leaf[leaf]) for leaf in below[count + step]})))
            for step, row in enumerate(self.model.tree)
        ]  # fmt: skip

    def _name(self, leaves: tuple[int, ...]) -> str:
        groups = np.ones(len(self.model.vectors), np.int64)
        groups[list(leaves)] = 0
        return topic_name(term for term, _ in terms_of(self.model.counts, groups, 2)[0]) or f"groups {leaves}"

    def over(self, column: str, period: Period | None = None) -> Breakdown:
        """Return how many documents each topic has in each period, by a metadata column of dates or years.

        Args:
            column: Dates; whole numbers (years) and texts such as "2024-05" will do.
            period: "year", "quarter", "month", "week" or "day"; by the span of the dates if left out.

        Raises:
            UsageError: There is no such column, or it holds no dates.
        """
        return over_column(self, column, period)

    def by(self, column: str) -> Breakdown:
        """Return how many documents each topic has in each class of a metadata column.

        Raises:
            UsageError: There is no such column, or it has too many different values to be one of classes.
        """
        return by_column(self, column)

    def reduce(self, count: int) -> "Topics":
        """Cut the tree so that there are `count` topics, or as many as there are dense groups.

        Raises:
            UsageError: The count is below 1.
            SondeError: Another process is writing.
        """
        if count < 1:
            raise out_of_range("reduce_to", count, "give a whole number from 1")
        model = self.model.cut(count)
        if len(model.groups) < count:
            said = f"{arg('reduce_to')} {count} gives {counted(len(model.groups), 'topic')}: the run has no more groups"
            self._notify(Message(said))
        return self._changed(regrouped(model, self._items), {"reduce_to": count})

    def merge(self, numbers: Sequence[int]) -> "Topics":
        """Make topics one, under the first one's number.

        Raises:
            SondeError: One of them does not exist, or another process is writing.
            UsageError: They are fewer than two.
        """
        return self._changed(merged_topics(self.model, self._items, numbers), {"merge": list(numbers)})

    def split(self, number: int) -> "Topics":
        """Split a merged topic into the topics that it was merged from, with their numbers and names.

        A topic that was not merged by hand is split in two, as the tree has it.

        Raises:
            SondeError: There is no such topic, it is a single dense group, or another process is writing.
        """
        return self._changed(split_topic(self.model, self._items, number), {"split": number})

    def update(self) -> "Topics":
        """Tell the topic of documents that are new or changed, by the run's own rule, without fitting again.

        Raises:
            SondeError: Another process is writing.
        """
        return self._changed(regrouped(self.model, self._items), None)

    def _changed(self, found: Regrouped, change: dict[str, Any] | None) -> "Topics":
        if self.run.kind is not TOPIC:
            said = f"{self.name} is a level of the topic run {self.run.name!r}: change that run"
            raise UsageError(said, code="conflict", field="run", value=self.name)
        rewrite(self.collection, self.run, found, change, self._notify)
        return Topics(self.collection, self.name, self._notify)

    def draw_tree(self, path: str | Path) -> None:
        """Draw the tree of the run's dense groups to an .html, .png or .svg file.

        Raises:
            UsageError: The suffix is neither.
            SondeError: There is no topic, or the file cannot be written.
            MissingExtraError: What draws it is not installed.
        """
        from ..plots import TreePlot, check_plot_target, write_plot

        check_plot_target(path)
        if not len(self):
            raise SondeError(f"the topic run {self.name!r} has no topic to draw")
        finest = LEVELS[-1]
        inner = self.levels and self.run.kind is not finest
        fine = Topics(self.collection, finest.column(self.run.name)) if inner else self
        named = {topic.leaves: topic.name for topic in fine}
        named |= {topic.leaves: f"{topic.number} · {topic.name}" for topic in self}
        leaves = [named.get((leaf,)) or self._name((leaf,)) for leaf in range(len(self.model.vectors))]
        if fine is not self:
            above = self.model.topic_of_leaf.tolist()
            leaves = [f"{name}  ({above[leaf]})" if above[leaf] >= 0 else name for leaf, name in enumerate(leaves)]
        title, nodes = f"{self.collection.path.name}: how alike the topics are ({self.name})", self.tree()
        write_plot(TreePlot(title, leaves, self.model.tree, [node.name for node in nodes]), path)


def _embedded(encoder: Encoder, text: str) -> np.ndarray:
    """Embed a text as a stored document, including the rounding to half precision."""
    [passages] = Chunker(encoder).split([Document(text)])
    stored = encoder.encode([passage.tokens for passage in passages]).astype(np.float16).astype(np.float32)
    return normalized(stored.mean(axis=0, keepdims=True))[0]
