"""The tools of the MCP server; their docstrings and annotations are what an assistant reads."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Annotated, Any, Concatenate, ParamSpec, TypeVar

from ...indexer.errors import SondeError, UsageError, arg, did_you_mean, out_of_range
from ...indexer.wording import existing
from ...pipelines.search.results import NOT_CLOSE, NOTHING_ANSWERS, Mode
from ..api import Collection
from ..api.served import UNREADABLE, Opening
from .answers import MOST_HITS, PART, answer_of, asked, checked, document_of, filled, hit_of, value_of

MOST_TEXTS = 100
LONGEST = 100_000
"""Characters of a text that an assistant sends, at most."""
ALL = "all"
"""Names all collections in a search."""

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


def told(tool: Callable[Concatenate[S, P], dict[str, Any]]) -> Callable[Concatenate[S, P], dict[str, Any]]:
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
            UsageError: Two collections have the same name, or one has the name that means all.
        """
        self._collections = {each.name: each for each in collections}
        if len(self._collections) < len(collections):
            names = [each.name for each in collections]
            double = next(name for name in names if names.count(name) > 1)
            raise UsageError(f"two collections have the name {double!r}: rename the folder of one")
        if len(collections) > 1 and ALL in self._collections:
            raise UsageError(f"a collection is named {ALL!r}, which means all collections: rename its folder")

    @property
    def every(self) -> list[Callable[..., dict[str, Any]]]:
        """The tools that only read."""
        return [
            self.collections, self.search, self.ask, self.similar, self.get_document, self.label,
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
        offset: Annotated[int, "Hits to skip: the next_offset of the page before."] = 0,
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
            "offset": offset,
        }  # fmt: skip
        if offset < 0:
            raise out_of_range("offset", offset, "give 0 or more")
        if collection == ALL and ALL not in self._collections:
            return self._search_all(query, options | {"k": max(k + offset, MOST_HITS), "offset": 0}, k, offset)
        chosen = self._one(collection)
        found = chosen.search(query, **options)
        is_id = query.strip() in chosen
        notes = ["the query is the id of a document: `get_document` returns it"] if is_id else []
        return answer_of(found, *notes, more=offset + k if len(found) == k else None)

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
        with self._owner_of(id, collection) as chosen:
            return answer_of(chosen.similar(id, k=checked("k", k, MOST_HITS), where=where))

    @told
    def get_document(
        self,
        id: Id,
        field: Annotated[str | None, "A metadata column: its value is returned instead of the text."] = None,
        offset: Annotated[int, "The character to begin at, such as the `start` of a hit."] = 0,
        length: Annotated[int, f"Characters to return, 1 to {PART:,}."] = PART,
        collection: Name = None,
    ) -> dict[str, Any]:
        """Return the text of a document, with its title and metadata; a long text in parts, by `next_offset`.

        Long metadata values are cut; `field` returns one in parts.
        """
        if offset < 0:
            raise out_of_range("offset", offset, "give 0 or more")
        checked("length", length, PART)
        with self._owner_of(id, collection) as chosen:
            found = chosen.get(id)
        if field is None:
            return document_of(found, offset, length)
        if field not in (known := chosen.fields()):
            said = f"there is no metadata column {field!r}{did_you_mean(field, known)}: {existing(known)}"
            raise UsageError(said, field="field", value=field)
        return value_of(found, field, offset, length)

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

        `probabilities` are those of the labels in the answer, compared with the other labels. `none` is each text's
        chance, 0 to 1, that no label fits.
        """
        if len(labels) == 1:
            raise UsageError(f"{next(iter(labels))!r} is the only label: give two or more", field="labels")
        if len(texts) > MOST_TEXTS:
            raise UsageError(f"{len(texts):,} texts; the maximum for one call is {MOST_TEXTS}", field="texts")
        if too_long := next((each for each in texts if len(each) > LONGEST), None):
            raise UsageError(f"a text has {len(too_long):,} characters; the maximum is {LONGEST:,}", field="texts")
        found = self._one(collection).classify(texts, labels, none=none)
        best = [max(each.scores.values()) for each in found]
        return {
            "labels": [each.label for each in found],
            "probabilities": [_rounded(value) for value in best],
            "none": [_rounded(each.none) for each in found],
        }

    def _search_all(self, query: str, options: dict[str, Any], k: int, offset: int) -> dict[str, Any]:
        """Return k hits of all collections by relevance, which is comparable between them, from an offset on."""
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
        more = filled(next_offset=offset + k if len(hits) > offset + k else None)
        return filled(notes=notes) | {"hits": hits[offset : offset + k]} | more

    def _one(self, name: str | None) -> Collection:
        known = list(self._collections)
        if name is None and len(known) > 1:
            raise UsageError(f"name the {arg('collection')}: {existing(known)}", field="collection")
        given = known[0] if name is None else name.removesuffix(".sonde")
        alike = [each for each in known if each.casefold() == given.casefold()]
        if given not in known and len(alike) != 1:
            said = f"only `search` takes {ALL}" if given == ALL else f"there is no collection {name!r}"
            raise UsageError(f"{said}: {existing(known)}", field="collection", value=name)
        return self._collections[given if given in known else alike[0]].collection

    @contextmanager
    def _owner_of(self, id: str, collection: str | None) -> Iterator[Collection]:
        """Yield a collection; if it lacks a document, the message names the others that have the id.

        Raises:
            SondeError: It has no such document.
        """
        chosen = self._one(collection)
        try:
            yield chosen
        except SondeError as error:
            others = [name for name, each in self._collections.items() if _has(each, id)]
            if id in chosen or not others:
                raise
            said = f"{error}: it is in {' and '.join(others)}"
            raise SondeError(said, code="not-found", field="id", value=id) from None


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


def _has(opening: Opening, id: str) -> bool:
    try:
        return id in opening.collection
    except UNREADABLE:
        return False


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
