"""New taxonomies: of a run that groups or labels the documents, with its levels, or empty ones."""

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as replace_fields
from typing import Any

import numpy as np

from ...indexer.errors import UsageError
from ...indexer.progress import NOTE, Notify, silent
from ...indexer.store.collection import StoredCollection
from ...indexer.store.documents import chosen_texts, numbers_by_id
from ...indexer.store.kinds import LABEL, TAXONOMY, RunKind, followers
from ...indexer.store.run_writing import Snapshot, check_run_name, write_run
from ...indexer.store.runs import Item, Run, assignments_of, items_of, list_runs
from ...indexer.store.view import View
from ...indexer.wording import counted
from ..analysis.runs import named
from .changes import State
from .groups import NO_GROUP, Group, siblings, told_apart, walk
from .stored import new_runs

EXAMPLES, TEXT = 5, 400
"""Texts that stand for a group, and the characters of each."""


@dataclass(frozen=True, slots=True)
class _Level:
    """The groups of one level of a run: their items, and the number that each gets in the taxonomy.

    `run` has the groups and their documents: the level or, if people merged or split its groups, the topic run itself.
    """

    name: str
    run: Run
    items: Sequence[Item]
    numbers: dict[int, int]


def make(
    collection: StoredCollection, source: str | None = None, name: str = "taxonomy", kind: str | None = None, *,
    replace: bool = False, flat: bool = False, by: str | None = None, notify: Notify = silent,
) -> None:  # fmt: skip
    """Make a taxonomy of a run, or an empty one, and store it.

    The groups have the names of the run's groups, and their numbers if the run has one level. The levels of a topic run
    become levels of the taxonomy, with the names, merges and splits that people made in that run. A document with
    several labels belongs to its best one.

    Args:
        collection: Where the run is.
        source: Name of a cluster, topic or label run, or of another taxonomy; None makes a taxonomy without groups.
        name: Of the taxonomy.
        kind: Of the run, if runs of several kinds have its name.
        replace: Whether a taxonomy of this name may be replaced, with its log.
        flat: Whether a topic run without its levels becomes the taxonomy: its topics alone.
        by: Who makes it; the user of this process if None.
        notify: Receives a sentence if labels were left out, because documents have several.

    Raises:
        UsageError: The name is taken, or the run has no groups.
        SondeError: There is no such run, or another process is writing.
    """
    with collection.view() as view:
        check_run_name(view.catalog, TAXONOMY, name, replace)
        snapshot = Snapshot.of(view)
        if source is None:
            state, said, origin = State(), "made empty", {}
        else:
            run = named(view.catalog, source, kind)
            state = _of_run(view, run, flat)
            origin = {"from": run.kind.column(run.name)}
            said = f"made from the {run.kind} run {run.name!r}: {counted(len(state.groups), 'group')}"
            if left := _left_out(view, run):
                said += f"; {left}"
                notify(NOTE + left)
    whole, log = new_runs(name, state, said, by, origin)
    write_run(collection, whole, snapshot, replace=replace, parts=[log])


def _of_run(view: View, run: Run, flat: bool) -> State:
    """Return the state that a run's groups and documents give.

    Raises:
        UsageError: The run has no groups.
    """
    if not run.kind.groups and run.kind is not LABEL:
        said = f"the {run.kind} run {run.name!r} has no groups: give a cluster, topic or label run"
        raise UsageError(said, code="bad-kind", field="source", value=run.name)
    levels = list(_levels(view, run, flat))
    groups = {group.number: group for place in range(len(levels)) for group in _groups(view, levels, place)}
    docs, numbers, scores = assignments_of(view.catalog, levels[-1].run)
    docs, first = np.unique(docs, return_index=True)
    leads = levels[-1].numbers | {NO_GROUP: NO_GROUP}
    placed = np.array([leads[number] for number in numbers[first].tolist()], np.int64)
    names = tuple(level.name for level in levels) if len(levels) > 1 else ()
    state = State(groups, docs, placed, scores[first], levels=names)
    state = without_chains(state) if len(levels) > 1 else state
    return replace_fields(state, groups=told_apart(state.groups, {})[0])


