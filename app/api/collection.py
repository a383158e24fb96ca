"""The Python API: `sonde.index`, `sonde.open`, and the `Collection` that they return."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...indexer.arguments import Ids, Texts
from ...indexer.encoder import Encoder
from ...indexer.ingest import BuildReport, BuildSettings, index_source
from ...indexer.progress import Notify, silent
from ...indexer.readers import ReadOptions
from ...indexer.store import export as exporting
from ...indexer.upkeep.delete import CompactReport, compact
from ...indexer.upkeep.info import Info, info
from ...indexer.upkeep.repair import repair
from ...indexer.upkeep.verify import Finding, verify
from ...pipelines.analysis.selection import delete
from ...pipelines.label import (
    Classified,
    Entailment,
    LabelReport,
    Labels,
    LabelSettings,
    check_sentences,
    label_collection,
    load_nli,
)
from ...pipelines.label import classify as label_texts
from ...pipelines.label import entail as judge_pair
from ...pipelines.search.results import Results
from ...pipelines.search.search import search, search_many
from ...pipelines.search.settings import SearchSettings
from ...pipelines.search.similar import like, similar
from .analysis import Analysed, Judged, Overviewed
from .options import PROGRESS, settings_from

if TYPE_CHECKING:
    import pandas as pd

    from ...pipelines.search.ask import Answer, AskSettings


class Collection(Analysed, Judged, Overviewed):
    """A collection of texts that can be searched.

    Open one with `sonde.open` or make one with `sonde.index`. One object may be used from several threads; every
    call works on the newest committed state.

    Example:
        >>> texts = ["Apples are red.", "Bananas are yellow.", "Cars need fuel."]
        >>> fruit = sonde.index(texts, to=folder / "fruit.sonde")
        >>> len(fruit)
        3
    """

    report: BuildReport | None = None
    """What `sonde.index` did, on the collection that it returned."""

    def __len__(self) -> int:
        with self.view() as view:
            return view.catalog.counts()[0]

    def __repr__(self) -> str:
        return f"Collection({str(self.path)!r}, {len(self):,} documents)"

    def search(
        self, query: str, k: int | None = None, *, settings: SearchSettings | None = None, **options: Any
    ) -> Results:
        """Return the k documents that answer the query best.

        Args:
            query: What to look for, in words.
            k: Documents to return, 1 or more; None takes that of `settings`, which is 10 by default.
            settings: Settings to start from; an option overrides its field.
            **options: Any field of `sonde.SearchSettings`: `mode`, `where`, `threshold`, `offset`, `explain` …

        Raises:
            UsageError: A setting, the filter or the query (an empty one) cannot be right.
            SondeError: The collection's model cannot be had.

        Example:
            >>> fruit.search("a yellow fruit", k=1)[0].text
            'Bananas are yellow.'
        """
        return search(self, query, _search_settings("search", k, settings, options))

    def ask(
        self, question: str, threshold: float | None = None, *, settings: "AskSettings | None" = None, **options: Any
    ) -> "Answer":
        """Return the best answer to a question, or none where the best document is not similar enough.

        Args:
            question: What is asked.
            threshold: Least cosine; None takes that of `settings`, or what `sonde tune threshold` stored.
            settings: Settings to start from; an option overrides its field.
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
        return ask(self, question, threshold=given.threshold, field=given.field, mode=given.mode)

    def search_many(
        self, queries: Texts, k: int | None = None, *, settings: SearchSettings | None = None, **options: Any
    ) -> Iterator[Results]:
        """Yield the results of many queries, which are encoded together; see `search`.

        Example:
            >>> [results[0].text for results in fruit.search_many(["yellow fruit", "petrol"], k=1)]
            ['Bananas are yellow.', 'Cars need fuel.']
        """
        return search_many(self, queries, _search_settings("search_many", k, settings, options))

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
        return similar(self, id, _search_settings("similar", k, settings, options))

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
        return like(self, text, _search_settings("like", k, settings, options))

    def label(
        self, labels: Labels, *, settings: LabelSettings | None = None, progress: Notify = silent, **options: Any
    ) -> LabelReport:
        """Give every document a label, from the labels' names alone, and keep the result as a run.

        Args:
            labels: Names, "name: description" texts, or a mapping of names to descriptions.
            settings: Settings to start from; an option overrides its field.
            progress: Receives progress and messages.
            **options: Any field of `sonde.LabelSettings`: `engine`, `multi_label`, `threshold`, `budget`, `name` …

        Raises:
            UsageError: The labels or a setting cannot be right, or the run's name is taken.
            SondeError: A model cannot be had, or another process is writing.

        Example:
            >>> fruit.label(["fruit", "vehicles"], engine="similarity").counts
            {'fruit': 2, 'vehicles': 1}
        """
        given = settings_from(LabelSettings, settings, options, "label", PROGRESS)
        return label_collection(self, labels, given, notify=progress)

    def info(self) -> Info:
        """Return what the collection holds: counts, model, index with its measured recall and latency, sizes.

        Example:
            >>> fruit.info().documents
            3
        """
        return info(self)

    def delete(self, ids: Ids = (), *, where: str | None = None, progress: Notify = silent) -> int:
        """Delete documents by id (one or several) or by filter; return how many were deleted.

        Raises:
            SondeError: An id does not exist (nothing is deleted then), or another process is writing.
            UsageError: The filter cannot be right, or neither ids nor a filter were given.

        Example:
            >>> fruit.delete(where="title = 'no such title'")
            0
        """
        return delete(self, ids, where, progress)

    def compact(self, *, progress: Notify = silent) -> CompactReport:
        """Rewrite the collection without tombstones and with its segments merged.

        Raises:
            SondeError: Another process is writing, or the disk is full; the collection is then as it was.

        Example:
            >>> fruit.compact().removed
            0
        """
        return compact(self.path, notify=progress)

    def verify(self) -> list[Finding]:
        """Check every digest and count, and both derived indexes against the truth; no findings means all is well.

        Example:
            >>> fruit.verify()
            []
        """
        return verify(self)

    def repair(self, *, progress: Notify = silent) -> list[str]:
        """Rebuild what `verify` finds broken, as far as it can be derived; return what was done.

        Raises:
            SondeError: Vectors are lost whose texts must be embedded anew and whose model cannot be had.

        Example:
            >>> fruit.repair()
            []
        """
        return repair(self, progress)

    def rows(self, *, vectors: bool = False) -> Iterator[dict[str, Any]]:
        """Yield every document as a dictionary: id, title, text, its metadata and, if asked, its vector.

        Example:
            >>> [row["text"] for row in fruit.rows()][:1]
            ['Apples are red.']
        """
        return exporting.rows(self, vectors=vectors)

    def to_pandas(self, *, vectors: bool = False) -> "pd.DataFrame":
        """Return all documents with their metadata as a DataFrame.

        Raises:
            MissingExtraError: pandas is not installed.

        Example:
            >>> fruit.to_pandas().columns.tolist()[:3]
            ['id', 'title', 'text']
        """
        return exporting.to_pandas(self, vectors=vectors)


