"""Taxonomies in the catalog: read one, write an edit and its entry of the log in one transaction, undo."""

import getpass
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from ...indexer.errors import SondeError, UsageError, as_text, out_of_range
from ...indexer.store.catalog import Catalog
from ...indexer.store.collection import StoredCollection
from ...indexer.store.documents import ids_by_number, numbers_by_id
from ...indexer.store.kinds import EDIT, TAXONOMY
from ...indexer.store.run_editing import RunEdit, edit_run
from ...indexer.store.run_writing import NewRun
from ...indexer.store.runs import Item, Run, array_of, assignments_of, find_run, items_of, list_runs
from ...indexer.wording import counted, on_one_line
from .changes import Change, State, unzipped, zipped
from .groups import NO_GROUP, NO_GROUP_NAME, Group, check_depth, told_apart, tree_problem

LOCKS = "locks"
"""The array of the locked documents."""
NEXT = "next"
"""The parameter of the log that holds the number of the next new group."""
UNDO = "undo"
"""The operation of the entries that undo others."""


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One entry of the log.

    Attributes:
        number: 1 and up.
        operation: What was done: "rename", "merge", "undo" and so on.
        said: What was done, in a sentence.
        at: When, ISO 8601 in UTC.
        by: Who.
        groups: How many groups became different, the new and the removed ones among them.
        documents: How many documents got another group.
        undoes: Number of the entry that it undoes, or None.
        undone: Whether a later entry undoes it.
    """

    number: int
    operation: str
    said: str
    at: str
    by: str
    groups: int
    documents: int
    undoes: int | None = None
    undone: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Stored:
    """A taxonomy as the catalog has it.

    Attributes:
        run: The run.
        log: The run of its log.
        state: What it is now; without documents where they were not asked for.
        next: Number of the next new group.
        head: Number of the last entry of the log.
        outside: Whether an item stands for documents without a group.
    """

    run: Run
    log: Run
    state: State
    next: int
    head: int
    outside: bool


def load(catalog: Catalog, name: str | None = None, *, documents: bool = True) -> Stored:
    """Return the taxonomy of this name, or the newest one.

    Args:
        catalog: Of the collection.
        name: The run's name, or None.
        documents: Whether to read which document is in which group.

    Raises:
        SondeError: There is no such taxonomy.
    """
    if not list_runs(catalog, TAXONOMY, count=False):
        said = "there is no taxonomy in this collection: make one from a run with `sonde taxonomy C --from RUN`, "
        said += "or begin with an empty group, `sonde taxonomy add C NAME`"
        raise SondeError(said, code="not-found", field="taxonomy", value=name)
    try:
        run = find_run(catalog, TAXONOMY, name)
    except SondeError as error:
        error.field = "taxonomy"
        raise
    try:
        return _loaded(catalog, run, documents)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        said = f"the taxonomy {run.name!r} is damaged ({error}): run `sonde verify`, and restore it from a backup"
        raise SondeError(said, code="damaged") from None


def _loaded(catalog: Catalog, run: Run, documents: bool) -> Stored:
    log = find_run(catalog, EDIT, run.name)
    items = {item.number: item for item in items_of(catalog, run)}
    groups = {number: group_of(item) for number, item in items.items() if number != NO_GROUP}
    if problem := tree_problem(groups):
        raise ValueError(problem)
    locks = dict(unzipped(array_of(catalog, run, LOCKS)))
    state = State(groups, locks=locks, levels=tuple(run.parameters.get("levels", ())))
    if documents:
        state = State(groups, *assignments_of(catalog, run), locks, state.levels)
    head = max((item.number for item in items_of(catalog, log)), default=0)
    return Stored(run, log, state, int(log.parameters[NEXT]), head, NO_GROUP in items)


def group_of(item: Item) -> Group:
    """Return the group that a run's item describes."""
    return Group.from_dict({**item.data, "number": item.number, "name": item.name})


def item_of(group: Group) -> Item:
    """Return a group as a run's item."""
    data = {name: value for name, value in group.to_dict().items() if name not in ("number", "name")}
    return Item(group.number, group.name, data)


NOBODY = Item(NO_GROUP, NO_GROUP_NAME, {})


def items_for(state: State) -> list[Item]:
    """Return the items of a state; one for the documents without a group, if there are any."""
    outside = [NOBODY] if (state.numbers == NO_GROUP).any() else []
    return [*outside, *(item_of(state.groups[number]) for number in sorted(state.groups))]


def pack_locks(locks: Mapping[str, int]) -> np.ndarray:
    """Return locked documents as compressed JSON, uint8."""
    return zipped(dict(sorted(locks.items())))


def new_runs(name: str, state: State, said: str, by: str | None, source: Mapping[str, Any]) -> tuple[NewRun, NewRun]:
    """Return a new taxonomy and its log, which has one entry."""
    entry = _entry(1, "make", said, by, Change.between(State(), state))
    following = 1 + max(state.groups, default=-1)
    whole = NewRun(
        TAXONOMY, name, {"levels": list(state.levels), **source}, report={"documents": len(state.docs)},
        items=items_for(state), assignments=(state.docs, state.numbers, state.scores),
        arrays={LOCKS: pack_locks(state.locks)},
    )  # fmt: skip
    return whole, NewRun(EDIT, name, {NEXT: following}, items=[entry])


def _entry(number: int, operation: str, said: str, by: str | None, change: Change, undoes: int | None = None) -> Item:
    moved = change.before[0] != change.after[0]
    data = {
        "operation": operation, "at": datetime.now(UTC).isoformat(timespec="seconds"), "by": _who(by),
        "groups": len(change.groups), "documents": int(moved.sum()), "undoes": undoes,
    }  # fmt: skip
    return Item(number, said, data)


