"""The tools of the MCP server about groups (topics, clusters, labels, taxonomies), and those that edit taxonomies.

The latter are offered only on request, and every edit can be undone.
"""

from collections.abc import Callable
from typing import Annotated, Any

from ...indexer.errors import SondeError, out_of_range
from ...indexer.store.kinds import CLUSTER, TOPIC, RunKind
from ...pipelines.analysis.breakdown import row_of
from ...pipelines.taxonomy.settings import Operation
from ..api.functions import Patience, patience
from .answers import BRIEF, MOST_HITS, MOST_VALUES, SHOWN, VALUE, checked, cut, filled, groups_of, metadata, past
from .counting import CountTools
from .tools import Hits, Name, Run, Where, told

Number = Annotated[int | None, "The number of one group: with more terms, and typical documents."]
Groups = Annotated[int, f"Groups to list, 1 to {MOST_VALUES}."]
Offset = Annotated[int, "Groups to skip: the next_offset of the list before."]
Edited = Annotated[list[int | str] | None, "Numbers, names or paths (A > B) of groups, as `list_taxonomy` lists them."]
Ids = Annotated[list[str] | None, "Ids of documents."]
ROW = ("number", "name", "level", "parent", "description", "documents", "total", "locked", "proposed", "rule")
"""What a list of the groups of a taxonomy has of each."""
BY = "assistant"
"""Who edits, in the log."""
WRITE_WAIT = Patience(10.0)
"""An assistant may call several tools at once, so an edit waits for the one before it."""


