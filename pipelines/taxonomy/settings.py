"""The edits that a taxonomy knows, and what each of them is given."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Literal, get_args

from ...indexer.errors import UsageError, arg, as_texts, unknown_option

Operation = Literal[
    "add", "rename", "describe", "merge", "split", "move", "remove", "lock", "unlock", "rule", "accept", "reject"
]
OPERATIONS: tuple[Operation, ...] = get_args(Operation)
TOP, NONE = "top", "none"
"""Where a group can be moved besides under another one, and where documents can be moved besides to a group."""

TAKES: Mapping[str, tuple[str, ...]] = {
    "add": ("name", "to", "description"),
    "rename": ("groups", "level", "name"),
    "describe": ("groups", "description"),
    "merge": ("groups",),
    "split": ("groups", "k", "run", "where", "examples", "near", "name"),
    "move": ("groups", "ids", "where", "to", "lock"),
    "remove": ("groups",),
    "lock": ("groups", "level", "ids", "where"),
    "unlock": ("groups", "level", "ids", "where"),
    "rule": ("groups", "where", "examples", "near"),
    "accept": ("groups",),
    "reject": ("groups",),
}
"""The settings that each edit takes."""


@dataclass(frozen=True, slots=True)
class EditSettings:
    """What an edit is about.

    Attributes:
        groups: Numbers, names or paths ("Shipping > Late") of groups.
        name: The new name.
        description: The new description; "" removes it.
        to: The group that groups or documents go to; "top" for groups at the top, "none" for documents in no group.
        level: A level of the tree, 0 at the top.
        ids: Ids of documents.
        where: A filter; the documents that pass it are meant beside `ids`.
        k: How many parts to split a group into.
        run: A run whose groups say how a group is split.
        examples: Ids of the documents that a rule's documents are near to.
        near: Cosine to the nearest example from which on a document matches a rule, -1 to 1.
        lock: Whether documents that are moved are locked there.
    """

    groups: Sequence[int | str] = ()
    name: str | None = None
    description: str | None = None
    to: int | str | None = None
    level: int | None = None
    ids: Sequence[str] = ()
    where: str | None = None
    k: int | None = None
    run: str | None = None
    examples: Sequence[str] = ()
    near: float = 0.7
    lock: bool = True

    def check(self, operation: str) -> None:
        """Check that an edit exists and is given nothing that it does not take.

        Raises:
            UsageError: The edit is unknown, or is given an option that it does not take.
        """
        if operation not in OPERATIONS:
            raise unknown_option("operation", operation, OPERATIONS)
        default = EditSettings()
        given = [one.name for one in fields(self) if getattr(self, one.name) != getattr(default, one.name)]
        if odd := [name for name in given if name not in TAKES[operation]]:
            said = f"{operation} takes no {arg(odd[0])}: give {', '.join(map(arg, TAKES[operation]))}"
            raise UsageError(said, code="conflict", field=odd[0])
        as_texts(self.ids, "id")
        as_texts(self.examples, "id")
        _check_parts(self, operation)


def _check_parts(settings: EditSettings, operation: str) -> None:
    """Check that an edit is given what it needs.

    Raises:
        UsageError: Something is missing, or contradicts something else.
    """
    documents, takes = bool(settings.ids) or settings.where is not None, TAKES[operation]
    chosen = bool(settings.groups) + (settings.level is not None and "level" in takes)
    chosen += documents and "ids" in takes
    if "groups" in takes and chosen != 1:
        ways = [arg(name) for name in ("groups", "level", "ids") if name in takes]
        said = f"{operation} needs {' or '.join(ways)}" + (", and only one of them" if chosen else "")
        raise UsageError(said, code="conflict" if chosen else "empty", field="groups")
    if operation in ("rename", "describe", "split", "rule") and len(settings.groups) > 1:
        raise UsageError(f"{operation} takes one group at a time", code="conflict", field="groups")
    if operation == "move" and settings.to is None:
        raise UsageError(f"move needs {arg('to')}: a group, top or none", code="empty", field="to")
    alone = settings.near != EditSettings().near and not settings.examples and settings.where is None
    if operation == "rule" and alone:  # without a rule, the edit would remove the group's rule
        said = f"{arg('near')} is the cosine to examples: give {arg('examples')} too"
        raise UsageError(said, code="empty", field="examples")
    if operation == "split":
        ways = (settings.k is not None) + (settings.run is not None)
        ways += settings.where is not None or bool(settings.examples)
        if ways != 1:
            said = f"split needs one of {arg('k')}, {arg('run')}, and {arg('where')} or {arg('examples')}"
            raise UsageError(said, code="conflict" if ways else "empty", field="k")