def _left_out(view: View, run: Run) -> str | None:
    """Return a sentence on the labels that a taxonomy leaves out, because a document belongs to one group."""
    several = [] if run.kind is not LABEL else np.unique(assignments_of(view.catalog, run)[0], return_counts=True)[1]
    more = [count - 1 for count in several if count > 1]
    if not more:
        return None
    has, belongs = ("has", "it belongs") if len(more) == 1 else ("have", "each belongs")
    said = f"{counted(len(more), 'document')} {has} several labels, and {belongs} to the group of its likeliest one"
    return f"{said}: {counted(sum(more), 'label')} left out"


def without_chains(state: State) -> State:
    """Return a state without groups that are the only one under a group of the same name and hold all its documents."""
    groups, leads = dict(state.groups), {}
    own = state.sizes()
    for group, _ in reversed(list(walk(state.groups))):
        under = siblings(groups, group.number)
        if len(under) == 1 and under[0].name == group.name and not own.get(group.number):
            [only] = under
            del groups[only.number]
            groups = {n: replace_fields(g, parent=group.number) if g.parent == only.number else g
                      for n, g in groups.items()}  # fmt: skip
            groups[group.number] = replace_fields(groups[group.number], examples=only.examples)
            leads[only.number] = group.number
    for old in sorted(leads, reverse=True):  # a chain of three: the last to the middle one, and that to the first
        while leads[old] in leads:
            leads[old] = leads[leads[old]]
    return replace_fields(state, groups=groups).renumbered(leads)


def _levels(view: View, run: Run, flat: bool) -> Iterator[_Level]:
    """Yield the levels of a run, the coarsest first, with the names, merges and splits that people made.

    A run without levels is one, and so is one that is to be flat.
    """
    parts = [part for kind in followers(run.kind) if kind.part and kind.groups for part in _parts(view, run, kind)]
    own = _items(view, run)
    if flat or not parts:
        yield _Level(str(run.kind), run, own, {item.number: item.number for item in own})
        return
    names, computed = [str(part.kind) for part in parts], [_items(view, part) for part in parts]
    level = run.report.get("level")
    place = names.index(level) if level in names else None
    used = 0
    for number, items in enumerate(with_edits(computed, place, own)):
        edited = number == place and _is_regrouped(own, computed[number])
        numbers = {item.number: used + order for order, item in enumerate(items)}
        yield _Level(names[number], run if edited else parts[number], items, numbers)
        used += len(items)


def _items(view: View, run: Run) -> list[Item]:
    return [item for item in items_of(view.catalog, run) if item.number >= 0]


def _parts(view: View, run: Run, kind: RunKind) -> list[Run]:
    return [part for part in list_runs(view.catalog, kind, count=False) if part.name == run.name]


def _groups(view: View, levels: Sequence[_Level], place: int) -> Iterator[Group]:
    """Yield the groups of one level; `parent` in an item's data is the number of its group one level above."""
    level, above = levels[place], levels[place - 1].numbers if place else {}
    deepest = place == len(levels) - 1
    for item in level.items:
        parent = item.data.get("parent")
        if not place and level.run.kind is TAXONOMY:
            inside = parent
        else:
            inside = above[parent] if place and parent is not None else None
        examples = _examples(view, item.data) if deepest else ()
        source = f"{level.run.kind.column(level.run.name)} {item.number}"
        description = str(item.data.get("description", ""))
        yield Group(level.numbers[item.number], item.name, description, inside, source=source, examples=examples)


def _examples(view: View, data: Any) -> tuple[str, ...]:
    """Return the texts of a group's representatives."""
    if "representatives" not in data:
        return tuple(data.get("examples", ()))[:EXAMPLES]
    ids = [str(id) for id in data["representatives"][:EXAMPLES]]
    return texts_of_ids(view, ids)


def texts_of_ids(view: View, ids: Sequence[str]) -> tuple[str, ...]:
    """Return the beginnings of the texts of documents, with their titles, in the order of the ids."""
    numbers = numbers_by_id(view.catalog, ids)
    found = {each.id: f"{each.title}\n{each.text}".strip() for each in
             chosen_texts(view.catalog, list(numbers.values()), TEXT)}  # fmt: skip
    return tuple(found[id] for id in ids if id in found)


Leaves = tuple[int, ...]
"""The dense groups that make up a topic, or a group of a level."""


def with_edits(levels: Sequence[Sequence[Item]], place: int | None, topics: Sequence[Item]) -> list[list[Item]]:
    """Return the groups of each level, the coarsest first, with what people changed in the topics of a run.

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
    if place is None or not _is_regrouped(topics, levels[place]):
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


def _is_regrouped(topics: Sequence[Item], level: Sequence[Item]) -> bool:
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
