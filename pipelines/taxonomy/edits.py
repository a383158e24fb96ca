"""Edits of a taxonomy, each a function from one state to the next."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ...indexer.errors import UsageError, arg, out_of_range
from ...indexer.wording import counted
from .changes import State
from .groups import (
    NO_GROUP,
    Group,
    Rule,
    ancestors,
    check_name,
    check_new_name,
    check_open,
    check_text,
    lock_above,
    moved_under,
    walk,
    with_group,
)


def add(state: State, number: int, name: str | None, parent: int | None = None, description: str = "") -> State:
    """Return a state with a new, empty group.

    Raises:
        UsageError: The name or the description is not valid, or the group above is locked.
    """
    if parent is not None:
        check_open(state.groups, parent, "extended")
    group = Group(number, check_new_name(state.groups, name, parent), check_text(description), parent, source="added")
    return replace(state, groups=with_group(state.groups, group))


def rename(state: State, number: int, name: str | None) -> State:
    """Return a state in which a group has another name.

    Raises:
        UsageError: The name is not valid, or the group is locked.
    """
    check_open(state.groups, number, "renamed")
    given = check_new_name(state.groups, name, state.groups[number].parent, number)
    return replace(state, groups=with_group(state.groups, replace(state.groups[number], name=given)))


def rename_level(state: State, level: int, name: str | None) -> State:
    """Return a state in which a level, 0 at the top, has a name.

    Raises:
        UsageError: The name is not valid, or there is no such level.
    """
    depth = 1 + max((depth for _, depth in walk(state.groups)), default=-1)
    if not 0 <= level < depth:
        raise out_of_range("level", level, f"the taxonomy has the levels 0 to {depth - 1}")
    names = [state.levels[place] if place < len(state.levels) else f"level {place}" for place in range(depth)]
    names[level] = check_name(name)
    return replace(state, levels=tuple(names))


def describe(state: State, number: int, description: str | None) -> State:
    """Return a state in which a group has another description.

    Raises:
        UsageError: The description is not valid, or the group is locked.
    """
    check_open(state.groups, number, "described")
    said = check_text(description)
    return replace(state, groups=with_group(state.groups, replace(state.groups[number], description=said)))


def merge(state: State, numbers: Sequence[int]) -> State:
    """Return a state in which several groups are one: the first, with the documents of all, and the groups under them.

    Raises:
        UsageError: They are fewer than two, or one is locked.
    """
    if len(numbers) < 2:
        raise UsageError("merging needs at least two groups", code="too-few", field="groups")
    for number in numbers:
        check_open(state.groups, number, "merged")
    first, *others = numbers
    parent = next((one for one in ancestors(state.groups, first) if one not in others), None)
    groups = dict(state.groups)
    groups[first] = replace(groups[first], parent=parent, proposed=all(groups[n].proposed for n in numbers))
    for number in others:
        del groups[number]
    groups = {n: replace(g, parent=first) if g.parent in others and n != first else g for n, g in groups.items()}
    return replace(state, groups=groups).renumbered(dict.fromkeys(others, first))


def move(state: State, numbers: Sequence[int], to: int | None) -> State:
    """Return a state in which groups lie under another group, or at the top.

    Raises:
        UsageError: A group would lie under itself, or is locked.
    """
    return replace(state, groups=moved_under(state.groups, numbers, to))


def assign(state: State, docs: np.ndarray, ids: Sequence[str], to: int, lock: bool) -> State:
    """Return a state in which documents are in another group, or in none.

    Args:
        state: The taxonomy.
        docs: int64, their numbers.
        ids: Their ids, in the same order.
        to: The group, or -1.
        lock: Whether they are locked there; documents that are locked stay so in any case.

    Raises:
        UsageError: One is in a locked group.
    """
    _check_free(state, docs, to)
    locks = {id: to for id in ids if lock or id in state.locks}
    return replace(state.placed(docs, np.full(len(docs), to)), locks=dict(sorted({**state.locks, **locks}.items())))


def _check_free(state: State, docs: np.ndarray, to: int) -> None:
    """Check that no document would leave a locked group.

    Raises:
        UsageError: One would.
    """
    holding = holders(state, docs, to)
    if (held := said_of_held(state, holding)) is not None:
        said = f"nothing was moved: {held}"
        raise UsageError(said, code="conflict", field="groups", value=int(holding.max()))


def holders(state: State, docs: np.ndarray, to: int) -> np.ndarray:
    """Return the locked group that keeps each document from leaving for the group `to`, int64 [n]; -1 for none."""
    numbers = {
        number: NO_GROUP if number in (to, NO_GROUP) else lock_above(state.groups, number)
        for number in np.unique(state.numbers[np.isin(state.docs, docs)]).tolist()
    }
    known = dict(zip(state.docs.tolist(), state.numbers.tolist(), strict=True))
    found = [numbers[known[doc]] if doc in known else NO_GROUP for doc in docs.tolist()]
    return np.array([NO_GROUP if holder is None else holder for holder in found], np.int64)


def said_of_held(state: State, holding: np.ndarray) -> str | None:
    """Return how many documents which locked groups keep, and what to do; None if there are none."""
    numbers, counts = np.unique(holding[holding != NO_GROUP], return_counts=True)
    if not len(numbers):
        return None
    order = np.argsort(-counts, kind="stable")[:3]
    shown = ", ".join(f"{state.groups[number].shown} ({count:,})" for number, count in zip(
        numbers[order].tolist(), counts[order].tolist(), strict=True
    ))  # fmt: skip
    shown += f" and {len(numbers) - 3:,} more" if len(numbers) > 3 else ""
    many = f"{counts.sum():,} of {counted(len(holding), 'document')}"
    return f"locked groups keep {many}: {shown}; to move them too, unlock these groups first"


def split(state: State, number: int, docs: np.ndarray, parts: np.ndarray, names: Sequence[str], first: int,
          ids: Mapping[str, int]) -> State:  # fmt: skip
    """Return a state in which documents of a group are in new groups under it.

    Args:
        state: The taxonomy.
        number: The group.
        docs: int64 [n], some or all of its documents.
        parts: int64 [n], the part of each, 0 and up; -1 stays in the group.
        names: Of the parts.
        first: Number of the first new group.
        ids: Numbers of locked documents by id; their locks follow them.

    Raises:
        UsageError: The group is locked, or every document would stay in it.
    """
    check_open(state.groups, number, "split")
    moved = parts >= 0
    if not moved.any():
        held = state.groups[number].shown
        said = f"the split moves no document out of the group {held}: choose another filter, run or examples"
        raise UsageError(said, code="empty", field="groups", value=number)
    source = f"split of {number}"
    new = {first + place: Group(first + place, name, parent=number, source=source) for place, name in enumerate(names)}
    to = dict(zip(docs[moved].tolist(), (first + parts[moved]).tolist(), strict=True))
    locks = {id: to.get(ids[id], one) if id in ids else one for id, one in state.locks.items()}
    places = np.searchsorted(state.docs, docs[moved])
    placed = state.placed(docs[moved], first + parts[moved], state.scores[places] * np.nan)
    return replace(placed, groups={**state.groups, **new}, locks=locks)


def remove(state: State, numbers: Sequence[int]) -> State:
    """Return a state without some groups: what they hold goes to the groups above them, or to none.

    Raises:
        UsageError: A group is locked.
    """
    for number in numbers:
        check_open(state.groups, number, "removed")
    heir = {
        number: next((one for one in ancestors(state.groups, number) if one not in numbers), None) for number in numbers
    }
    groups = {n: group for n, group in state.groups.items() if n not in heir}
    groups = {
        n: replace(group, parent=heir[group.parent]) if group.parent is not None and group.parent in heir else group
        for n, group in groups.items()
    }
    leads = {number: NO_GROUP if parent is None else parent for number, parent in heir.items()}
    return replace(state, groups=groups).renumbered(leads)


def lock(state: State, numbers: Sequence[int], locked: bool) -> State:
    """Return a state in which groups are locked, or no longer."""
    groups = {**state.groups, **{number: replace(state.groups[number], locked=locked) for number in numbers}}
    return replace(state, groups=groups)


def lock_documents(state: State, docs: np.ndarray, ids: Sequence[str], locked: bool) -> State:
    """Return a state in which documents are locked where they are, or no longer.

    Args:
        state: The taxonomy.
        docs: int64, their numbers.
        ids: Their ids, in the same order.
        locked: Whether they are to be locked.

    Raises:
        UsageError: The taxonomy does not know a document.
    """
    known = dict(zip(state.docs.tolist(), state.numbers.tolist(), strict=True))
    if missing := [id for doc, id in zip(docs.tolist(), ids, strict=True) if doc not in known]:
        said = f"the taxonomy does not know the document {missing[0]!r} yet: update it first"
        raise UsageError(said, code="not-found", field="ids", value=missing[0])
    chosen = {id: known[doc] for doc, id in zip(docs.tolist(), ids, strict=True)}
    rest = {id: number for id, number in state.locks.items() if id not in chosen}
    return replace(state, locks=dict(sorted({**rest, **chosen}.items())) if locked else rest)


def set_rule(state: State, number: int, rule: Rule | None) -> State:
    """Return a state in which a group has another rule, or none.

    Raises:
        UsageError: The group is locked, or the rule is empty or its cosine out of range.
    """
    check_open(state.groups, number, "given a rule")
    if rule is not None and not rule.where and not rule.examples:
        said = f"a rule needs {arg('where')} or {arg('examples')}"
        raise UsageError(said, code="empty", field="where")
    if rule is not None and not -1 <= rule.near <= 1:
        raise out_of_range("near", rule.near, "give a cosine, -1 to 1")
    return replace(state, groups=with_group(state.groups, replace(state.groups[number], rule=rule)))


def accept(state: State, numbers: Sequence[int]) -> State:
    """Return a state in which proposed groups are ordinary ones.

    Raises:
        UsageError: A group is not a proposed one.
    """
    check_proposed(state, numbers)
    new = {number: replace(state.groups[number], proposed=False) for number in numbers}
    return replace(state, groups={**state.groups, **new})


def check_proposed(state: State, numbers: Sequence[int]) -> None:
    """Check that groups are proposed ones.

    Raises:
        UsageError: One is not.
    """
    for number in numbers:
        if not state.groups[number].proposed:
            shown = state.groups[number].shown
            said = f"the group {shown} is not proposed: only proposed groups can be accepted or rejected"
            raise UsageError(said, code="conflict", field="groups", value=number)
