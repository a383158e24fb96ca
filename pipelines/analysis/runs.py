"""The runs of a collection: list, look into, rename, delete, break down by a column."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...indexer.errors import SondeError, UsageError, arg, did_you_mean
from ...indexer.store import run_writing
from ...indexer.store.catalog import Catalog
from ...indexer.store.collection import StoredCollection
from ...indexer.store.documents import ids_by_number
from ...indexer.store.kinds import KINDS, RunKind, followers, kind_of
from ...indexer.store.members import members_of, sizes_inside
from ...indexer.store.runs import (
    Item,
    Run,
    RunColumns,
    assignments_of,
    find_run,
    items_by_document,
    items_of,
    lineages_of,
    list_runs,
)
from ...indexer.store.tabular import Shown
from ...indexer.wording import either, existing, on_one_line, shown_id
from ..search.filters import documents_where
from ..search.settings import check_page


@dataclass(frozen=True, slots=True, repr=False)
class RunDetails(Shown):
    """A run with its clusters, topics or labels.

    Attributes:
        run: The run.
        items: By number.
        levels: The columns of the levels of a taxonomy, the top one first; empty for other runs.
    """

    run: Run
    items: list[Item]
    levels: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        levels = {"levels": [*self.levels]} if self.levels else {}
        return self.run.to_dict() | levels | {"items": self.rows()}

    def rows(self) -> list[dict[str, Any]]:
        """Return one row for each cluster, topic or label, as JSON values."""
        return [item.to_dict() for item in self.items]

    def number_of(self, word: str) -> int:
        """Return the number of a group or label that is given by its number or its name.

        Raises:
            UsageError: No group, or several, have this name.
        """
        if re.fullmatch(r"-?\d+", word):
            return int(word)
        named = [item.number for item in self.items if item.name.casefold() == word.strip().casefold()]
        if len(named) == 1:
            return named[0]
        if named:
            raise UsageError(f"several {self.run.kind.items} have the name {word!r}: write a whole number")
        said = f"NUMBER is {word!r}{did_you_mean(word, [item.name for item in self.items])}"
        raise UsageError(f"{said}: write a whole number or the name of one {self.run.kind.item}")

    @property
    def name(self) -> str:
        """The run's name."""
        return self.run.name

    @property
    def documents(self) -> int:
        """How many documents the run says something of."""
        return self.run.documents


@dataclass(frozen=True, slots=True)
class Member:
    """A document of a cluster, a topic, a label or a tag; a higher score belongs more, None says nothing."""

    id: str
    title: str
    text: str
    score: float | None


@dataclass(frozen=True, slots=True)
class Assignment:
    """The cluster, topic or label that a run gave a document; a higher score is a better fit, None is no score."""

    id: str
    number: int
    name: str
    score: float | None


@dataclass(frozen=True, slots=True)
class Membership:
    """A group, label, tag or finding that a document belongs to; a higher score is a better fit, None is no score."""

    run: Run
    number: int
    name: str
    score: float | None


def memberships(collection: StoredCollection, id: str) -> list[Membership]:
    """Return what all complete runs say of one document: the newest run first, the best fit of a run first.

    Raises:
        SondeError: No document has this id.
    """
    with collection.view() as view:
        doc = view.document_number(id)
        if doc is None:
            raise SondeError(
                f"there is no document with the id {shown_id(str(id))}", code="not-found", field="id", value=id
            )
        runs = [run for run in reversed(list_runs(view.catalog, count=False)) if run.complete]
        return [each for run in runs for each in _memberships(view.catalog, run, doc)]


def _memberships(catalog: Catalog, run: Run, doc: int) -> list[Membership]:
    found = items_by_document(catalog, run, [doc]).get(doc, [])
    names = {item.number: item.name for item in items_of(catalog, run)} if found else {}
    return [Membership(run, number, names.get(number, ""), score) for number, score in found]


def assignments(collection: StoredCollection, name: str, kind: str | None = None) -> list[Assignment]:
    """Return the cluster, topic or labels of every document of a run, in the order of the documents.

    Raises:
        SondeError: There is no such run.
        UsageError: It is not clear which run is meant.
    """
    with collection.view() as view:
        run = named(view.catalog, name, kind)
        docs, numbers, scores = assignments_of(view.catalog, run)
        keys = ids_by_number(view.catalog, np.unique(docs).tolist())
        names = {item.number: item.name for item in items_of(view.catalog, run)}
    found = zip(docs.tolist(), numbers.tolist(), scores.tolist(), strict=True)
    return [
        Assignment(keys[doc], number, names.get(number, ""), None if np.isnan(score) else score)
        for doc, number, score in found
    ]


