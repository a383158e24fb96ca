"""The tools of the MCP server; their docstrings and annotations are what an assistant reads."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date, datetime
from functools import wraps
from typing import Annotated, Any, Concatenate, ParamSpec, TypeVar

from ...indexer.errors import SondeError, UsageError, arg, out_of_range
from ...indexer.store.fields import Period, json_value
from ...indexer.wording import existing
from ...pipelines.search.results import NOT_CLOSE, NOTHING_ANSWERS, Mode
from ..api import Collection
from ..api.opening import UNREADABLE, Opening
from .answers import (
    MOST_HITS,
    MOST_VALUES,
    PART,
    answer_of,
    asked,
    checked,
    counts_of,
    cut,
    filled,
    hit_of,
)

MOST_TEXTS = 100
LONGEST = 100_000
"""Characters of a text that an assistant sends, at most."""
ALL = "all"
"""Names all collections in a search."""
DAYS = 1_500
"""Dates with many different days are counted by month, and by year if the first and last are further apart."""

Where = Annotated[
    str | None,
    "SQL condition on metadata and runs, such as: year >= 2020 AND lang = 'en', or \"topic:topics name\" = 'shipping'",
]
Name = Annotated[str | None, "A collection's name, as `collections` lists it. Needed only if there are several."]
Hits = Annotated[int, f"Documents to return, 1 to {MOST_HITS}."]
Id = Annotated[str, "A document's id, as search returns it."]
Run = Annotated[str | None, "A run's name, as `collections` lists it; by default the newest run."]

P = ParamSpec("P")
S = TypeVar("S", bound="Tools")


def told(
    tool: Callable[Concatenate[S, P], dict[str, Any]],
) -> Callable[Concatenate[S, P], dict[str, Any]]:
    """Let a tool raise its errors as `ToolError`, which the assistant reads."""

    @wraps(tool)
    def told(self: S, *args: P.args, **given: P.kwargs) -> dict[str, Any]:
        from mcp.server.mcpserver.exceptions import ToolError

        for name, value in given.items():
            if isinstance(value, str) and len(value) > LONGEST:
                raise ToolError(f"{name} has {len(value):,} characters; the maximum is {LONGEST:,}")
        try:
            return tool(self, *args, **given)
        except SondeError as error:
            raise ToolError(self.without_folders(error)) from None

    return told


class Tools:
    """Tools that read collections, each by its name."""

    def __init__(self, collections: Sequence[Opening]) -> None:
        """Take the collections by their names.

        Raises:
            UsageError: Two collections have the same name.
        """
        self._collections = {each.name: each for each in collections}
        if len(self._collections) < len(collections):
            names = [each.name for each in collections]
            double = next(name for name in names if names.count(name) > 1)
            raise UsageError(f"two collections have the name {double!r}: rename the folder of one")

    @property
    def every(self) -> list[Callable[..., dict[str, Any]]]:
        """The tools that only read."""
        return [
            self.collections, self.search, self.ask, self.similar, self.get_document, self.count, self.compare,
            self.label,
        ]  # fmt: skip

    def named(self) -> dict[str, Opening]:
        """Return the collections by name."""
        return self._collections

    def without_folders(self, error: Exception) -> str:
        """Return what is wrong without the paths to the collections: an assistant knows them by their names."""
        said = str(error)
        for each in self._collections.values():
            said = each.without_folder(said)
        return said

    @told
    def collections(self) -> dict[str, Any]:
        """List the collections: documents, metadata columns with their types, stored runs and the answer threshold.

        A collection that cannot be used has an `error` instead, which says why.
        """
        return {"collections": [{"name": name} | _listed(each) for name, each in self._collections.items()]}

    @told
    def search(
        self,
        query: Annotated[str, "What to look for, in words."],
        k: Hits = 10,
        where: Where = None,
        mode: Annotated[Mode, "hybrid, dense (meaning) or lexical (words)."] = "hybrid",
        threshold: Annotated[
            float | None, "Keep only hits whose cosine (for lexical, BM25) is at least this; it is no relevance."
        ] = None,
        rerank: Annotated[bool, "Rerank the best hits with a slower, more accurate second stage."] = False,
        collection: Annotated[
            str | None, "A collection's name; all: search every one. Needed if there are several."
        ] = None,
    ) -> dict[str, Any]:
        """Find the documents that answer a query best, each with its best passage, id, relevance and metadata.

        Relevance is the estimated chance, 0 to 1, that a document is an answer. If every hit is weak, the notes begin
        with "nothing here seems to answer this", or with "no hit is close to this in meaning" if some hits have all
        words of the query. A relevant hit may be about something similar, such as another product, disease or year:
        check that the excerpt names what was asked. `copies` are documents with nearly the same text, left out of the
        hits; their metadata may differ. For main subjects, use `list_topics` or `count`.
        """
        options: dict[str, Any] = {
            "k": checked("k", k, MOST_HITS), "where": where, "mode": mode, "threshold": threshold, "rerank": rerank,
        }  # fmt: skip
        if collection == ALL and ALL not in self._collections:
            return self._search_all(query, options)
        chosen = self._one(collection)
        found = chosen.search(query, **options)
        is_id = query.strip() in chosen
        return answer_of(found, *(["the query is the id of a document: `get_document` returns it"] if is_id else []))

    @told
    def ask(
        self,
        question: Annotated[str, "A question."],
        threshold: Annotated[float | None, "Minimum cosine of an answer; by default the collection's own."] = None,
        collection: Name = None,
    ) -> dict[str, Any]:
        """Return one answer to a question, with its document; null if nothing in the collection is similar enough.

        It suits collections of questions with answers, or of passages. Check that title and excerpt name what was
        asked: the answer may be that to a similar question.
        """
        return asked(self._one(collection).ask(question, threshold))

    @told
    def similar(self, id: Id, k: Hits = 10, where: Where = None, collection: Name = None) -> dict[str, Any]:
        """Find the documents most similar to a stored one."""
        return answer_of(self._one(collection).similar(id, k=checked("k", k, MOST_HITS), where=where))

    @told
    def get_document(
        self,
        id: Id,
        offset: Annotated[int, "The character to begin at, such as the `start` of a hit."] = 0,
        length: Annotated[int, f"Characters to return, 1 to {PART:,}."] = PART,
        collection: Name = None,
    ) -> dict[str, Any]:
        """Return the text of a document, with its title and metadata; a long text in parts, by `next_offset`."""
        if offset < 0:
            raise out_of_range("offset", offset, "give 0 or more")
        end = offset + checked("length", length, PART)
        found = self._one(collection).get(id)
        size = len(found.text)
        part = filled(characters=size, next_offset=end if end < size else None) if offset or end < size else {}
        values = {name: cut(json_value(value), PART) for name, value in found.metadata.items()}
        return {"id": found.id, "title": found.title, "text": found.text[offset:end], **part, "metadata": values}

    @told
    def count(
        self,
        where: Where = None,
        by: Annotated[str | None, "A metadata column, or a run's column such as: topic:topics name"] = None,
        period: Annotated[Period | None, "Counts a column of dates by this period."] = None,
        collection: Name = None,
    ) -> dict[str, Any]:
        """Count documents: all, those that pass a condition, or per value of a column. Numbers also get their mean.

        At most 50 values are listed, dates in their order, others by frequency; `others` counts the rest. Dates with
        more values are counted by month or year.
        """
        chosen = self._one(collection)
        found = None if by is None else chosen.count_by(by, where, period=period)
        passing = found.documents if found else len(chosen) if where is None else chosen.matching(where, k=0)[0]
        notes = [chosen.explain_filter(where)] if where is not None and not passing else []
        if found is None or by is None:
            return {"documents": passing} | filled(notes=notes)
        if period is None and found.distinct > MOST_VALUES and isinstance(found.low, date):
            period = "month" if (_day(found.high) - _day(found.low)).days <= DAYS else "year"
            found = replace(chosen.count_by(by, where, period=period), low=found.low, high=found.high)
        return counts_of(found) | filled(period=period, notes=notes)

    @told
    def compare(
        self,
        first: Annotated[str, "SQL condition of the first part, such as: stars <= 2"],
        second: Annotated[str, "SQL condition of the second part."],
        collection: Name = None,
    ) -> dict[str, Any]:
        """Compare two parts of a collection: their sizes, and the words that are more frequent in each.

        Only words whose difference is beyond chance are listed (5 % for all words together). `similarity` is the cosine
        of the parts' mean vectors.
        """
        found = self._one(collection).contrast([first, second])
        sides = zip((first, second), found.sides, strict=True)
        return {
            "similarity": round(found.similarity, 4),
            **filled(documents_in_both=found.common or None),
            "parts": [
                {"where": where, "documents": side.documents,
                 "terms": list(side.beyond_chance)}
                for where, side in sides
            ],
        }  # fmt: skip

    @told
    def label(
        self,
        texts: Annotated[list[str], f"Texts to label, {MOST_TEXTS} at most."],
        labels: Annotated[
            dict[str, str] | list[str], "Two or more labels: a list of names, or each name with a description."
        ],
        none: Annotated[bool, "Whether texts that probably fit no label get the label none of these."] = False,
        collection: Name = None,
    ) -> dict[str, Any]:
        """Give each text the label that fits it best, from the labels' names and descriptions alone.

        `none` in the answer is each text's chance, 0 to 1, that no label fits.
        """
        if len(texts) > MOST_TEXTS:
            raise UsageError(f"{len(texts):,} texts; the maximum for one call is {MOST_TEXTS}", field="texts")
        if too_long := next((each for each in texts if len(each) > LONGEST), None):
            raise UsageError(f"a text has {len(too_long):,} characters; the maximum is {LONGEST:,}", field="texts")
        found = self._one(collection).classify(texts, labels, none=none)
        return {"labels": [each.label for each in found], "none": [_rounded(each.none) for each in found]}

    def _search_all(self, query: str, options: dict[str, Any]) -> dict[str, Any]:
        """Return the best hits of all collections by relevance, which is comparable between them."""
        hits, notes, wrong, denials = list[dict[str, Any]](), list[str](), list[Exception](), list[str | None]()
        for name, opening in self._collections.items():
            try:
                found = opening.collection.search(query, **options)
            except UNREADABLE as error:
                wrong.append(error)
                notes.append(f"{name}: {opening.without_folder(error)}")
                continue
            hits += [{"collection": name, **hit_of(hit)} for hit in found]
            denied = [each for each in (NOT_CLOSE, NOTHING_ANSWERS) for note in found.notes if note.startswith(each)]
            denials.append(denied[0] if denied else None if found else NOTHING_ANSWERS)
            notes += [f"{name}: {note}" for note in found.notes if not note.startswith((NOTHING_ANSWERS, NOT_CLOSE))]
        if len(wrong) == len(self._collections):
            raise wrong[0]
        hits.sort(key=lambda hit: -hit["relevance"])
        if hits and None not in denials:
            notes.insert(0, f"{NOT_CLOSE if NOT_CLOSE in denials else NOTHING_ANSWERS}: every hit is weak")
        return {"notes": notes, "hits": hits[: options["k"]]}

    def _one(self, name: str | None) -> Collection:
        known = list(self._collections)
        if name is None and len(known) > 1:
            raise UsageError(f"name the {arg('collection')}: {existing(known)}", field="collection")
        found = self._collections[known[0]] if name is None else self._collections.get(name.removesuffix(".sonde"))
        if found is None:
            raise UsageError(f"there is no collection {name!r}: {existing(known)}", field="collection", value=name)
        return found.collection


def _listed(opening: Opening) -> dict[str, Any]:
    try:
        return _described(opening.collection)
    except UNREADABLE as error:
        return {"error": opening.without_folder(error)}


def _described(collection: Collection) -> dict[str, Any]:
    info = collection.info()
    return {
        "documents": info.documents,
        "columns": info.fields,
        "language": info.language,
        "runs": [
            {"kind": str(run.kind), "name": run.name, "documents": run.documents}
            for run in collection.runs()
            if run.complete
        ],
        "threshold": collection.search_defaults().threshold,
    }


def _day(value: Any) -> date:
    return value if isinstance(value, date) and not isinstance(value, datetime) else value.date()


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