def _search_settings(
    method: str, k: int | None, settings: SearchSettings | None, options: dict[str, Any]
) -> SearchSettings:
    return settings_from(SearchSettings, settings, options if k is None else {"k": k, **options}, method)


def open(path: str | Path, *, device: str = "auto") -> Collection:
    """Open an existing collection; its model is loaded when a search first needs it.

    Args:
        path: The folder, `NAME.sonde`.
        device: Where to encode queries: "auto", "cpu", "cuda", "cuda:1" …

    Raises:
        SondeError: There is no collection at `path`, or its format cannot be read.

    Example:
        >>> sonde.open(folder / "fruit.sonde").search("petrol", k=1)[0].text
        'Cars need fuel.'
    """
    return Collection.open(path, device=device)


def index(
    source: Any,
    to: str | Path,
    *,
    text: str | Sequence[str] | None = None,
    title: str | None = None,
    id: str | None = None,
    read: ReadOptions | None = None,
    settings: BuildSettings | None = None,
    encoder: Encoder | None = None,
    progress: Notify = silent,
    **options: Any,
) -> Collection:
    """Bring the collection at `to` up to date with a source; make it if it does not exist.

    Args:
        source: A path or several (CSV, TSV, JSON, JSONL, Parquet, XLSX, each also .gz or .zst; text, Markdown, HTML
            and PDF files or folders of them), or Python data: strings, dictionaries, a DataFrame, an Arrow table, a
            dataset.
        to: The collection's folder, `NAME.sonde`.
        text: Column, or columns, of the text; found by name and content where None, like `title` and `id`.
        title: Column of the title.
        id: Column of the document's id; without one, a hash of the text identifies a document.
        read: Further settings of the reader, in place of `text`, `title` and `id`.
        settings: Settings of the build to start from; an option overrides its field.
        encoder: A bi-encoder of your own.
        progress: Receives progress and messages.
        **options: Any field of `sonde.BuildSettings`: `model`, `device`, `dtype`, `sync` …

    Raises:
        UsageError: No text column was found, or the settings contradict the collection.
        SondeError: The source cannot be read, another process is writing, or the disk is full.

    Example:
        >>> tickets = [{"id": 1, "text": "My parcel is late", "stars": 2}, {"id": 2, "text": "Great!", "stars": 5}]
        >>> happy = sonde.index(tickets, to=folder / "tickets.sonde")
        >>> happy.search("delivery", k=1, where="stars <= 2")[0].id
        '1'
    """
    columns = (text,) if isinstance(text, str) else tuple(text) if text else None
    reading = read or ReadOptions(text=columns, title=title, id=id)
    building = settings_from(BuildSettings, settings, options, "index", ("text", "title", "id", "read", *PROGRESS))
    report = index_source(source, Path(to), reading, building, encoder=encoder, notify=progress)
    collection = Collection(Path(to), encoder)
    collection.report = report
    return collection


