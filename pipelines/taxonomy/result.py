"""A taxonomy as interfaces show it: groups in the order of the tree, with their documents counted."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ...indexer.errors import out_of_range
from ...indexer.store.collection import StoredCollection
from ...indexer.store.documents import numbers_by_id
from ...indexer.store.kinds import CORRECTION, LABEL
from ...indexer.store.members import item_sizes
from ...indexer.store.tabular import Shown
from ..analysis.group_table import group_row, quotes, shortened, sizes_where, tidied
from ..analysis.runs import RunDetails
from .groups import NO_GROUP, Group, Groups, Rule, lock_above, path, totals, walk
from .stored import LogEntry, load, log_of


@dataclass(frozen=True, slots=True)
class TaxonomyGroup:
    """A group of a taxonomy.

    Attributes:
        number: Identifies it; no other group of the taxonomy ever gets the same one.
        name: What it is called.
        path: The names from the top down to it: "Shipping > Late".
        level: How far it is from the top, 0 at the top.
        parent: Number of the group above it, or None.
        description: What belongs to it; "" if nobody wrote one.
        documents: How many documents are directly in it.
        total: How many documents are in it and in the groups under it.
        locked: Whether it or a group above it is locked.
        proposed: Whether Sonde found it, and nobody has accepted it yet.
        rule: What it holds, in words; "" without a rule.
        rule_where: The filter of its rule; "" without one.
        rule_examples: Ids of the documents that its rule takes as examples.
        rule_near: Cosine to the nearest example from which on a document matches; None without examples.
        source: Where it came from.
        examples: Texts that are typical of it.
    """

    number: int
    name: str
    path: str
    level: int
    parent: int | None
    description: str
    documents: int
    total: int
    locked: bool
    proposed: bool
    rule: str
    rule_where: str
    rule_examples: tuple[str, ...]
    rule_near: float | None
    source: str
    examples: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        found = {name: getattr(self, name) for name in self.__slots__}
        return found | {"examples": list(self.examples), "rule_examples": list(self.rule_examples)}


@dataclass(frozen=True, slots=True, repr=False)
class Taxonomy(Shown):
    """A stored taxonomy.

    Attributes:
        name: The run's name.
        groups: In the order of the tree: each group before those under it.
        levels: Names of the levels, the top one first; deeper levels have none.
        documents: How many documents it knows.
        outside: How many of them are in no group.
        unknown: How many documents of the collection it does not know.
        locked: How many documents of the collection are locked one by one.
        edits: How many entries its log has.
    """

    name: str
    groups: tuple[TaxonomyGroup, ...]
    levels: tuple[str, ...]
    documents: int
    outside: int
    unknown: int
    locked: int
    edits: int

    def rows(self) -> list[dict[str, Any]]:
        """Return one row for each group, as JSON values."""
        return [group.to_dict() for group in self.groups]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        found = {name: getattr(self, name) for name in self.__slots__}
        return found | {"groups": self.rows(), "levels": list(self.levels)}

    def __getitem__(self, number: int) -> TaxonomyGroup:
        """Return the group of a number.

        Raises:
            KeyError: There is none.
        """
        return {group.number: group for group in self.groups}[number]


def taxonomy_table(
    collection: StoredCollection, details: RunDetails, where: str | None = None
) -> list[dict[str, Any]]:  # fmt: skip
    """Return a row for each group, the largest first, and each before those under it; documents include theirs.

    With a filter, only the documents that pass it are counted and quoted.
    """
    found = read_taxonomy(collection, details.run.name)
    sizes, whole = {group.number: group.total for group in found.groups}, found.documents
    if where is not None:
        sizes, whole = sizes_where(collection, details, where)
    column = str(details.run.parameters.get("from", ""))
    kind, colon, name = column.partition(":")
    corrected = CORRECTION.column(name) if colon and kind == LABEL.name else None

    def texts(group: TaxonomyGroup) -> list[str]:
        own = [shortened(text) for text in group.examples] if where is None else []
        return own or quotes(collection, details, group.number, where, corrected)

    nested = any(group.level for group in found.groups)  # else each path is a name
    return tidied([
        group_row(
            group.number, group.name, sizes.get(group.number, 0), whole, texts(group),
            path=group.path if nested else "", description=group.description, rule=group.rule,
        )
        for group in _by_size(found.groups, None)
    ])  # fmt: skip


def _by_size(groups: Sequence[TaxonomyGroup], parent: int | None) -> Iterator[TaxonomyGroup]:
    for group in sorted((group for group in groups if group.parent == parent), key=lambda group: -group.total):
        yield group
        yield from _by_size(groups, group.number)


def read_taxonomy(collection: StoredCollection, name: str | None = None) -> Taxonomy:
    """Return a taxonomy, the newest one if no name is given.

    Raises:
        SondeError: There is no such taxonomy.
    """
    with collection.view() as view:
        stored = load(view.catalog, name, documents=False)
        sizes = item_sizes(view.catalog, stored.run)
        every, _, _ = view.catalog.counts()
        locked = len(numbers_by_id(view.catalog, stored.state.locks))
    state, known = stored.state, sum(sizes.values())
    whole = totals(state.groups, sizes)
    groups = tuple(
        _shown(state.groups, group, depth, sizes.get(group.number, 0), whole[group.number])
        for group, depth in walk(state.groups)
    )
    outside = sizes.get(NO_GROUP, 0)
    return Taxonomy(stored.run.name, groups, state.levels, known, outside, every - known, locked, stored.head)


def _shown(groups: Groups, group: Group, depth: int, documents: int, total: int) -> TaxonomyGroup:
    rule = group.rule or Rule()
    return TaxonomyGroup(
        group.number, group.name, path(groups, group.number), depth, group.parent, group.description, documents, total,
        lock_above(groups, group.number) is not None, group.proposed, rule.said, rule.where or "", rule.examples,
        rule.near if rule.examples else None, group.source, group.examples,
    )  # fmt: skip


def read_log(collection: StoredCollection, name: str | None = None, k: int = 20) -> list[LogEntry]:
    """Return the last k entries of a taxonomy's log, the newest first.

    Raises:
        SondeError: There is no such taxonomy.
        UsageError: k is below 1.
    """
    if k < 1:
        raise out_of_range("k", k, "give 1 or more")
    with collection.view() as view:
        return log_of(view.catalog, load(view.catalog, name, documents=False))[: -k - 1 : -1]