def members(
    collection: StoredCollection, name: str, item: int, kind: str | None = None, *, where: str | None = None,
    k: int = 10, offset: int = 0,
) -> list[Member]:  # fmt: skip
    """Return the documents of a cluster, topic or label that pass a filter, those that belong to it most first.

    Raises:
        SondeError: There is no such run, or it has no such item.
        UsageError: It is not clear which run is meant, the filter is not valid, k is below 1, or the offset below 0.
    """
    check_page(k, offset)
    with collection.view() as view:
        run = named(view.catalog, name, kind)
        among = None if where is None else documents_where(view.catalog, where)
        found = members_of(view.catalog, run, item, k, offset, among)
        if not found and item not in {each.number for each in items_of(view.catalog, run)}:
            said = f"the {run.kind} run {name!r} has no {run.kind.item} {item}"
            raise SondeError(said, code="not-found", field="item", value=item)
        documents = view.documents([doc for doc, _ in found])
    return [Member(documents[doc].id, documents[doc].title, documents[doc].text, score) for doc, score in found]


def all_runs(collection: StoredCollection, kind: str | None = None) -> list[Run]:
    """Return the runs of one kind, or of all, oldest first; runs that are parts of others only for their own kind.

    Raises:
        UsageError: The kind is none.
    """
    wanted = _kind(kind)
    with collection.view() as view:
        return [run for run in list_runs(view.catalog, wanted) if wanted or not run.kind.part]


def details(collection: StoredCollection, name: str, kind: str | None = None) -> RunDetails:
    """Return a run with its clusters, topics or labels; a `size` among their data is the present one.

    The name can be the column of a level, such as "taxonomy:NAME level 0": the groups are then those of the level.

    Raises:
        SondeError: There is no such run.
        UsageError: Runs of several kinds have this name and no kind was given; or the kind is unknown.
    """
    with collection.view() as view:
        run, level = at_level(view.catalog, name, kind)
        return RunDetails(run, items_at(present_items(view.catalog, run), level), levels_of(view.catalog, run))


def levels_of(catalog: Catalog, run: Run) -> tuple[str, ...]:
    """Return the columns of a run's levels, the top one first; none if its items lie under no others."""
    if not run.kind.nested:
        return ()
    columns = RunColumns(catalog)
    return tuple(columns.levels(columns.names.get(run.number, "")))


def at_level(catalog: Catalog, name: str, kind: str | None = None) -> tuple[Run, int | None]:
    """Return the run of a name, and the level that the name means if it is the column of one, else None.

    Raises:
        SondeError: There is no such run.
        UsageError: It is not clear which run is meant.
    """
    found = RunColumns(catalog).level_of(name)
    return found if found and kind in (None, found[0].kind) else (named(catalog, name, kind), None)


def items_at(items: Sequence[Item], level: int | None) -> list[Item]:
    """Return the items at one level, 0 at the top; all if None."""
    depths = {number: len(names) - 1 for number, names in lineages_of(items).items()}
    return [item for item in items if level in (None, depths[item.number])]


def present_items(catalog: Catalog, run: Run) -> list[Item]:
    """Return a run's clusters, topics or labels; a `size` among their data counts the documents that they have now."""
    items = items_of(catalog, run)
    if run.kind.payload != "run_documents":
        return items
    sizes = sizes_inside(catalog, run)  # documents were deleted or changed since
    return [
        replace(item, data={**item.data, "size": sizes.get(item.number, 0)}) if "size" in item.data else item
        for item in items
    ]


def rename_stored(
    collection: StoredCollection, name: str, to: str, kind: str | None = None, item: int | None = None
) -> None:
    """Rename a run or, with its number, a cluster, topic or label of it; groups of a taxonomy have edits of their own.

    Raises:
        SondeError: There is no such run or item, or another process is writing.
        UsageError: The new name is taken or cannot be one, or it is not clear which run is meant.
    """
    with collection.view() as view:
        run = named(view.catalog, name, kind)
    if item is None:
        _check_whole(run, "rename")
        run_writing.rename_run(collection, run.kind, name, to, followers(run.kind))
    elif run.kind.logged:
        said = f"the {run.kind} {name!r} has a log of its edits: rename its groups with `sonde {run.kind} rename`"
        raise UsageError(said, code="conflict", field="item")
    elif not to.strip() or not to.isprintable():
        raise UsageError(f"{to!r} is not a valid {run.kind.item} name: use printable characters")
    else:
        run_writing.rename_item(collection, run, item, to)


