"""Search in words or by example, answer questions, and look up filters, example queries and documents."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from ...indexer.document import Value
from ...indexer.errors import Ids, SondeError, Texts, as_text, as_texts
from ...indexer.progress import Notify, silent
from ...indexer.store.documents import DocumentText, chosen_texts, numbers_by_id
from ...indexer.store.view import StoredDocument
from ...indexer.wording import shown_id
from .arguments import checked_pairs, search_settings, settings_from
from .opened import Opened
from .options import AskOptions, SearchOptions

if TYPE_CHECKING:
    import numpy as np

    from ...pipelines.evaluate.trec import Query
    from ...pipelines.search.ask import Answer, AskSettings
    from ...pipelines.search.facets import Facet
    from ...pipelines.search.rerank.stage import Reranker
    from ...pipelines.search.results import Results
    from ...pipelines.search.settings import SearchSettings


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
        settings: "SearchSettings | None" = None,
        progress: Notify = silent,
        **options: Unpack[SearchOptions],
    ) -> "Results":
        """Return the k documents that best answer the query.

        Args:
            query: What to look for, in words.
            k: Number of documents to return, 1 or more; None uses the value of `settings`, 10 by default.
            settings: Base settings; each option overrides the field of the same name.
            progress: Receives messages, such as the download of a reranker.
            **options: Any field of `sonde.SearchSettings`: `mode`, `where`, `threshold`, `offset`, `explain` …

        Raises:
            UsageError: A setting or the filter is not valid, or the query is empty or not valid.
            SondeError: The collection's model is not available.

        Example:
            >>> fruit.search("a yellow fruit", k=1)[0].text
            'Bananas are yellow.'
        """
        from ...pipelines.search.search import search

        return search(self.stored, query, search_settings("search", k, settings, options), progress)

    def ask(
        self,
        question: str,
        threshold: float | None = None,
        *,
        settings: "AskSettings | None" = None,
        progress: Notify = silent,
        **options: Unpack[AskOptions],
    ) -> "Answer":
        """Return the best answer to a question, or no answer if the best document is not similar enough.

        Args:
            question: The question's text.
            threshold: Minimum cosine; None uses the value of `settings`, or the one that `sonde tune threshold` stored.
            settings: Base settings; each option overrides the field of the same name.
            progress: Receives messages.
            **options: Any field of `sonde.AskSettings`: `field` (the metadata field that holds the answer) and `mode`.

        Raises:
            UsageError: The question is empty, or a setting is not valid.
            SondeError: The collection's model is not available.

        Example:
            >>> fruit.ask("a yellow fruit", threshold=0.2).answer
            'Bananas are yellow.'
            >>> fruit.ask("who won the match", threshold=0.9).answer is None
            True
        """
        from ...pipelines.search.ask import AskSettings, ask

        chosen = {} if threshold is None else {"threshold": threshold}
        given = settings_from(AskSettings, settings, {**options, **chosen}, "ask")
        return ask(
            self.stored, question, threshold=given.threshold, field=given.field, mode=given.mode, notify=progress
        )

    def model_warning(self) -> str | None:
        """Return a warning if the model does not suit the collection's content, else None.

        A collection of questions needs a model that places similar questions close together. A collection of passages
        needs a model that places a question close to its answer.

        Example:
            >>> fruit.model_warning() is None
            True
        """
        from ...pipelines.search.ask import fit_of_model

        return fit_of_model(self.stored)

    def search_many(
        self,
        queries: Texts,
        k: int | None = None,
        *,
        settings: "SearchSettings | None" = None,
        **options: Unpack[SearchOptions],
    ) -> "Iterator[Results]":
        """Yield the results of each query; the queries are encoded together. See `search`.

        Example:
            >>> [results[0].text for results in fruit.search_many(["yellow fruit", "petrol"], k=1)]
            ['Bananas are yellow.', 'Cars need fuel.']
        """
        from ...pipelines.search.search import search_many

        return search_many(self.stored, queries, search_settings("search_many", k, settings, options))

    def search_queries(
        self,
        queries: "str | Path | Sequence[Query]",
        k: int | None = None,
        *,
        run: str | Path | None = None,
        settings: "SearchSettings | None" = None,
        progress: Notify = silent,
        **options: Unpack[SearchOptions],
    ) -> "list[tuple[str, Results]]":
        """Return the results of queries that have ids and, if `run` is given, write them as a TREC run file.

        Args:
            queries: A JSONL file with `_id` and `text`, plain or gzipped, or pairs of an id and a text.
            k: Number of documents to return for each query; None uses the value of `settings`.
            run: The run file to write. With it, the excerpt of a hit is its whole passage, which saves time.
            settings: Base settings; each option overrides the field of the same name.
            progress: Receives messages, such as the download of a reranker.
            **options: Any field of `sonde.SearchSettings`.

        Raises:
            UsageError: A setting, the filter or a query is not valid.
            SondeError: The file of queries is not readable, or a model is not available.

        Example:
            >>> asked = [("q1", "yellow fruit"), ("q2", "petrol")]
            >>> [(key, results[0].text) for key, results in fruit.search_queries(asked, k=1)]
            [('q1', 'Bananas are yellow.'), ('q2', 'Cars need fuel.')]
        """
        from ...pipelines.evaluate.trec import read_queries, run_queries

        given = read_queries(Path(queries)) if isinstance(queries, str | Path) else checked_pairs(queries)
        chosen = search_settings("search_queries", k, settings, options)
        return run_queries(self.stored, given, chosen, None if run is None else Path(run), progress)

    def similar(
        self,
        id: str | int,
        k: int | None = None,
        *,
        settings: "SearchSettings | None" = None,
        **options: Unpack[SearchOptions],
    ) -> "Results":
        """Return the k documents most similar to the stored document `id`, without itself; options as for `search`.

        Raises:
            SondeError: No document has this id.
            UsageError: A setting or the filter is not valid.

        Example:
            >>> apple = fruit.search("apples", k=1)[0]
            >>> fruit.similar(apple.id, k=1)[0].text
            'Bananas are yellow.'
        """
        from ...pipelines.search.search import similar

        return similar(self.stored, id, search_settings("similar", k, settings, options))

    def like(
        self,
        text: str,
        k: int | None = None,
        *,
        settings: "SearchSettings | None" = None,
        **options: Unpack[SearchOptions],
    ) -> "Results":
        """Return the k documents most similar to an example text, stored or not; options as for `search`.

        Raises:
            UsageError: The text is empty, or a setting or the filter is not valid.
            SondeError: The collection's model is not available.

        Example:
            >>> fruit.like("Lemons are yellow too.", k=1)[0].text
            'Bananas are yellow.'
        """
        from ...pipelines.search.search import like

        return like(self.stored, text, search_settings("like", k, settings, options))

    def reranker(self) -> "Reranker":
        """Return the second stage that a search uses by default: late interaction over the collection's bi-encoder.

        Raises:
            SondeError: The collection's model is not available.

        Example:
            >>> fruit.reranker().score("a yellow fruit", ["bananas", "cars"]).argmax()
            np.int64(0)
        """
        from ...pipelines.search.rerank.models import reranker_for

        with self.stored.view() as view:
            return reranker_for(view, None)

    def embed(self, texts: Texts, *, query: bool = False) -> "np.ndarray":
        """Embed texts with the collection's bi-encoder; return float32 [n, d].

        Args:
            texts: One or several texts. Only the beginning of a text longer than the model's window is used.
            query: Whether the texts are queries, for models with a query prompt.

        Raises:
            UsageError: A text is not a string.
            SondeError: The collection's model is not available.

        Example:
            >>> fruit.embed(["a ripe fruit", "a fast car"]).shape
            (2, 384)
        """
        return self.stored.encoder.encode_texts(as_texts(texts, "text"), query)

    def facets(self) -> "list[Facet]":
        """Return the available filters: metadata fields with their values, then labels, clusters and so on.

        Raises:
            SondeError: The collection cannot be read.

        Example:
            >>> pens = [{"id": "a", "text": "A red pen", "stars": 5}, {"id": "b", "text": "A blue pen", "stars": 2}]
            >>> shop = sonde.index(pens, to=folder / "pens.sonde")
            >>> [(facet.name, facet.type, facet.low, facet.high) for facet in shop.facets()]
            [('stars', 'integer', 2, 5)]
        """
        from ...pipelines.search.facets import facets

        with self.stored.view() as view:
            return facets(view)

    def choices_among(self, ids: Sequence[str], known: "Iterable[Facet]") -> dict[str, list[tuple[Value, int]]]:
        """Count how often each choice of a facet occurs in the given documents, most frequent first.

        Args:
            ids: Document ids; unknown ids are ignored.
            known: Facets of this collection; facets without choices are ignored.

        Raises:
            UsageError: `known` contains something other than facets.

        Example:
            >>> shop.tag("cheap", where="stars < 3").documents
            1
            >>> shop.choices_among(["a", "b"], shop.facets())
            {'tag:cheap': [(False, 1), (True, 1)]}
        """
        from ...pipelines.search.facets import choices_among

        with self.stored.view() as view:
            return choices_among(view, ids, known)

    def example_queries(self, most: int = 6, seed: int = 0) -> list[str]:
        """Return example queries with good answers: phrases that occur in several texts, else titles or words.

        Args:
            most: Maximum number of queries.
            seed: Random seed of the sample of texts.

        Raises:
            SondeError: The collection cannot be read.

        Example:
            >>> texts = ["My red bicycle", "A red bicycle came", "Green tea", "Warm bread", "Cold rain"]
            >>> sonde.index(texts, to=folder / "bicycles.sonde").example_queries()
            ['red bicycle']
        """
        from ...pipelines.analysis.describe import example_queries

        with self.stored.view() as view:
            return example_queries(view, most, seed)

    def get(self, id: str | int) -> StoredDocument:
        """Return the document with this id: its title, text, language and metadata.

        If the id may not exist, ask `id in collection` first, or use `documents`.

        Raises:
            SondeError: No document has this id.

        Example:
            >>> found = shop.get("a")
            >>> found.text, found.metadata
            ('A red pen', {'stars': 5})
        """
        key = as_text(id, "id")
        found = self.documents([key])
        if key not in found:
            said = f"there is no document with the id {shown_id(key)}"
            raise SondeError(said, code="not-found", field="id", value=key)
        return found[key]

    def documents(self, ids: Ids) -> dict[str, StoredDocument]:
        """Return documents by id, as it is given, in collection order; unknown ids are left out.

        Raises:
            SondeError: The collection cannot be read.

        Example:
            >>> list(shop.documents(["b", "nobody", "a"]))
            ['a', 'b']
        """
        with self.stored.view() as view:
            numbers = numbers_by_id(view.catalog, as_texts(ids, "id"))
            given: dict[int, list[str]] = {}
            for id, number in numbers.items():  # of which two may differ only in the form of their accents
                given.setdefault(number, []).append(id)
            found = view.documents(list(given))
            return {id: document for number, document in found.items() for id in given[number]}

    def matching(self, where: str, k: int = 10, length: int | None = None) -> tuple[int, list[DocumentText]]:
        """Return how many documents match a filter, and the first k of them.

        Args:
            where: A filter, like the condition of an SQL WHERE.
            k: Number of documents to return, 0 or more.
            length: Maximum number of characters of each text; whole texts if None.

        Raises:
            UsageError: The filter is not valid.

        Example:
            >>> count, first = shop.matching("stars > 1", k=1, length=5)
            >>> count, first[0].text
            (2, 'A red')
        """
        from ...pipelines.search.filters import documents_where

        with self.stored.view() as view:
            numbers = documents_where(view.catalog, where)
            return len(numbers), list(chosen_texts(view.catalog, numbers[:k].tolist(), length))

    def best_passage(self, id: str, query: str) -> str:
        """Return the document's title followed by its passage that is most similar to a query.

        Raises:
            SondeError: No document has this id, or the model is not available.

        Example:
            >>> shop.best_passage("b", "something blue")
            'A blue pen'
        """
        from ...pipelines.search.excerpts import best_passage

        with self.stored.view() as view:
            return best_passage(view, id, query)
