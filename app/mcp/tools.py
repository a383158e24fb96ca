"""The tools of the MCP server; their docstrings and annotations are what an assistant reads."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import wraps
from typing import Annotated, Any, Concatenate, ParamSpec, TypeVar

from ...indexer.errors import SondeError, UsageError, arg, out_of_range
from ...indexer.store.fields import Period, json_value
from ...indexer.store.kinds import CLUSTER, TOPIC, RunKind
from ...indexer.wording import existing
from ...pipelines.search.results import Hit, Mode, Results
from ..api import Collection
from ..api.opening import UNREADABLE, Opening

MOST_HITS = 50
MOST_TEXTS = 100
LONGEST = 100_000
"""Characters of a text that an assistant sends, at most."""
SHOWN = 2_000
"""Characters of a passage in a list of hits; `get_document` gives the whole text."""
TERMS = 20
"""Words that a comparison lists for each side, at most."""

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
            raise ToolError(str(error)) from None

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
            raise UsageError("two collections have the same name: rename the folder of one")

    @property
    def every(self) -> list[Callable[..., dict[str, Any]]]:
        """All tools."""
        return [
            self.collections, self.search, self.ask, self.similar, self.get_document, self.count, self.compare,
            self.list_topics, self.list_clusters, self.list_taxonomy, self.members, self.trends, self.label,
        ]  # fmt: skip

    def named(self) -> dict[str, Opening]:
        """Return the collections by name."""
        return self._collections

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
        threshold: Annotated[float | None, "Keep only hits at least this similar: a cosine; BM25 for lexical."] = None,
        rerank: Annotated[bool, "Rerank the best hits with a slower, more accurate second stage."] = False,
        collection: Name = None,
    ) -> dict[str, Any]:
        """Find the documents that answer a query best, each with its best passage, id, relevance and metadata.

        Relevance is the estimated chance that a document is an answer, 0 to 1. If every hit is weak, the notes begin
        with "nothing here seems to answer this", or with "no hit is close to this in meaning" if some hits have all
        words of the query.
        """
        found = self._one(collection).search(
            query, k=_checked(k), where=where, mode=mode, threshold=threshold, rerank=rerank
        )
        return _answer(found)

    @told
    def ask(
        self,
        question: Annotated[str, "A question."],
        threshold: Annotated[float | None, "Minimum cosine of an answer; by default the collection's own."] = None,
        collection: Name = None,
    ) -> dict[str, Any]:
        """Return one answer to a question, or null if nothing in the collection is similar enough."""
        found = self._one(collection).ask(question, threshold)
        return {
            "answer": found.answer,
            "id": found.hit.id if found.hit else None,
            "similarity": found.similarity,
            "threshold": found.threshold,
            "notes": list(found.notes),
        }

    @told
    def similar(self, id: Id, k: Hits = 10, where: Where = None, collection: Name = None) -> dict[str, Any]:
        """Find the documents most similar to a stored one."""
        return _answer(self._one(collection).similar(id, k=_checked(k), where=where))

    @told
    def get_document(self, id: Id, collection: Name = None) -> dict[str, Any]:
        """Return the whole text of a document with its title and metadata."""
        found = self._one(collection).get(id)
        metadata = {name: json_value(value) for name, value in found.metadata.items()}
        return {"id": found.id, "title": found.title, "text": found.text, "metadata": metadata}

    @told
    def count(
        self,
        where: Where = None,
        by: Annotated[str | None, "A metadata column, or a run's column such as: topic:topics name"] = None,
        period: Annotated[Period | None, "Counts a column of dates by this period."] = None,
        collection: Name = None,
    ) -> dict[str, Any]:
        """Count documents: all, those that pass a condition, or per value of a column. Numbers also get their mean."""
        chosen = self._one(collection)
        if by is None:
            return {"documents": len(chosen) if where is None else chosen.matching(where, k=0)[0]}
        found = chosen.count_by(by, where, period=period)
        counted = {
            "documents": found.documents,
            "missing": found.missing,
            "distinct": found.distinct,
            "low": json_value(found.low),
            "high": json_value(found.high),
            "mean": json_value(found.mean),
            "values": [{"value": json_value(value), "documents": count} for value, count in found.values],
            "names": list(found.names) or None,
        }
        return {name: value for name, value in counted.items() if value is not None}

    @told
    def compare(
        self,
        first: Annotated[str, "SQL condition of the first part, such as: stars <= 2"],
        second: Annotated[str, "SQL condition of the second part."],
        collection: Name = None,
    ) -> dict[str, Any]:
        """Compare two parts of a collection: their sizes, and the words that are more frequent in each."""
        found = self._one(collection).contrast([first, second])
        sides = zip((first, second), found.sides, strict=True)
        return {
            "similarity": found.similarity,
            "parts": [
                {"where": where, "documents": side.documents, "terms": [term for term, _ in side.terms[:TERMS]]}
                for where, side in sides
            ],
        }

    @told
    def list_topics(self, run: Run = None, collection: Name = None) -> dict[str, Any]:
        """List the topics of a run, their sizes and terms; coarse:NAME, middle:NAME and fine:NAME are its levels."""
        return _items(self._one(collection), TOPIC, run)

    @told
    def list_clusters(self, run: Run = None, collection: Name = None) -> dict[str, Any]:
        """List the clusters of a run, with their sizes and terms."""
        return _items(self._one(collection), CLUSTER, run)

    @told
    def list_taxonomy(self, taxonomy: Run = None, collection: Name = None) -> dict[str, Any]:
        """List the groups of a taxonomy in the order of the tree, with their documents; people keep and edit these."""
        return self._one(collection).taxonomy(taxonomy).to_dict()

    @told
    def members(
        self,
        run: Annotated[str, "A run's name, as `collections` lists it."],
        number: Annotated[int, "The number of a topic, cluster, group or label."],
        k: Hits = 10,
        offset: Annotated[int, "Documents to skip."] = 0,
        kind: Annotated[str | None, "cluster, topic, taxonomy or label, if several runs have this name."] = None,
        collection: Name = None,
    ) -> dict[str, Any]:
        """Return the documents of a topic, cluster or label, the most typical ones first."""
        found = self._one(collection).members(run, number, kind, k=_checked(k), offset=offset)
        return {"documents": [{"id": each.id, "title": each.title, "text": each.text[:SHOWN]} for each in found]}

    @told
    def trends(
        self,
        run: Annotated[str, "A run of topics, clusters or labels, as `collections` lists it."],
        by: Annotated[str, "A metadata column with dates or numbers, such as a year."],
        kind: Annotated[str | None, "cluster, topic or label, if runs of several kinds have this name."] = None,
        collection: Name = None,
    ) -> dict[str, Any]:
        """Show which topics, clusters or labels grew or shrank: documents by period, and the change of their share.

        `change` is the item's share of the documents in the later half of the periods, minus its share in the earlier
        half.
        """
        found = self._one(collection).breakdown(run, by, kind)
        if len(found.parts) < 2:
            raise UsageError(f"{by!r} has only one value, so there is no trend", field="by", value=by)
        middle = len(found.parts) // 2
        early, late = found.counts[:, :middle], found.counts[:, middle:]
        change = late.sum(axis=1) / max(late.sum(), 1) - early.sum(axis=1) / max(early.sum(), 1)
        rows = [
            {"number": item.number, "name": item.name, "change": round(float(share), 4),
             "documents": {part: int(n) for part, n in zip(found.parts, counts, strict=True) if n}}
            for item, share, counts in zip(found.items, change, found.counts, strict=True)
        ]  # fmt: skip
        return {"later_half_from": found.parts[middle], "items": sorted(rows, key=lambda row: -row["change"])}

    @told
    def label(
        self,
        texts: Annotated[list[str], f"Texts to label, {MOST_TEXTS} at most."],
        labels: Annotated[dict[str, str], "Two or more labels, each with a description; a description may be empty."],
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
        return {"labels": [each.label for each in found], "none": [each.none for each in found]}

    def _one(self, name: str | None) -> Collection:
        known = list(self._collections)
        if name is None and len(known) > 1:
            raise UsageError(f"name the {arg('collection')}: {existing(known)}", field="collection")
        found = self._collections[known[0]] if name is None else self._collections.get(name.removesuffix(".sonde"))
        if found is None:
            raise UsageError(f"there is no collection {name!r}: {existing(known)}", field="collection", value=name)
        return found.collection


def _checked(k: int) -> int:
    if not 1 <= k <= MOST_HITS:
        raise out_of_range("k", k, f"give 1 to {MOST_HITS}")
    return k


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


def _items(collection: Collection, kind: RunKind, name: str | None) -> dict[str, Any]:
    found = collection.newest_run(kind, name)
    sizes = collection.item_sizes(found.run)
    items = [
        {"number": item.number, "name": item.name, "documents": sizes.get(item.number, 0), **item.data}
        for item in found.items
    ]
    return {"run": found.run.name, "items": items}


def _answer(results: Results) -> dict[str, Any]:
    tuned = {"tuned": dict(results.tuned)} if results.tuned else {}
    return {"notes": list(results.notes), **tuned, "hits": [_hit(hit) for hit in results]}


def _hit(hit: Hit) -> dict[str, Any]:
    return {
        "id": hit.id,
        "title": hit.title,
        "relevance": round(hit.relevance, 4),
        "weak": hit.weak,
        "score": round(hit.score, 4),
        "scores": {name: round(value, 4) for name, value in asdict(hit.scores).items() if value is not None},
        "excerpt": hit.excerpt.text,
        "copies": list(hit.copies),
        "metadata": {name: json_value(value) for name, value in hit.metadata.items()},
    }
