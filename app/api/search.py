"""Searching: in words, by example, with an answer or none."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...indexer.arguments import Texts
from ...indexer.progress import Notify, silent
from ...pipelines.search.results import Results
from ...pipelines.search.search import search, search_many
from ...pipelines.search.settings import SearchSettings
from ...pipelines.search.similar import like, similar
from .opened import Opened
from .options import settings_from

if TYPE_CHECKING:
    from ...pipelines.search.ask import Answer, AskSettings
    from ...pipelines.search.trec import Query


class Searching(Opened):
    """The methods that search a collection.

    Example:
        >>> texts = ["Apples are red.", "Bananas are yellow.", "Cars need fuel."]
        >>> fruit = sonde.index(texts, to=folder / "fruit.sonde")
    """

    def search(
        self,
        query: str,
        k: int | None = None,
        *,
        settings: SearchSettings | None = None,
        progress: Notify = silent,
        **options: Any,
    ) -> Results:
        """Return the k documents that answer the query best.

        Args:
            query: What to look for, in words.
            k: Documents to return, 1 or more; None takes that of `settings`, which is 10 by default.
            settings: Settings to start from; an option overrides its field.
            progress: Receives messages: that a reranker is downloaded.
            **options: Any field of `sonde.SearchSettings`: `mode`, `where`, `threshold`, `offset`, `explain` …

        Raises:
            UsageError: A setting, the filter or the query (an empty one) cannot be right.
            SondeError: The collection's model cannot be had.

        Example:
            >>> fruit.search("a yellow fruit", k=1)[0].text
            'Bananas are yellow.'
        """
        return search(self.stored, query, _search_settings("search", k, settings, options), progress)

    def ask(
        self,
        question: str,
        threshold: float | None = None,
        *,
        settings: "AskSettings | None" = None,
        progress: Notify = silent,
        **options: Any,
    ) -> "Answer":
        """Return the best answer to a question, or none where the best document is not similar enough.

        Args:
            question: What is asked.
            threshold: Least cosine; None takes that of `settings`, or what `sonde tune threshold` stored.
            settings: Settings to start from; an option overrides its field.
            progress: Receives messages.
            **options: Any field of `sonde.AskSettings`: `field` (the metadata field that holds the answer) and `mode`.

        Raises:
            UsageError: The question is empty, or a setting cannot be right.
            SondeError: The collection's model cannot be had.

        Example:
            >>> fruit.ask("a yellow fruit", threshold=0.2).answer
            'Bananas are yellow.'
            >>> fruit.ask("who won the match", threshold=0.9).answer is None
            True
        """
        from ...pipelines.search.ask import AskSettings, ask

        options |= {} if threshold is None else {"threshold": threshold}
        given = settings_from(AskSettings, settings, options, "ask")
        return ask(
            self.stored, question, threshold=given.threshold, field=given.field, mode=given.mode, notify=progress
        )

    def model_warning(self) -> str | None:
        """Return a warning if the model does not suit what the collection holds, else None.

        A collection of questions needs a model that brings alike questions together, a collection of passages one
        that brings a question near its answer.

        Example:
            >>> fruit.model_warning() is None
            True
        """
        from ...pipelines.search.ask import fit_of_model

        return fit_of_model(self.stored)

    def search_many(
        self, queries: Texts, k: int | None = None, *, settings: SearchSettings | None = None, **options: Any
    ) -> Iterator[Results]:
        """Yield the results of many queries, which are encoded together; see `search`.

        Example:
            >>> [results[0].text for results in fruit.search_many(["yellow fruit", "petrol"], k=1)]
            ['Bananas are yellow.', 'Cars need fuel.']
        """
        return search_many(self.stored, queries, _search_settings("search_many", k, settings, options))

    def search_queries(
        self,
        queries: "str | Path | Sequence[Query]",
        k: int | None = None,
        *,
        run: str | Path | None = None,
        settings: SearchSettings | None = None,
        progress: Notify = silent,
        **options: Any,
    ) -> list[tuple[str, Results]]:
        """Return the results of queries that have ids and, if asked, write them as a TREC run file.

        Args:
            queries: A JSONL file with `_id` and `text`, plain or gzipped, or pairs of an id and a text.
            k: Documents to return for each query; None takes that of `settings`.
            run: The run file to write.
            settings: Settings to start from; an option overrides its field.
            progress: Receives messages: that a reranker is downloaded.
            **options: Any field of `sonde.SearchSettings`.

        Raises:
            UsageError: A setting, the filter or a query is not valid.
            SondeError: The file of queries is not readable, or a model is not available.

        Example:
            >>> asked = [("q1", "yellow fruit"), ("q2", "petrol")]
            >>> [(key, results[0].text) for key, results in fruit.search_queries(asked, k=1)]
            [('q1', 'Bananas are yellow.'), ('q2', 'Cars need fuel.')]
        """
        from ...pipelines.search.trec import read_queries, run_queries

        given = read_queries(Path(queries)) if isinstance(queries, str | Path) else queries
        chosen = _search_settings("search_queries", k, settings, options)
        return run_queries(self.stored, given, chosen, None if run is None else Path(run), progress)

    def similar(
        self, id: str | int, k: int | None = None, *, settings: SearchSettings | None = None, **options: Any
    ) -> Results:
        """Return the k documents most similar to the stored document `id`, itself left out; options as for `search`.

        Raises:
            SondeError: There is no document with this id.
            UsageError: A setting or the filter cannot be right.

        Example:
            >>> apple = fruit.search("apples", k=1)[0]
            >>> fruit.similar(apple.id, k=1)[0].text
            'Bananas are yellow.'
        """
        return similar(self.stored, id, _search_settings("similar", k, settings, options))

    def like(
        self, text: str, k: int | None = None, *, settings: SearchSettings | None = None, **options: Any
    ) -> Results:
        """Return the k documents most similar to an example text, stored or not; options as for `search`.

        Raises:
            UsageError: The text is empty, or a setting or the filter cannot be right.
            SondeError: The collection's model cannot be had.

        Example:
            >>> fruit.like("Lemons are yellow too.", k=1)[0].text
            'Bananas are yellow.'
        """
        return like(self.stored, text, _search_settings("like", k, settings, options))


def _search_settings(
    method: str, k: int | None, settings: SearchSettings | None, options: dict[str, Any]
) -> SearchSettings:
    return settings_from(SearchSettings, settings, options if k is None else {"k": k, **options}, method)
