"""What people changed in a topic run: names, merges and splits, taken over into the levels that it was computed with.

The topics of a run are the groups of one of its levels until somebody merges or splits them. The stored levels stay as
they were computed.
"""

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

from ...indexer.store.runs import Item

Leaves = tuple[int, ...]
"""The dense groups that make up a topic, or a group of a level."""


def with_edits(levels: Sequence[Sequence[Item]], place: int | None, topics: Sequence[Item]) -> list[list[Item]]:
    """Return the groups of each level, the coarsest first, with what people changed in the topics.

    A group has the name that a person gave to the topic with the same dense groups. If topics were merged or split,
    they replace the groups of their level. A merged topic lies under the group that most of its documents come from. A
    larger group that has no topic left is left out, unless a person named it.

    Args:
        levels: The groups as they were computed. Their data has `leaves`, `named` and, but for the coarsest, `parent`.
        place: The level of the topics; None if it is not known.
        topics: The topics of the run.
    """
    given = dict(_given(item for level in levels for item in level)) | dict(_given(topics))
    found = [[_called(item, given.get(_leaves(item))) for item in level] for level in levels]
    if place is None or not is_regrouped(topics, levels[place]):
        return found
    sizes = {leaf: item.data["size"] / len(_leaves(item)) for item in levels[-1] for leaf in _leaves(item)}
    found[place] = [_called(item, given.get(_leaves(item))) for item in topics]
    if place + 1 < len(found):
        found[place + 1] = _under(found[place], found[place + 1], sizes)
    if place:
        found[place] = _under(found[place - 1], found[place], sizes)
    for above in range(place - 1, -1, -1):
        named = {_leaves(item) for item in levels[above] if _is_named(item)}
        found[above] = list(_still_there(found[above], found[above + 1], named))
    return found


def is_regrouped(topics: Sequence[Item], level: Sequence[Item]) -> bool:
    """Return whether topics are other groups than those that were computed for their level."""
    return set(map(_leaves, topics)) != set(map(_leaves, level))


def _given(items: Iterable[Item]) -> Iterator[tuple[Leaves, str]]:
    """Yield the names that people gave, those of topics that were merged first."""
    for item in items:
        for part in item.data.get("parts", ()):
            yield from _given([Item(part["number"], part["name"], part["data"])])
        if _is_named(item):
            yield _leaves(item), item.name


def _is_named(item: Item) -> bool:
    """Return whether a person gave the item its name."""
    return item.name != item.data.get("named", item.name)


def _leaves(item: Item) -> Leaves:
    return tuple(item.data["leaves"])


def _called(item: Item, name: str | None) -> Item:
    return Item(item.number, name, item.data) if name is not None else item


def _under(above: Sequence[Item], items: Sequence[Item], sizes: Mapping[int, float]) -> list[Item]:
    """Return groups with the group above that most of their documents are in as `parent`."""
    group_of = {leaf: item.number for item in above for leaf in _leaves(item)}
    found = []
    for item in items:
        votes: defaultdict[int, float] = defaultdict(float)
        for leaf in _leaves(item):
            votes[group_of[leaf]] += sizes.get(leaf, 0)
        parent = min(votes, key=lambda number: (-votes[number], number))
        found.append(Item(item.number, item.name, {**item.data, "parent": parent}))
    return found


def _still_there(items: Sequence[Item], under: Sequence[Item], named: Container[Leaves]) -> Iterator[Item]:
    """Yield the groups that still have one below them, or a name from a person.

    If the only one below has more than the group had, the group takes its name: it is no longer what it was called.
    """
    below: dict[int, list[Item]] = {}
    for item in under:
        below.setdefault(item.data["parent"], []).append(item)
    for item in items:
        children = below.get(item.number, [])
        if _leaves(item) in named:
            yield item
        elif len(children) == 1 and not set(_leaves(children[0])) <= set(_leaves(item)):
            yield Item(item.number, children[0].name, {**item.data, "leaves": children[0].data["leaves"]})
        elif children:
            yield item