def _who(by: str | None) -> str:
    return on_one_line(as_text(by or whoami(), "by"))


def whoami() -> str:
    """Return the name of the user of this process."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may have a user without a name
        return "unknown"


def log_of(catalog: Catalog, stored: Stored) -> list[LogEntry]:
    """Return the entries of the log, oldest first."""
    items = items_of(catalog, stored.log)
    undone = {item.data["undoes"] for item in items}
    return [LogEntry(number=item.number, said=item.name, **item.data, undone=item.number in undone) for item in items]


Edit = Callable[[Catalog, Stored], tuple[State, str]]
"""Returns the new state of a taxonomy, and what was done in a sentence; it writes nothing."""


def write_edit(
    collection: StoredCollection, name: str | None, operation: str, edit: Edit, *,
    by: str | None = None, documents: bool = True, head: int | None = None,
) -> LogEntry | None:  # fmt: skip
    """Edit a taxonomy: the change and its entry in the log are one transaction.

    Args:
        collection: The collection.
        name: The taxonomy; the newest one if None.
        operation: The word for the edit.
        edit: Makes the new state.
        by: Who does it; the user of this process if None.
        documents: Whether the edit needs to know which document is in which group.
        head: The last entry of the log when the edit was prepared; None if it needed no preparation.

    Returns:
        The entry; None if nothing is different.

    Raises:
        SondeError: There is no such taxonomy, it was edited since `head`, or another process is writing.
    """
    with collection.writing() as catalog:
        stored = load(catalog, name, documents=documents)
        if head is not None and head != stored.head:
            said = f"the taxonomy {stored.run.name!r} was edited in the meantime: run the command again"
            raise SondeError(said, code="conflict")
        state, said = edit(catalog, stored)
        groups, notes = told_apart(state.groups, stored.state.groups)
        state, said = replace(state, groups=groups), "; ".join([said, *notes])
        change = Change.between(stored.state, state)
        if change.empty:
            return None
        if change.groups:
            check_depth(state.groups)
        entry = _entry(stored.head + 1, operation, said, by, change)
        _save(catalog, stored, state, change, entry)
    return LogEntry(number=entry.number, said=entry.name, **entry.data)


def _save(catalog: Catalog, stored: Stored, state: State, change: Change, entry: Item) -> Stored:
    """Write a new state and its entry of the log, and return the taxonomy as the catalog has it then."""
    after = {number: item_of(group) for number, group in state.groups.items()}
    items = [after[number] for number, (_, new) in change.groups.items() if new]
    gone = [number for number, (_, new) in change.groups.items() if new is None]
    outside = stored.outside
    if len(change.docs):  # otherwise the documents may not have been read
        outside = bool((state.numbers == NO_GROUP).any())
        items += [NOBODY] if outside > stored.outside else []
        gone += [NO_GROUP] if outside < stored.outside else []
    chosen = np.isin(state.docs, change.docs)
    columns = state.docs[chosen], state.numbers[chosen], state.scores[chosen]
    parameters = stored.run.parameters | {"levels": list(state.levels)}
    edit_run(catalog, stored.run, RunEdit(
        items, gone, change.docs, columns, {LOCKS: pack_locks(state.locks)} if change.locks else {},
        parameters if change.levels[0] != change.levels[1] else None,
    ))  # fmt: skip
    ids = ids_by_number(catalog, change.docs.tolist())
    following = max(stored.next, 1 + max(state.groups, default=-1))
    log = RunEdit([entry], arrays={_array(entry.number): change.packed(ids)}, parameters={NEXT: following})
    edit_run(catalog, stored.log, log)
    return replace(stored, state=state, next=following, head=entry.number, outside=outside)


def _array(entry: int) -> str:
    return f"edit {entry:08d}"


def undo(
    collection: StoredCollection, name: str | None = None, steps: int = 1, by: str | None = None
) -> list[LogEntry]:
    """Undo the last edits that are not undone yet, in one transaction; return their entries, the last edit first.

    Documents that were deleted since stay deleted.

    Raises:
        UsageError: There are fewer edits than steps, or steps is below 1.
        SondeError: There is no such taxonomy, or another process is writing.
    """
    if steps < 1:
        raise out_of_range("steps", steps, "give 1 or more")
    with collection.writing() as catalog:
        stored = load(catalog, name)
        left = [entry for entry in log_of(catalog, stored) if not entry.undone and entry.operation != UNDO][1:]
        if steps > len(left):
            have = f"{counted(len(left), 'edit')} that can be undone" if left else "no edit that can be undone"
            raise UsageError(f"the taxonomy {stored.run.name!r} has {have}", code="out-of-range", field="steps")
        undone = left[: -steps - 1 : -1]
        for entry in undone:
            stored = _undo(catalog, stored, entry, by)
    return undone


def _undo(catalog: Catalog, stored: Stored, entry: LogEntry, by: str | None) -> Stored:
    state = read_change(catalog, stored, entry.number).reverse.applied(stored.state)
    made = Change.between(stored.state, state)
    item = _entry(stored.head + 1, UNDO, f"undid {entry.number}: {entry.said}", by, made, entry.number)
    return _save(catalog, stored, state, made, item)


def read_change(catalog: Catalog, stored: Stored, entry: int) -> Change:
    """Return what an entry of the log changed, of the documents that still exist."""
    data = array_of(catalog, stored.log, _array(entry))
    return Change.unpacked(data, lambda ids: numbers_by_id(catalog, ids))
