"""The runs of a collection: listed, looked at, renamed and deleted."""

from dataclasses import dataclass
from typing import Any

from ..indexer import run_writing
from ..indexer.catalog import Catalog
from ..indexer.collection import Collection
from ..indexer.errors import SondeError, UsageError
from ..indexer.runs import KINDS, Item, Kind, Run, items_of, list_runs
from ..indexer.wording import existing


@dataclass(frozen=True, slots=True)
class RunDetails:
    """A run with its clusters, topics or labels."""

    run: Run
    items: list[Item]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        items = [{"number": item.number, "name": item.name, **item.data} for item in self.items]
        return self.run.to_dict() | {"items": items}


@dataclass(frozen=True, slots=True)
class Member:
    """A document of a cluster, a topic, a label or a tag; a higher score belongs more, None says nothing."""

    id: str
    title: str
    text: str
    score: float | None


def members(
    collection: Collection, name: str, item: int, kind: Kind | None = None, *, k: int = 10, offset: int = 0
) -> list[Member]:
    """Return the documents of a cluster, topic or label, those that belong to it most first.

    Raises:
        SondeError: There is no such run.
        UsageError: It is not clear which run is meant, k is below 1, or the offset below 0.
    """
    if k < 1 or offset < 0:
        raise UsageError(f"k is {k} and offset {offset}: k must be 1 or more, offset 0 or more")
    with collection.view() as view:
        run = named(view.catalog, name, kind)
        sql = (
            "SELECT doc, score FROM run_documents WHERE run = ? AND item = ? ORDER BY score DESC, doc LIMIT ? OFFSET ?"
        )
        found = view.catalog.connection.execute(sql, (run.number, item, min(k, 2**31), min(offset, 2**31))).fetchall()
        documents = view.documents([doc for doc, _ in found])
    return [Member(documents[doc].id, documents[doc].title, documents[doc].text, score) for doc, score in found]


def all_runs(collection: Collection, kind: Kind | None = None) -> list[Run]:
    """Return the runs of one kind, or of all, oldest first.

    Raises:
        UsageError: The kind is none.
    """
    _check(kind)
    with collection.view() as view:
        return list_runs(view.catalog, kind)


def details(collection: Collection, name: str, kind: Kind | None = None) -> RunDetails:
    """Return a run with its clusters, topics or labels.

    Raises:
        SondeError: There is no such run.
        UsageError: Runs of several kinds have this name and none was said; or the kind is none.
    """
    with collection.view() as view:
        run = named(view.catalog, name, kind)
        return RunDetails(run, items_of(view.catalog, run))


def rename(collection: Collection, name: str, to: str, kind: Kind | None = None, item: int | None = None) -> None:
    """Rename a run or, with its number, a cluster, topic or label of it.

    Raises:
        SondeError: There is no such run or item, or another process is writing.
        UsageError: The new name is taken or cannot be one, or it is not clear which run is meant.
    """
    with collection.view() as view:
        run = named(view.catalog, name, kind)
    if item is None:
        run_writing.rename_run(collection.path, run.kind, name, to)
        if run.kind == "label" and any(other.name == name for other in all_runs(collection, "correction")):
            run_writing.rename_run(collection.path, "correction", name, to)
    elif not to.strip() or not to.isprintable():
        raise UsageError(f"{to!r} cannot name a {run.kind}: use printable characters")
    else:
        run_writing.rename_item(collection.path, run, item, to)


def delete(collection: Collection, name: str, kind: Kind | None = None) -> None:
    """Delete a run with its results.

    Raises:
        SondeError: There is no such run, or another process is writing.
        UsageError: It is not clear which run is meant.
    """
    with collection.view() as view:
        run = named(view.catalog, name, kind)
    run_writing.delete_run(collection.path, run.kind, name)


def named(catalog: Catalog, name: str, kind: Kind | None = None) -> Run:
    """Return the run of this name, whatever its kind where none is said.

    Raises:
        SondeError: There is none; the message names those that exist.
        UsageError: Several kinds have one of this name, or the kind is none.
    """
    _check(kind)
    runs = list_runs(catalog, kind)
    found = [run for run in runs if run.name == name]
    if len(found) > 1:
        kinds = ", ".join(run.kind for run in found)
        raise UsageError(f"several runs are named {name!r}: say which kind ({kinds}) with --kind")
    if not found:
        known = (f"{run.name} ({run.kind})" for run in runs)
        hint = existing(known, "make one first, with `sonde cluster` for example")
        raise SondeError(f"there is no run {name!r} in this collection: {hint}")
    return found[0]


def _check(kind: str | None) -> None:
    if kind is not None and kind not in KINDS:
        raise UsageError(f"{kind!r} is no kind of run: use {', '.join(KINDS)}")
