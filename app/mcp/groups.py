"""The tools of the MCP server about groups: topics, clusters, labels and taxonomies."""

from collections.abc import Callable
from typing import Annotated, Any

from ...indexer.errors import UsageError, out_of_range
from ...indexer.store.fields import name_times
from ...indexer.store.kinds import CLUSTER, TOPIC, RunKind
from ...pipelines.analysis.breakdown import OTHERS, RunBreakdown, row_of
from .answers import MOST_HITS, MOST_VALUES, checked, cut, filled, groups_of
from .tools import Hits, Name, Run, Tools, told

Number = Annotated[int | None, "The number of one group: with more terms, and typical documents."]
Groups = Annotated[int, f"Groups to list, 1 to {MOST_VALUES}."]
Offset = Annotated[int, "Groups to skip: the next_offset of the list before."]


class GroupTools(Tools):
    """Tools that read collections, and the groups of their runs."""

    @property
    def every(self) -> list[Callable[..., dict[str, Any]]]:
        """The tools that only read."""
        groups = [self.list_topics, self.list_clusters, self.list_taxonomy, self.members, self.trends]
        return [*super().every, *groups]

    @told
    def list_topics(
        self, run: Run = None, number: Number = None, k: Groups = 50, offset: Offset = 0, collection: Name = None
    ) -> dict[str, Any]:
        """List the topics of a run with their sizes and terms; coarse:NAME, middle:NAME and fine:NAME are its levels.

        Begin with the coarse level.
        """
        return self._groups(TOPIC, run, number, k, offset, collection)

    @told
    def list_clusters(
        self, run: Run = None, number: Number = None, k: Groups = 50, offset: Offset = 0, collection: Name = None
    ) -> dict[str, Any]:
        """List the clusters of a run, with their sizes and terms."""
        return self._groups(CLUSTER, run, number, k, offset, collection)

    @told
    def list_taxonomy(
        self,
        taxonomy: Run = None,
        depth: Annotated[int | None, "Levels to list, from the top; by default all."] = None,
        collection: Name = None,
    ) -> dict[str, Any]:
        """List the groups of a taxonomy in the order of the tree, with their documents; people keep and edit these."""
        found = self._one(collection).taxonomy(taxonomy).to_dict()
        groups = [each for each in found["groups"] if depth is None or each["level"] < depth]
        return found | {"groups": [_short(each) for each in groups]}

    @told
    def members(
        self,
        run: Annotated[str, "A run's name, as `collections` lists it."],
        number: Annotated[int, "The number of a topic, cluster, group or label; -1 for documents in no group."],
        k: Hits = 10,
        offset: Annotated[int, "Documents to skip: the next_offset of the list before."] = 0,
        kind: Annotated[str | None, "cluster, topic, taxonomy or label, if several runs have this name."] = None,
        collection: Name = None,
    ) -> dict[str, Any]:
        """Return the documents of a topic, cluster or label, the most typical ones first; long texts are cut."""
        found = self._one(collection).members(run, number, kind, k=checked("k", k, MOST_HITS) + 1, offset=offset)
        listed = [{"id": each.id, **filled(title=each.title, text=cut(each.text))} for each in found[:k]]
        return {"documents": listed} | filled(next_offset=offset + k if len(found) > k else None)

    @told
    def trends(
        self,
        run: Annotated[str, "A run of topics, clusters or labels, as `collections` lists it."],
        by: Annotated[str, "A metadata column with dates, or with few different numbers, such as a year."],
        kind: Annotated[str | None, "cluster, topic or label, if runs of several kinds have this name."] = None,
        collection: Name = None,
    ) -> dict[str, Any]:
        """Show which topics, clusters or labels grew or shrank: documents by period, and the change of their share.

        `change` is the item's share of the documents in the later half of the periods, minus its share in the earlier
        half; `total` has all documents of each period.
        """
        found = self._one(collection).breakdown(run, by, kind)
        self._check_order(found, by, collection)
        middle = len(found.parts) // 2
        early, late = found.counts[:, :middle], found.counts[:, middle:]
        change = late.sum(axis=1) / max(late.sum(), 1) - early.sum(axis=1) / max(early.sum(), 1)
        rows = [
            {"number": item.number, "name": item.name, "change": round(float(share), 4),
             "documents": {part: int(n) for part, n in zip(found.parts, counts, strict=True) if n}}
            for item, share, counts in zip(found.items, change, found.counts, strict=True)
        ]  # fmt: skip
        rows.sort(key=lambda row: -row["change"])
        half = MOST_VALUES // 2
        shown = rows if len(rows) <= MOST_VALUES else [*rows[:half], *rows[-half:]]
        total = dict(zip(found.parts, map(int, found.totals), strict=True))
        left_out = filled(items_with_less_change=len(rows) - len(shown) or None)
        return {"later_half_from": found.parts[middle], "total": total, **left_out, "items": shown}

    def _check_order(self, found: RunBreakdown, by: str, collection: str | None) -> None:
        """Refuse a column whose values have no order, or of which not all are counted apart.

        Raises:
            UsageError: It is such a column, or it has only one value.
        """
        kind = self._one(collection).info().fields.get(by)
        if len(found.parts) < 2:
            raise UsageError(f"{by!r} has only one value, so there is no trend", field="by", value=by)
        if found.period is None and kind not in ("integer", "real") and not name_times(found.parts):
            said = f"{by!r} is no column of dates or numbers, so its values have no order: `count` counts them"
            raise UsageError(said, field="by", value=by)
        if found.parts[-1].startswith(OTHERS):
            said = f"{by!r} has too many different numbers for a trend: `compare` two parts, such as {by} < 10"
            raise UsageError(said, field="by", value=by)

    def _groups(
        self, kind: RunKind, run: str | None, number: int | None, k: int, offset: int, collection: str | None
    ) -> dict[str, Any]:
        chosen = self._one(collection)
        found = chosen.newest_run(kind, run)
        if offset < 0:
            raise out_of_range("offset", offset, "give 0 or more")
        if number is not None:
            row_of(number, found.items)
        return groups_of(chosen, found.run, found.items, number, checked("k", k, MOST_VALUES), offset)


def _short(group: dict[str, Any]) -> dict[str, Any]:
    """Return a group of a taxonomy without what it does not have."""
    return {name: cut(value) for name, value in group.items() if value is not False and value not in (None, "", [])}