class GroupTools(CountTools):
    """Tools that read collections, and the groups of their runs."""

    @property
    def every(self) -> list[Callable[..., dict[str, Any]]]:
        """The tools that only read."""
        return [*super().every, self.list_topics, self.list_clusters, self.list_taxonomy, self.members]

    @told
    def list_topics(
        self, run: Run = None, number: Number = None, k: Groups = 50, offset: Offset = 0, collection: Name = None
    ) -> dict[str, Any]:
        """List the topics of a run with their sizes and terms; coarse:NAME, middle:NAME and fine:NAME are its levels.

        Begin with the coarse level. One group, by `number`, also lists the groups of the next level inside it.
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
        number: Annotated[
            int | None, "Return only this group, with its path, rule, examples and the groups inside it."
        ] = None,
        depth: Annotated[int | None, "Levels to list, from the top; by default all."] = None,
        k: Groups = 50,
        offset: Offset = 0,
        collection: Name = None,
    ) -> dict[str, Any]:
        """List the groups of a taxonomy in the order of the tree, with their documents; people keep and edit these.

        `documents` are those of a group itself, `total` includes the groups below it. One group, by `number`, also
        lists the groups directly below it as `inside`.
        """
        _check_page(k, offset)
        if depth is not None and depth < 1:
            raise out_of_range("depth", depth, "give 1 or more")
        found = self._one(collection).taxonomy(taxonomy).to_dict()
        if number is not None:
            known = {each["number"]: each for each in found["groups"]}
            if number not in known:
                said = f"there is no group {number}: `list_taxonomy` without a number lists the {len(known):,} groups"
                raise SondeError(said, code="not-found", field="number", value=number)
            below = [_short({name: each[name] for name in ROW}) for each in known.values() if each["parent"] == number]
            return {"name": found["name"], "group": _short(known[number], VALUE) | filled(inside=below[:MOST_VALUES])}
        groups = [each for each in found["groups"] if depth is None or each["level"] < depth]
        rows = [_short({name: each[name] for name in ROW}) for each in groups[offset : offset + k]]
        more = filled(
            listed_of=len(groups) if len(groups) > len(rows) else None,
            next_offset=offset + k if offset + k < len(groups) else None,
            notes=past(offset, len(groups), "groups"),
        )
        return found | {"groups": rows} | more

    @told
    def members(
        self,
        run: Annotated[str, "A run's name, as `collections` lists it."],
        number: Annotated[int, "The number of a topic, cluster, group or label; -1 for documents in no group."],
        where: Where = None,
        k: Hits = 10,
        offset: Annotated[int, "Documents to skip: the next_offset of the list before."] = 0,
        kind: Annotated[str | None, "cluster, topic, taxonomy or label, if several runs have this name."] = None,
        collection: Name = None,
    ) -> dict[str, Any]:
        """Return the documents of a topic, cluster or label, the most typical ones first; long texts are cut."""
        chosen = self._one(collection)
        found = chosen.members(run, number, kind, where=where, k=checked("k", k, MOST_HITS), offset=offset)
        details = chosen.run(run, kind)
        total = chosen.item_sizes(details.run, where).get(number, 0)
        name = next((item.name for item in details.items if item.number == number), None)
        stored = chosen.documents([each.id for each in found])
        listed = [
            {"id": each.id, **filled(title=cut(each.title), text=cut(each.text),
                                     metadata=metadata(stored[each.id].metadata, BRIEF))}
            for each in found
        ]  # fmt: skip
        end = offset + len(found)
        return (
            filled(name=name)
            | {"total": total, "documents": listed}
            | filled(next_offset=end if found and end < total else None, notes=past(offset, total, "documents"))
        )

    def _groups(
        self, kind: RunKind, run: str | None, number: int | None, k: int, offset: int, collection: str | None
    ) -> dict[str, Any]:
        chosen = self._one(collection)
        found = chosen.newest_run(kind, run)
        _check_page(k, offset)
        if number is not None:
            row_of(number, found.items)
        return groups_of(chosen, found.run, found.items, number, k, offset)


def _check_page(k: int, offset: int) -> None:
    checked("k", k, MOST_VALUES)
    if offset < 0:
        raise out_of_range("offset", offset, "give 0 or more")


def _short(group: dict[str, Any], most: int = SHOWN) -> dict[str, Any]:
    """Return a group of a taxonomy without what it does not have; longer texts are cut."""
    return {
        name: cut(value, most) for name, value in group.items() if value is not False and value not in (None, "", [])
    }


class EditingTools(GroupTools):
    """Tools that read collections, and tools that edit their taxonomies."""

    @property
    def writing(self) -> list[Callable[..., dict[str, Any]]]:
        """The tools that change a collection."""
        return [self.edit_taxonomy, self.undo_taxonomy]

    @told
    def edit_taxonomy(
        self,
        operation: Annotated[
            Operation,
            "add (name, to), rename (groups, name), describe (groups, description), merge (groups: into the first), "
            "split (groups, k), move (groups, or ids and where; to), remove (groups), lock and unlock (groups or ids), "
            "rule (groups, where, examples), accept and reject (proposed groups).",
        ],
        groups: Edited = None,
        name: Annotated[str | None, "The new name."] = None,
        description: Annotated[str | None, "The new description."] = None,
        to: Annotated[str | None, "A group, or: top for groups, none for documents."] = None,
        ids: Ids = None,
        where: Where = None,
        k: Annotated[int | None, "Parts of a split."] = None,
        examples: Ids = None,
        taxonomy: Run = None,
        collection: Name = None,
    ) -> dict[str, Any]:
        """Edit a taxonomy; return the entry of its log. `undo_taxonomy` undoes the last edit."""
        given: dict[str, Any] = {
            "groups": groups, "name": name, "description": description, "to": to, "ids": ids, "where": where, "k": k,
            "examples": examples,
        }  # fmt: skip
        options = {key: value for key, value in given.items() if value is not None}
        with patience(WRITE_WAIT):
            entry = self._one(collection).edit_taxonomy(operation, taxonomy, by=BY, **options)
        return {"edit": entry.to_dict() if entry else None}

    @told
    def undo_taxonomy(
        self, steps: Annotated[int, "Edits to undo."] = 1, taxonomy: Run = None, collection: Name = None
    ) -> dict[str, Any]:
        """Undo the last edits of a taxonomy; return their entries of its log, the last edit first."""
        with patience(WRITE_WAIT):
            found = self._one(collection).undo_taxonomy(steps, taxonomy, by=BY)
        return {"undone": [entry.to_dict() | {"undone": True} for entry in found]}