def delete_stored_run(collection: StoredCollection, name: str, kind: str | None = None) -> None:
    """Delete a run with its results.

    Raises:
        SondeError: There is no such run, or another process is writing.
        UsageError: It is not clear which run is meant.
    """
    with collection.view() as view:
        run = named(view.catalog, name, kind)
    _check_whole(run, "delete")
    if kind is None and run.kind.follows:
        said = (
            f"only your corrections of {name!r} are left, not the labels: to delete the corrections too, "
            f"give {arg('kind')} {run.kind}"
        )
        raise UsageError(said, code="conflict", field="kind")
    run_writing.delete_run(collection, run.kind, name)


def _check_whole(run: Run, verb: str) -> None:
    """Refuse to change a part of a run alone.

    Raises:
        UsageError: It is a part.
    """
    if run.kind.part and run.kind.follows is not None:
        said = f"the {run.kind} run {run.name!r} is a part of the {run.kind.follows} run {run.name!r}: {verb} that run"
        raise UsageError(said, code="conflict", field="kind", value=str(run.kind))


def named(catalog: Catalog, name: str, kind: str | None = None) -> Run:
    """Return the run of this name, of any kind if none is given.

    Corrections have the name of the run that they correct, and levels that of their topic run. Without a kind, the
    name means that run. `KIND:NAME`, as columns are called, is a name with its kind.

    Raises:
        SondeError: There is none; the message names those that exist.
        UsageError: Several kinds have one of this name, or there is no such kind.
    """
    runs = list_runs(catalog, _kind(kind))
    found = [run for run in runs if run.name == name]
    prefix, colon, rest = name.partition(":")
    if not found and kind is None and colon and prefix in KINDS:
        return named(catalog, rest, prefix)
    found = [run for run in found if run.kind.follows not in {other.kind for other in found}]
    if len(found) > 1:
        kinds = ", ".join(run.kind for run in found)
        said = f"several runs are named {name!r}: say which kind ({kinds}) with {arg('kind')}"
        raise UsageError(said, code="ambiguous", field="kind", alternatives=(run.kind for run in found))
    if not found:
        _check_kind(catalog, name, kind)
        known = (f"{run.name} ({run.kind})" for run in runs if kind is not None or not run.kind.part)
        hint = existing(known, "create one first, with `sonde cluster` for example")
        said = f"there is no run {on_one_line(name)!r} in this collection: {hint}"
        raise SondeError(said, code="not-found", field="run", value=name, alternatives=(run.name for run in runs))
    return found[0]


def _check_kind(catalog: Catalog, name: str, kind: str | None) -> None:
    """Refuse a kind that no run of this name has.

    Raises:
        SondeError: There are runs of this name, of other kinds, which the message names.
    """
    kinds = [run.kind for run in list_runs(catalog, count=False) if run.name == name] if kind is not None else []
    chosen = [each for each in kinds if each.follows not in kinds]
    if not chosen:
        return
    given = either([arg("kind", each) for each in chosen])
    said = f"{on_one_line(name)!r} is {' and '.join(f'a {each} run' for each in chosen)}, not a {kind} run: "
    said += f"leave the kind out, or give {given}" if len(chosen) == 1 else f"give {given}"
    raise SondeError(said, code="not-found", field="run", value=name, alternatives=chosen)


def newest(catalog: Catalog, kind: RunKind, name: str | None = None) -> Run:
    """Return the run of this name, or the newest complete one of its kind; `PART:NAME` names a part of a run.

    Raises:
        SondeError: There is none; the message names those that exist.
    """
    prefix, _, rest = (name or "").partition(":")
    part = next((each for each in followers(kind) if each.part and each == prefix), None)
    if part is None or any(run.name == name for run in list_runs(catalog, kind, count=False)):
        return find_run(catalog, kind, name)
    return find_run(catalog, part, rest)


def _kind(name: str | None) -> RunKind | None:
    return None if name is None else kind_of(name)
