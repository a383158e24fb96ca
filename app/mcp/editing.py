"""The tools of the MCP server that edit taxonomies. They are offered only on request, and every edit can be undone."""

from collections.abc import Callable
from typing import Annotated, Any

from ...pipelines.taxonomy.settings import Operation
from ..api.functions import Patience, patience
from .groups import GroupTools
from .tools import Name, Run, Where, told

BY = "assistant"
"""Who edits, in the log."""
WRITE_WAIT = Patience(10.0)
"""An assistant may call several tools at once, so an edit waits for the one before it."""
Groups = Annotated[list[int | str] | None, "Numbers, names or paths (A > B) of groups, as `list_taxonomy` lists them."]
Ids = Annotated[list[str] | None, "Ids of documents."]


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
        groups: Groups = None,
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
        self,
        steps: Annotated[int, "Edits to undo."] = 1,
        taxonomy: Run = None,
        collection: Name = None,
    ) -> dict[str, Any]:
        """Undo the last edits of a taxonomy; return their entries of its log, the last edit first."""
        with patience(WRITE_WAIT):
            found = self._one(collection).undo_taxonomy(steps, taxonomy, by=BY)
        return {"undone": [entry.to_dict() | {"undone": True} for entry in found]}
