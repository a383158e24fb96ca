"""`sonde taxonomy`: groups that you edit, that have a log, and that survive new documents."""

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from ...indexer.errors import UsageError
from ...indexer.store.kinds import TAXONOMY
from ...indexer.wording import counted
from . import taxonomy_edits, taxonomy_forms
from .asking import Yes, ask_to_replace_edits, free_name, say_name
from .commands import DefaultGroup
from .output import CollectionPath, Device, Json, Seed, print_json, progress, quoted, say, snippet
from .taxonomy_forms import WIDTH, Depth, Name, check_depth, complete_names, outside, print_taxonomy, say_newest

if TYPE_CHECKING:
    from ...pipelines.taxonomy import TaxonomyUpdate


def register(app: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(cls=DefaultGroup, no_args_is_help=True, rich_markup_mode=None)
    group.callback()(_keep_group)
    group.command("show", short_help="Show a taxonomy, or make one; `show` may be left out.")(show)
    taxonomy_edits.register(group)
    group.command("update", short_help="Put new documents into groups; propose groups for what is new.")(update)
    group.command("refit", short_help="Learn the groups again; locked groups and documents stay.")(refit)
    group.command("log", short_help="Show who changed what and when.")(log)
    group.command("undo", short_help="Undo the last edits.")(undo)
    taxonomy_forms.register(group)
    app.add_typer(group, name="taxonomy")


def _keep_group() -> None:
    """Edit groups, and keep them as documents change: rename, merge, split, move, lock, undo."""


def show(
    collection: CollectionPath,
    source: Annotated[
        str | None,
        typer.Option("--from", metavar="RUN", help="Make a taxonomy of this cluster, topic or label run first."),
    ] = None,
    name: Name = None,
    kind: Annotated[str | None, typer.Option("--kind", help="Kind of the run of --from.")] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace a taxonomy of the same name, and its log.")
    ] = False,
    flat: Annotated[
        bool, typer.Option("--flat", help="With --from a topic run: take only its topics, without its levels.")
    ] = False,
    depth: Depth = None,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Show a taxonomy as a tree. With --from, first make it from the groups of a run.

    You can leave out `show`. Each line has a group's number, the documents in it and under it, and its name. The levels
    of a topic run become levels of the tree; topics that you named, merged or split stay as they are. A group keeps its
    number, whatever you edit. With --depth, the deeper groups are only counted.

    \b
    Examples:
      sonde taxonomy desk.sonde --from topics
      sonde taxonomy desk.sonde --from topics --flat --name flat
      sonde taxonomy desk.sonde
      sonde taxonomy rename desk.sonde 3 "Late parcels"
      sonde taxonomy merge desk.sonde 3 5
      sonde taxonomy move desk.sonde --id 4711 --to "Late parcels"
      sonde taxonomy update desk.sonde
      sonde taxonomy undo desk.sonde
    """
    from ..api import open as open_collection

    if source is None and (kind is not None or replace or flat):
        raise UsageError("--kind, --replace and --flat need --from: name the run to make a taxonomy from")
    check_depth(depth, json)
    opened = open_collection(collection)
    if source is None:
        print_taxonomy(opened.taxonomy(name), json, collection, depth)
        return
    before = complete_names(opened)
    free = free_name(opened, TAXONOMY, name or str(TAXONOMY), replace)
    ask_to_replace_edits(opened, free, yes)
    with progress(quiet=json) as notify:
        found = opened.make_taxonomy(source, free, kind=kind, replace=replace, flat=flat, progress=notify)
    say_name(TAXONOMY, name or str(TAXONOMY), free)
    print_taxonomy(found, json, collection, depth)
    say_newest(before, free)


def update(
    collection: CollectionPath, name: Name = None, seed: Seed = 0, device: Device = "auto", json: Json = False
) -> None:
    """Add new documents to the groups of a taxonomy; documents that are already in it stay.

    Locked documents return to their groups, and documents that match a rule go to its group. Other new documents go to
    the nearest group, or to none if no group is near. If new documents form a group where there are no old ones, Sonde
    proposes a new group: see `sonde taxonomy accept` and `reject`.

    \b
    Examples:
      sonde taxonomy update desk.sonde
    """
    from ..api import open as open_collection

    with progress(quiet=json) as notify:
        found = open_collection(collection, device=device).update_taxonomy(name, seed=seed, progress=notify)
    _print_update(found, json, collection)


def refit(
    collection: CollectionPath,
    name: Name = None,
    k: Annotated[int | None, typer.Option("-k", help="Learn this many groups from scratch.")] = None,
    seed: Seed = 0,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Learn the groups again from all documents. Locked documents and documents that match a rule stay.

    Groups keep their numbers and names. With -k, groups are learned from scratch and matched with the old ones; those
    that match none are proposed.

    \b
    Examples:
      sonde taxonomy refit desk.sonde
      sonde taxonomy refit desk.sonde -k 12
    """
    from ..api import open as open_collection

    with progress(quiet=json) as notify:
        opened = open_collection(collection, device=device)
        found = opened.refit_taxonomy(name, k=k, seed=seed, progress=notify)
    _print_update(found, json, collection)
    if found.moved:
        named = name is not None or taxonomy_edits.edited_of_several(opened, name)
        chosen = f" --name {quote(found.taxonomy)}" if named else ""
        said = f"{counted(found.moved, 'document')} in another group than before; to undo this: "
        say(f"{said}sonde taxonomy undo {quoted(collection)}{chosen}")


def _print_update(found: "TaxonomyUpdate", json: bool, collection: Path) -> None:
    if json:
        print_json(found.to_dict())
        return
    for number, name, size in found.proposed:
        print(f"{number:>5}  {size:>9,}  {snippet(name, WIDTH)}  [proposed]")
    for conflict in found.conflicts:
        say(f"note: {found.taxonomy}: {conflict.said}")
    kept, of = found.kept
    few = f"{kept:,} of {counted(of, 'group')} kept most of their documents"
    every = "all groups kept their documents" if not found.moved else "every group kept most of its documents"
    said = f"{found.taxonomy}: {found.said}; {few if kept < of else every}"
    verb = "is" if found.outside == 1 else "are"
    say(said + (f", {counted(found.outside, 'new document')} {verb} in no group" if found.outside else ""))
    if found.outside:
        say(outside(collection, found.taxonomy))


def log(
    collection: CollectionPath,
    name: Name = None,
    k: Annotated[int, typer.Option("-k", help="Number of edits to show.")] = 20,
    json: Json = False,
) -> None:
    """Show the edits of a taxonomy, the newest first: number, time, who, and what.

    \b
    Examples:
      sonde taxonomy log desk.sonde -k 5
    """
    from ..api import open as open_collection

    entries = open_collection(collection).taxonomy_log(name, k)
    for entry in entries:
        if json:
            print_json(entry.to_dict())
            continue
        undone = "  (undone)" if entry.undone else ""
        print(
            f"{entry.number:>5}  {entry.at[:16].replace('T', ' ')}  {snippet(entry.by, 16):<16}  {entry.said}{undone}"
        )
    if entries and entries[-1].number > 1 and not json:
        say(f"{counted(entries[-1].number - 1, 'earlier edit')}: -k {entries[0].number}")


def undo(
    collection: CollectionPath,
    steps: Annotated[int, typer.Option("--steps", metavar="N", help="Number of edits to undo.")] = 1,
    name: Name = None,
) -> None:
    """Undo the last edits. The log keeps the edits and the undo, so nothing is lost.

    \b
    Examples:
      sonde taxonomy undo desk.sonde
      sonde taxonomy undo desk.sonde --steps 3
    """
    from ..api import open as open_collection

    opened = open_collection(collection)
    undone = opened.undo_taxonomy(steps, name)
    of_several = taxonomy_edits.edited_of_several(opened, name)
    subject = f"{of_several}: " if of_several else ""
    for entry in undone:
        say(f"{subject}undid {entry.number}: {entry.said}")
