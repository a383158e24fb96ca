"""Judging hits: which documents answer which queries."""

from ..indexer import collection as stored
from ..pipelines.judgements import Judgements, judge, judgements
from ..pipelines.texts import Ids


class Judged(stored.Collection):
    """A collection whose hits people judge; `sonde.open` gives one that can also be searched.

    Example:
        >>> texts = ["Apples are red.", "Bananas are yellow.", "Cars need fuel."]
        >>> fruit = sonde.index([{"id": n, "text": text} for n, text in enumerate(texts)], to=folder / "fruit.sonde")
    """

    def judge(self, query: str, ids: Ids, grade: int | None = 1) -> int:
        """Keep what is said of documents as answers to a query; return how many were judged.

        Args:
            query: The query's text.
            ids: Id of a document, or several.
            grade: 0: not relevant; 1 to 10: relevant, more so with higher grades; None takes back what was said.

        Raises:
            UsageError: The query is empty or too long, no document was named, or the grade cannot be.
            SondeError: A document does not exist; nothing is kept then.

        Example:
            >>> fruit.judge("yellow fruit", ["1"])
            1
        """
        return judge(self, query, ids, grade)

    def judgements(self) -> Judgements:
        """Return what was said; judgements of documents that were deleted, or whose text changed, do not count.

        Example:
            >>> fruit.judgements().qrels
            {'q1': {'1': 1}}
        """
        return judgements(self)
