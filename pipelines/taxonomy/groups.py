"""The tree of a taxonomy: its groups, who lies under whom, and the names that they may have."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import count
from typing import Any

from ...indexer.errors import UsageError, as_text
from ...indexer.store.members import DEEPEST, SEPARATOR
from ...indexer.wording import NAME, on_one_line
from .settings import NONE, TOP

NO_GROUP = -1
"""The number of what belongs to no group."""
NO_GROUP_NAME = "no group"
WORDS = {NONE: "documents in no group", TOP: "the top of the tree", NO_GROUP_NAME: "documents in no group"}
"""Names that no group may have, in small letters: they are given instead of a group, or shown instead of one."""
LONGEST_NAME = 1_000
"""Characters of a group's name that a person gives."""
DIGITS = 18
"""Digits of a number, at most; Python reads none of thousands."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What a group holds: documents that pass a filter, or that are near examples.

    Attributes:
        where: A filter, or None.
        examples: Ids of documents.
        near: Cosine to the nearest example from which on a document matches, -1 to 1.
    """

    where: str | None = None
    examples: tuple[str, ...] = ()
    near: float = 0.7

    @property
    def said(self) -> str:
        """The rule in words."""
        parts = [self.where] if self.where else []
        if self.examples:
            parts.append(f"cosine of at least {self.near:g} to {', '.join(self.examples)}")
        return " or ".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return {"where": self.where, "examples": list(self.examples), "near": self.near}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Rule":
        """Return a rule from JSON values."""
        return cls(values.get("where"), tuple(values.get("examples", ())), float(values.get("near", 0.7)))


