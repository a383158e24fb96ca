"""The tree of a taxonomy as `sonde taxonomy` prints it."""

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from ...indexer.store.kinds import TAXONOMY
from ...indexer.wording import counted
from .output import print_json, quoted, say, snippet

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...pipelines.taxonomy import Taxonomy, TaxonomyGroup
    from ..api import Collection

WIDTH = 60
Depth = Annotated[int | None, typer.Option("--depth", metavar="N", help="Show only the N upper levels of the tree.")]


def check_depth(depth: int | None, json: bool) -> None:
    """Check that a tree can be cut at a depth.

    Raises:
        UsageError: It is below 1, or JSON is wanted, which has all groups.
    """
    from ...indexer.errors import UsageError, out_of_range

    if depth is not None and depth < 1:
        raise out_of_range("depth", depth, "give 1 or more")
    if depth is not None and json:
        raise UsageError("--depth cuts the tree, and --json has all groups: use one of them", code="conflict")


def print_taxonomy(found: "Taxonomy", json: bool, collection: Path, depth: int | None = None) -> None:
    """Print the groups of a taxonomy; with a depth, those of the upper levels, with how many are under each."""
    if json:
        print_json(found.to_dict())
        return
    print_groups(found, [group for group in found.groups if depth is None or group.level < depth])
    said = f"{found.name}: {counted(len(found.groups), 'group')}, {counted(found.documents, 'document')}"
    said += f", {found.outside:,} in no group" if found.outside else ""
    said += f", {counted(found.locked, 'document')} locked" if found.locked else ""
    say(said)
    if found.outside:
        say(outside(collection, found.name))
    if found.unknown:
        filled = found.outside < found.documents
        verb = "is" if found.unknown == 1 else "are"
        said = f"{counted(found.unknown, 'document')} {verb} not in this taxonomy yet"
        say(said + (": run `sonde taxonomy update`" if filled else ""))


def print_groups(found: "Taxonomy", shown: "Sequence[TaxonomyGroup]") -> None:
    """Print some groups of a taxonomy; those whose groups are not among them say how many these are."""
    under = _under(found)
    parents = {group.parent for group in shown}
    for group in shown:
        cut = under[group.number] if group.number not in parents else 0
        name = f"{'  ' * group.level}{snippet(group.name, WIDTH)}"
        print(f"{group.number:>5}  {group.total:>9,}  {name}{_marks(group, cut)}")


def _under(found: "Taxonomy") -> dict[int, int]:
    """Return how many groups lie under each, at all levels."""
    many = {group.number: 0 for group in found.groups}
    for group in reversed(found.groups):
        if group.parent is not None:
            many[group.parent] += 1 + many[group.number]
    return many


def complete_names(opened: "Collection") -> list[str]:
    """Return the names of the taxonomies of a collection, the oldest first."""
    return [run.name for run in opened.uncounted_runs(TAXONOMY) if run.complete]


def say_newest(before: "Sequence[str]", name: str) -> None:
    """Say that commands use a new taxonomy, if there were others before."""
    if before and before[-1] != name:
        other = "the other" if len({*before} - {name}) == 1 else "another"
        said = f"commands without --name now use {name!r}, the newest taxonomy"
        say(f"{said}; to use {other}: --name {quote(before[-1])}")


def outside(collection: Path, name: str) -> str:
    """Say how to list the documents that are in no group."""
    return f"to list the documents in no group: sonde runs show {quoted(collection)} {quote(name)} -1"


def _marks(group: "TaxonomyGroup", cut: int) -> str:
    marks = [word for word in ("locked", "proposed") if getattr(group, word)]
    marks += [f"rule: {snippet(group.rule, WIDTH)}"] if group.rule else []
    marks += [f"{counted(cut, 'group')} under it"] if cut else []
    return f"  [{'; '.join(marks)}]" if marks else ""
