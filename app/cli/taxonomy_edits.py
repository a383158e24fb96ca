"""The edits of `sonde taxonomy`."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...indexer.errors import UsageError
from ...indexer.wording import counted
from .output import CollectionPath, Device, progress, say
from .taxonomy_forms import Name, complete_names, print_groups

if TYPE_CHECKING:
    from pathlib import Path

    from ...pipelines.taxonomy import LogEntry
    from ..api import Collection

Group = Annotated[str, typer.Argument(metavar="GROUP", help="Number, name or path (A > B) of a group.")]
Groups = Annotated[list[str], typer.Argument(metavar="GROUP...", help="Numbers, names or paths (A > B) of groups.")]
SomeGroups = Annotated[
    list[str] | None, typer.Argument(metavar="GROUP...", help="Numbers, names or paths (A > B) of groups.")
]
Ids = Annotated[list[str] | None, typer.Option("--id", metavar="ID", help="Id of a document; repeat it for more.")]
Where = Annotated[str | None, typer.Option("--where", metavar="FILTER", help="Documents that pass this filter.")]
Level = Annotated[int | None, typer.Option("--level", metavar="N", help="A level of the tree, 0 at the top.")]
Examples = Annotated[
    list[str] | None, typer.Option("--examples", metavar="ID", help="Id of a typical document; repeat it for more.")
]
Near = Annotated[float, typer.Option("--near", metavar="COSINE", help="Minimum cosine to the nearest of --examples.")]


def register(group: typer.Typer) -> None:
    """Add the commands to the group."""
    group.command("add", short_help="Add an empty group.")(add)
    group.command("rename", short_help="Rename a group or a level.")(rename)
    group.command("describe", short_help="Describe what belongs to a group.")(describe)
    group.command("merge", short_help="Merge groups into the first.")(merge)
    group.command("split", short_help="Split a group into groups under it.")(split)
    group.command("move", short_help="Move groups under another, or documents to a group.")(move)
    group.command("remove", short_help="Remove groups; what they hold goes to the group above.")(remove)
    group.command("lock", short_help="Lock groups or documents.")(lock)
    group.command("unlock", short_help="Unlock groups or documents.")(unlock)
    group.command("rule", short_help="Set or remove the rule that fills a group.")(rule)
    group.command("accept", short_help="Accept proposed groups.")(accept)
    group.command("reject", short_help="Reject proposed groups.")(reject)


def _edit(collection: "Path", operation: Any, taxonomy: str | None, device: str = "auto", **options: Any) -> None:
    """Make an edit, and say what became different. After a split, print the new groups."""
    from ..api import open as open_collection

    given = {key: value for key, value in options.items() if value is not None}
    with progress() as notify:
        opened = open_collection(collection, device=device)
        before = opened.taxonomy(taxonomy) if operation == "split" else None
        entry = opened.edit_taxonomy(operation, taxonomy, progress=notify, **given)
    if before is not None and entry is not None:
        after, known = opened.taxonomy(before.name), {group.number for group in before.groups}
        print_groups(after, [group for group in after.groups if group.number not in known])
    _say(entry, edited_of_several(opened, taxonomy))


def edited_of_several(opened: "Collection", taxonomy: str | None) -> str | None:
    """Return the name of the taxonomy that a command edits, the newest if it names none; None if there is only one."""
    names = complete_names(opened)
    return (taxonomy or names[-1]) if len(names) > 1 else None


def _say(entry: "LogEntry | None", taxonomy: str | None) -> None:
    subject = f"{taxonomy}: " if taxonomy else ""
    if entry is None:
        say(f"{subject}nothing to change: the taxonomy is already like this")
        return
    many = counted(entry.documents, "document")
    moved = f" ({many} moved)" if entry.documents and f"moved {many} " not in entry.said else ""
    say(f"{subject}{entry.number}: {entry.said}{moved}")


def add(
    collection: CollectionPath,
    new: Annotated[str, typer.Argument(metavar="NAME", help="Name of the new group.")],
    to: Annotated[str | None, typer.Option("--to", metavar="GROUP", help="The group to add it under.")] = None,
    description: Annotated[str | None, typer.Option("--description", help="What belongs to it.")] = None,
    name: Name = None,
) -> None:
    """Add an empty group. A collection without a taxonomy gets one.

    \b
    Examples:
      sonde taxonomy add desk.sonde "Returns" --description "parcels that come back"
      sonde taxonomy add desk.sonde "Late" --to Shipping
    """
    _edit(collection, "add", name, to=to, description=description, **{"name": new})


def rename(
    collection: CollectionPath,
    words: Annotated[list[str], typer.Argument(metavar="[GROUP] NAME", help="The group, and its new name.")],
    level: Level = None,
    name: Name = None,
) -> None:
    """Rename a group; with --level, a level of the tree.

    \b
    Examples:
      sonde taxonomy rename desk.sonde 3 "Late parcels"
      sonde taxonomy rename desk.sonde --level 0 departments
    """
    if len(words) != (2 if level is None else 1):
        what = "the group and its new name" if level is None else "the new name of the level"
        raise UsageError(f"give {what}; put a name with spaces in quotes")
    _edit(collection, "rename", name, groups=words[:-1], level=level, **{"name": words[-1]})


def describe(
    collection: CollectionPath,
    group: Group,
    description: Annotated[str, typer.Argument(metavar="TEXT", help="What belongs to it.")],
    name: Name = None,
) -> None:
    """Describe what belongs to a group. `sonde taxonomy import --label` uses the description.

    \b
    Examples:
      sonde taxonomy describe desk.sonde 3 "parcels that came late or not at all"
    """
    _edit(collection, "describe", name, groups=[group], description=description)


def merge(collection: CollectionPath, groups: Groups, name: Name = None) -> None:
    """Merge groups: the first gets the documents of all, and the groups under them.

    \b
    Examples:
      sonde taxonomy merge desk.sonde 3 5 8
    """
    _edit(collection, "merge", name, groups=groups)


def split(
    collection: CollectionPath,
    group: Group,
    k: Annotated[int | None, typer.Option("-k", help="Number of parts, by meaning.")] = None,
    run: Annotated[
        str | None, typer.Option("--run", metavar="RUN", help="A run whose groups are the parts: fine:topics, kmeans …")
    ] = None,
    where: Where = None,
    examples: Examples = None,
    near: Near = 0.7,
    part: Annotated[str | None, typer.Option("--part", metavar="NAME", help="With --where: name of the part.")] = None,
    name: Name = None,
    device: Device = "auto",
) -> None:
    """Split a group: its documents go to new groups under it, and locks go with them.

    With --where or --examples, the documents that match go to one new group, and the others stay. The new groups are
    printed with their numbers and sizes.

    \b
    Examples:
      sonde taxonomy split desk.sonde 3 -k 4
      sonde taxonomy split desk.sonde 3 --run fine:topics
      sonde taxonomy split desk.sonde 3 --where "year >= 2024" --part recent
    """
    given = {"k": k, "run": run, "where": where, "examples": examples or (), "near": near, "name": part}
    _edit(collection, "split", name, device, groups=[group], **given)


def move(
    collection: CollectionPath,
    to: Annotated[
        str, typer.Option("--to", metavar="GROUP", help="Target: a group, top (groups only) or none (documents only).")
    ],
    groups: SomeGroups = None,
    ids: Ids = None,
    where: Where = None,
    lock: Annotated[bool, typer.Option("--lock/--no-lock", help="Lock moved documents where they go.")] = True,
    name: Name = None,
) -> None:
    """Move groups under another group, or documents to a group. Documents that you move are locked there.

    With --where, documents in locked groups stay, and the output says how many.

    \b
    Examples:
      sonde taxonomy move desk.sonde 3 5 --to Shipping
      sonde taxonomy move desk.sonde --id 4711 --id 4712 --to 3
      sonde taxonomy move desk.sonde --where "stars <= 1" --to complaints --no-lock
    """
    _edit(collection, "move", name, groups=groups or (), ids=ids or (), where=where, to=to, lock=lock)


def remove(collection: CollectionPath, groups: Groups, name: Name = None) -> None:
    """Remove groups. Their documents and the groups under them go to the group above, or to none.

    \b
    Examples:
      sonde taxonomy remove desk.sonde 8
    """
    _edit(collection, "remove", name, groups=groups)


def lock(
    collection: CollectionPath, groups: SomeGroups = None, ids: Ids = None, where: Where = None, level: Level = None,
    name: Name = None,
) -> None:  # fmt: skip
    """Lock groups and everything under them, a level of the tree, or single documents.

    Updates and refits do not move locked documents, and a locked group cannot be edited. New documents may still
    join it. A document is locked by its id, so it returns to its group when its text changes.

    \b
    Examples:
      sonde taxonomy lock desk.sonde Shipping
      sonde taxonomy lock desk.sonde --id 4711
      sonde taxonomy lock desk.sonde --level 0
    """
    _edit(collection, "lock", name, groups=groups or (), ids=ids or (), where=where, level=level)


def unlock(
    collection: CollectionPath, groups: SomeGroups = None, ids: Ids = None, where: Where = None, level: Level = None,
    name: Name = None,
) -> None:  # fmt: skip
    """Unlock groups, a level, or documents.

    \b
    Examples:
      sonde taxonomy unlock desk.sonde Shipping
      sonde taxonomy unlock desk.sonde --id 4711
    """
    _edit(collection, "unlock", name, groups=groups or (), ids=ids or (), where=where, level=level)


def rule(
    collection: CollectionPath, group: Group, where: Where = None, examples: Examples = None, near: Near = 0.7,
    name: Name = None, device: Device = "auto",
) -> None:  # fmt: skip
    """Set the rule of a group: documents that pass a filter or are similar to examples join it.

    They join at once and at each update. If two rules match a document, the group with the lower number
    gets it. Without --where and --examples, the rule is removed.

    \b
    Examples:
      sonde taxonomy rule desk.sonde 3 --where "stars <= 2"
      sonde taxonomy rule desk.sonde 3 --examples 4711 --examples 4712 --near 0.75
      sonde taxonomy rule desk.sonde 3
    """
    given = {"where": where, "examples": examples or (), "near": near}
    _edit(collection, "rule", name, device, groups=[group], **given)


def accept(collection: CollectionPath, groups: Groups, name: Name = None) -> None:
    """Accept proposed groups: they become groups like the others.

    \b
    Examples:
      sonde taxonomy accept desk.sonde 23
    """
    _edit(collection, "accept", name, groups=groups)


def reject(collection: CollectionPath, groups: Groups, name: Name = None, device: Device = "auto") -> None:
    """Reject proposed groups: they are removed, and their documents go to the nearest other group.

    \b
    Examples:
      sonde taxonomy reject desk.sonde 23
    """
    _edit(collection, "reject", name, device, groups=groups)