@dataclass(frozen=True, slots=True)
class Group:
    """A group of a taxonomy.

    Attributes:
        number: Identifies it; no other group of the taxonomy ever gets the same one.
        name: What it is called.
        description: What belongs to it, in a sentence; "" if nobody wrote one.
        parent: Number of the group above it, or None.
        locked: Whether its documents stay in it, and nobody edits it.
        proposed: Whether Sonde found it in new documents, and nobody has accepted it yet.
        rule: What it holds, or None.
        source: Where it came from, such as "topic:topics 3", "split of 3", "new documents".
        examples: Texts that are typical of it; they seed it in another collection.
    """

    number: int
    name: str
    description: str = ""
    parent: int | None = None
    locked: bool = False
    proposed: bool = False
    rule: Rule | None = None
    source: str = ""
    examples: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        """The number and the name."""
        return f"{self.number} {self.name!r}"

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        rule = self.rule.to_dict() if self.rule else None
        return asdict(self) | {"rule": rule, "examples": list(self.examples)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Group":
        """Return a group from JSON values."""
        rule = Rule.from_dict(values["rule"]) if values.get("rule") else None
        known = {name: values[name] for name in cls.__slots__ if name in values}
        return cls(**known | {"rule": rule, "examples": tuple(values.get("examples", ()))})


Groups = Mapping[int, Group]
"""Groups by number."""


def leaves(groups: Groups) -> list[int]:
    """Return the numbers of the groups that have no group under them, ascending."""
    parents = {group.parent for group in groups.values()}
    return [number for number in sorted(groups) if number not in parents]


def ancestors(groups: Groups, number: int) -> list[int]:
    """Return the numbers of the groups above a group, the nearest first."""
    found: list[int] = []
    parent = groups[number].parent
    while parent is not None:
        found.append(parent)
        parent = groups[parent].parent
    return found


def under(groups: Groups, number: int) -> set[int]:
    """Return the numbers of a group and of all groups under it."""
    return {number, *(each for each in groups if number in ancestors(groups, each))}


def walk(groups: Groups) -> Iterator[tuple[Group, int]]:
    """Yield each group with its depth, 0 at the top: each group before those under it, siblings by number."""
    under: dict[int | None, list[int]] = {}
    for number in sorted(groups, reverse=True):
        under.setdefault(groups[number].parent, []).append(number)
    left = [(number, 0) for number in under.get(None, ())]
    while left:  # a stack, since a tree may be deeper than Python lets functions call themselves
        number, depth = left.pop()
        yield groups[number], depth
        left += [(one, depth + 1) for one in under.get(number, ())]


def tree_problem(groups: Groups) -> str | None:
    """Return why groups are no tree of at most `DEEPEST` levels, None if they are one."""
    for group in groups.values():
        if group.parent is not None and group.parent not in groups:
            return f"the group {group.shown} lies under {group.parent}, which does not exist"
    depths = {group.number: depth for group, depth in walk(groups)}
    if circle := next((group for number, group in groups.items() if number not in depths), None):
        return f"the group {circle.shown} lies under itself, or under a group that does"
    return f"it has more than {DEEPEST} levels" if max(depths.values(), default=0) >= DEEPEST else None


def path(groups: Groups, number: int) -> str:
    """Return the names from the top down to a group, such as "Shipping > Late"."""
    return SEPARATOR.join(groups[one].name for one in [*reversed(ancestors(groups, number)), number])


def totals(groups: Groups, sizes: Mapping[int, int]) -> dict[int, int]:
    """Return how many documents each group and the groups under it have."""
    found = {number: sizes.get(number, 0) for number in groups}
    for group, _ in reversed(list(walk(groups))):
        if group.parent is not None:
            found[group.parent] += found[group.number]
    return found


def check_new_name(groups: Groups, name: str | None, parent: int | None, number: int | None = None) -> str:
    """Return a name that a person gives a group, without spaces at its ends.

    Args:
        groups: The tree.
        name: The name.
        parent: The group above, or None.
        number: Of the group, if it exists.

    Raises:
        UsageError: It is empty, not printable or too long, it would be read as a number, a path or a place (`WORDS`),
            or a group at the same place has it.
    """
    found = check_name(name)
    if found.isdecimal():
        said = f"the name {found!r} would be read as the number of a group: add a word, such as 'group {found}'"
        raise UsageError(said, code="bad-name", field="name", value=name)
    if found.casefold() in WORDS:
        said = f"the name {found!r} stands for {WORDS[found.casefold()]}: add a word, such as 'group {found}'"
        raise UsageError(said, code="bad-name", field="name", value=name)
    if SEPARATOR in found:
        said = f"the name {on_one_line(found)!r} contains {SEPARATOR!r}, which separates the names of a path: "
        said += "use another sign"
        raise UsageError(said, code="bad-name", field="name", value=name)
    if same := next((one for one in siblings(groups, parent) if one.name == found and one.number != number), None):
        raise UsageError(_taken(groups, same), code="taken", field="name", value=name)
    return found


def _taken(groups: Groups, same: Group) -> str:
    place = f"under {groups[same.parent].shown}" if same.parent is not None else "at the top level"
    return f"group {same.shown} {place} already has this name: give another name"


def siblings(groups: Groups, parent: int | None) -> list[Group]:
    """Return the groups directly under a group, or at the top, by number."""
    return [group for _, group in sorted(groups.items()) if group.parent == parent]


def told_apart(groups: Groups, before: Groups) -> tuple[dict[int, Group], list[str]]:
    """Return the groups with new names for those that nobody could name, and what was renamed, in sentences.

    A person who gives such a name is refused. Runs, files and merged groups bring names that nobody can change first.

    Args:
        groups: The tree.
        before: The tree before; groups that have the same name and place there keep their names.
    """
    found, notes = dict(groups), []
    taken: dict[int | None, set[str]] = {}
    tried: dict[tuple[int | None, str], Iterator[int]] = defaultdict(lambda: count(2))
    order = sorted(groups.values(), key=lambda one: (_place(before.get(one.number)) != _place(one), one.number))
    for group in order:
        names = taken.setdefault(group.parent, set())
        if _place(before.get(group.number)) != _place(group):
            name = _readable(group.name)
            if name in names:
                stem = name[: LONGEST_NAME - DIGITS]
                # Each number is tried once, also if many groups have the same name.
                name = next(each for n in tried[group.parent, stem] if (each := f"{stem} ({n})") not in names)
            if name != group.name:
                found[group.number] = replace(group, name=name)
                notes.append(f"renamed {group.shown} to {name!r}")
        names.add(found[group.number].name)
    return found, notes


def _place(group: Group | None) -> tuple[int | None, str] | None:
    return group and (group.parent, group.name)


def _readable(name: str) -> str:
    """Return a name that is not read as a number, as a path, or as a place."""
    plain = name.replace(SEPARATOR, " / ")
    return f"group {plain}" if plain.isdecimal() or plain.casefold() in WORDS else plain


def check_name(name: str | None) -> str:
    """Return a name of a level, or of a group in a file, without spaces at its ends.

    Raises:
        UsageError: It is empty, not printable, or too long.
    """
    if name is None or not name.strip() or not name.strip().isprintable():
        said = f"{(name or '')[:NAME]!r} is not a valid group name: use printable characters"
        raise UsageError(said, code="bad-name", field="name", value=name)
    if len(name.strip()) > LONGEST_NAME:
        said = f"the name {on_one_line(name)!r} has {len(name.strip()):,} characters; the maximum is {LONGEST_NAME:,}"
        raise UsageError(said, code="bad-name", field="name", value=name)
    return name.strip()


def check_text(text: str | None) -> str:
    """Return a description on one line.

    Raises:
        UsageError: It is not valid Unicode.
    """
    return " ".join(as_text(text or "", "description").split())


def lock_above(groups: Groups, number: int) -> int | None:
    """Return the locked group that holds a group: itself or one above it; None if there is none."""
    return next((one for one in (number, *ancestors(groups, number)) if groups[one].locked), None)


def check_open(groups: Groups, number: int, verb: str) -> None:
    """Check that a group and those above it are not locked.

    Raises:
        UsageError: One is.
    """
    holder = lock_above(groups, number)
    if holder is not None:
        which = f"the group {groups[number].shown} cannot be {verb}"
        owner = "it" if holder == number else f"the group {groups[holder].shown} above it"
        raise UsageError(
            f"{which}: {owner} is locked; unlock that first", code="conflict", field="groups", value=number
        )


def with_group(groups: Groups, group: Group) -> dict[int, Group]:
    """Return the groups with one that is new, or replaces the one of its number."""
    return {**groups, group.number: group}


def moved_under(groups: Groups, numbers: Sequence[int], to: int | None) -> dict[int, Group]:
    """Return the groups with some of them under another one, or at the top.

    Raises:
        UsageError: A group would be under itself or beside one of its name, or is locked.
    """
    if to is not None:
        check_open(groups, to, "extended")
    for number in numbers:
        check_open(groups, number, "moved")
        if number == to:
            said = f"the group {groups[number].shown} cannot lie under itself: give another group, or top"
            raise UsageError(said, code="conflict", field="to", value=to)
        if to is not None and number in ancestors(groups, to):
            said = f"the group {groups[number].shown} cannot move under {groups[to].shown}, which lies under it: "
            said += f"move {to} elsewhere first"
            raise UsageError(said, code="conflict", field="to", value=to)
    there = {one.name: one for one in siblings(groups, to) if one.number not in numbers}
    for number in numbers:
        if same := there.get(groups[number].name):
            said = f"{_taken(groups, same).removesuffix(': give another name')}: rename {number} or {same.number} first"
            raise UsageError(said, code="taken", field="groups", value=number)
        there[groups[number].name] = groups[number]
    return {**groups, **{number: replace(groups[number], parent=to) for number in numbers}}


def check_depth(groups: Groups) -> None:
    """Check that a tree has at most `DEEPEST` levels: every group is shown with the names of all groups above it.

    Raises:
        UsageError: It has more.
    """
    deepest, depth = max(walk(groups), key=lambda pair: pair[1], default=(None, 0))
    if deepest is not None and depth >= DEEPEST:
        said = f"the group {deepest.shown} would lie on level {depth + 1}; the maximum is {DEEPEST}"
        raise UsageError(said, code="out-of-range", field="groups", value=deepest.number)