def classify(
    texts: Texts,
    labels: Labels,
    *,
    settings: LabelSettings | None = None,
    encoder: Encoder | None = None,
    progress: Notify = silent,
    **options: Any,
) -> list[Classified]:
    """Label texts that are in no collection, from the labels' names alone.

    Args:
        texts: One text or several; none may be empty.
        labels: Names, "name: description" texts, or a mapping of names to descriptions.
        settings: Settings to start from; an option overrides its field.
        encoder: A bi-encoder of your own.
        progress: Receives messages.
        **options: Any field of `sonde.LabelSettings`: `engine`, `model`, `multi_label`, `threshold`, `template` …

    Raises:
        UsageError: The labels, a setting or a text cannot be right.
        SondeError: A model cannot be had.

    Example:
        >>> sonde.classify(["My parcel never came."], ["refund", "delivery"], engine="similarity")[0].label
        'delivery'
    """
    given = settings_from(LabelSettings, settings, options, "classify", ("encoder", *PROGRESS))
    return label_texts(texts, labels, given, encoder=encoder, notify=progress)


def entail(premise: str, hypothesis: str, *, model: str | None = None, device: str = "auto") -> Entailment:
    """Say whether a sentence follows from another: entailment, neutral or contradiction, with probabilities.

    Args:
        premise: What is known.
        hypothesis: What may follow from it.
        model: "bundled", the folder of an NLI model or a hub name; the bundled one where None. On a GPU,
            facebook/bart-large-mnli is more accurate.
        device: "auto", "cpu", "cuda" …

    Raises:
        UsageError: A sentence is empty, or the model's name cannot be right.
        SondeError: The model cannot be had, or is no NLI model.

    Example:
        >>> sonde.entail("A man plays a guitar.", "", model="bundled")
        Traceback (most recent call last):
        ...
        sonde.indexer.errors.UsageError: the hypothesis is empty: give two sentences
    """
    check_sentences(premise, hypothesis)
    return judge_pair(premise, hypothesis, load_nli(model, device=device))
