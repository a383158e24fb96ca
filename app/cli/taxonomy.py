"""`sonde taxonomy`: groups that you edit, that have a log, and that survive new documents."""

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...indexer.store.kinds import TAXONOMY
from ...indexer.wording import counted
from . import taxonomy_edits
from .asking import Yes, ask_to_replace, free_name, say_name
from .groups import DefaultGroup
from .output import CollectionPath, Device, Json, Seed, print_json, progress, say, snippet
from .taxonomy_edits import Name

if TYPE_CHECKING:
    from ...pipelines.taxonomy import Taxonomy, TaxonomyGroup, TaxonomyUpdate

FORMS = {".json": "json", ".csv": "csv", ".ttl": "ttl", ".jsonld": "jsonld", ".rdf": "rdf", ".xml": "rdf"}
"""The forms of files by suffix."""
WIDTH = 60


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
    group.command("export", short_help="Write a taxonomy to JSON, CSV or SKOS.")(export)
    group.command("import", short_help="Read a taxonomy from JSON, CSV or SKOS.")(import_)
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
    json: Json = False,
) -> None:
    """Show a taxonomy as a tree. With --from, first make it from the groups of a run.

    You can leave out `show`. Each line has a group's number, the documents in it and under it, and its name. The levels
    of a topic run become levels of the tree; topics that you named, merged or split stay as they are. A group keeps its
    number, whatever you edit.

    \b
    Examples:
      sonde taxonomy desk.sonde --from topics
      sonde taxonomy desk.sonde
      sonde taxonomy rename desk.sonde 3 "Late parcels"
      sonde taxonomy merge desk.sonde 3 5
      sonde taxonomy move desk.sonde --id 4711 --to "Late parcels"
      sonde taxonomy update desk.sonde
      sonde taxonomy undo desk.sonde
    """
    from ...indexer.errors import UsageError
    from ..api import open as open_collection

    if source is None and (kind is not None or replace):
        raise UsageError("--kind and --replace need --from: name the run to make a taxonomy from")
    opened = open_collection(collection)
    if source is None:
        print_taxonomy(opened.taxonomy(name), json, collection)
        return
    before = [run.name for run in opened.uncounted_runs(TAXONOMY) if run.complete]
    free = free_name(opened, TAXONOMY, name or str(TAXONOMY), replace)
    found = opened.make_taxonomy(source, free, kind=kind, replace=replace)
    say_name(TAXONOMY, name or str(TAXONOMY), free)
    print_taxonomy(found, json, collection)
    if before and before[-1] != free:
        other = "the other" if len({*before} - {free}) == 1 else "another"
        said = f"commands without --name now use {free!r}, the newest taxonomy"
        say(f"{said}; to use {other}: --name {quote(before[-1])}")


def print_taxonomy(found: "Taxonomy", json: bool, collection: Path) -> None:
    """Print the groups of a taxonomy."""
    if json:
        print_json(found.to_dict())
        return
    for group in found.groups:
        print(f"{group.number:>5}  {group.total:>9,}  {'  ' * group.level}{snippet(group.name, WIDTH)}{_marks(group)}")
    said = f"{found.name}: {counted(len(found.groups), 'group')}, {counted(found.documents, 'document')}"
    said += f", {found.outside:,} in no group" if found.outside else ""
    said += f", {counted(found.locked, 'document')} locked" if found.locked else ""
    say(said)
    if found.outside:
        say(_outside(collection, found.name))
    if found.unknown:
        filled = found.outside < found.documents
        verb = "is" if found.unknown == 1 else "are"
        said = f"{counted(found.unknown, 'document')} {verb} not in this taxonomy yet"
        say(said + (": run `sonde taxonomy update`" if filled else ""))


def _outside(collection: Path, name: str) -> str:
    """Say how to list the documents that are in no group."""
    return f"to list the documents in no group: sonde runs show {quote(str(collection))} {quote(name)} -1"


def _marks(group: "TaxonomyGroup") -> str:
    marks = [word for word in ("locked", "proposed") if getattr(group, word)]
    marks += [f"rule: {snippet(group.rule, WIDTH)}"] if group.rule else []
    return f"  [{'; '.join(marks)}]" if marks else ""


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
        say(f"{said}sonde taxonomy undo {quote(str(collection))}{chosen}")


def _print_update(found: "TaxonomyUpdate", json: bool, collection: Path) -> None:
    if json:
        print_json(found.to_dict())
        return
    for number, name, size in found.proposed:
        print(f"{number:>5}  {size:>9,}  {snippet(name, WIDTH)}  [proposed]")
    for conflict in found.conflicts:
        say(f"note: {found.taxonomy}: {conflict.said}")
    kept, of = found.kept
    said = f"{found.taxonomy}: {found.said}; {kept:,} of {counted(of, 'group')} kept most of their documents"
    verb = "is" if found.outside == 1 else "are"
    say(said + (f", {counted(found.outside, 'new document')} {verb} in no group" if found.outside else ""))
    if found.outside:
        say(_outside(collection, found.taxonomy))


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

    for entry in open_collection(collection).taxonomy_log(name, k):
        if json:
            print_json(entry.to_dict())
            continue
        undone = "  (undone)" if entry.undone else ""
        print(
            f"{entry.number:>5}  {entry.at[:16].replace('T', ' ')}  {snippet(entry.by, 16):<16}  {entry.said}{undone}"
        )


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


def export(
    collection: CollectionPath,
    to: Annotated[
        Path, typer.Option("--to", metavar="FILE", help=".json (everything), .csv (groups), .ttl or .jsonld (SKOS).")
    ],
    documents: Annotated[
        Path | None, typer.Option("--documents", metavar="F.csv", help="Write the group of each document here.")
    ] = None,
    name: Name = None,
    yes: Yes = False,
) -> None:
    """Write a taxonomy to a file. JSON holds everything; SKOS holds names, descriptions, the tree and examples.

    \b
    Examples:
      sonde taxonomy export desk.sonde --to desk.json
      sonde taxonomy export desk.sonde --to groups.csv --documents documents.csv
      sonde taxonomy export desk.sonde --to desk.ttl
    """
    from ...indexer.files import check_different, check_target
    from ..api import open as open_collection

    check_target(to, (".json", ".csv", ".ttl", ".jsonld"), "write to")
    check_different(to=to, documents=documents)
    if documents is not None:
        check_target(documents, (".csv",), "write to")
    opened = open_collection(collection)
    ask_to_replace(yes, to, documents)
    _write(to, opened.export_taxonomy(_form(to), name))
    if documents is not None:
        _write(documents, opened.export_taxonomy("documents", name))


def _form(path: Path) -> Any:
    from ...indexer.errors import UsageError

    if path.suffix.lower() not in FORMS:
        raise UsageError(
            f"{path} does not end in a taxonomy format: use {', '.join(FORMS)}", code="bad-file", value=str(path)
        )
    return FORMS[path.suffix.lower()]


def _write(path: Path, text: str) -> None:
    from ...indexer.files import write_output

    write_output(path, lambda stream: stream.write(text.encode()))
    say(f"wrote {path}")


def import_(
    collection: CollectionPath,
    file: Annotated[Path, typer.Argument(metavar="FILE", help=".json, .csv, .ttl, .jsonld, .rdf or .xml (SKOS).")],
    documents: Annotated[
        Path | None, typer.Option("--documents", metavar="F.csv", help="Table with the group of each document.")
    ] = None,
    label: Annotated[
        bool, typer.Option("--label", help="Label the other documents from groups' names, descriptions and examples.")
    ] = False,
    name: Name = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace a taxonomy of the same name, and its log.")
    ] = False,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Read a taxonomy from a file. Documents whose ids are in the file go to their groups.

    A CSV file needs a column `name`; `number`, `parent`, `description`, `locked`, `where`, `examples` and `near` are
    optional. Files in SKOS need rdflib: pip install 'sonde[skos]'.

    \b
    Examples:
      sonde taxonomy import desk.sonde desk.json
      sonde taxonomy import desk.sonde groups.csv --documents documents.csv --name ours
      sonde taxonomy import other.sonde desk.json --label
    """
    from ...indexer.files import text_of
    from ..api import open as open_collection

    form = _form(file)
    text = text_of(file, "the taxonomy")
    table = None if documents is None else text_of(documents, "the documents")
    with progress(quiet=json) as notify:
        opened = open_collection(collection, device=device)
        found = opened.import_taxonomy(text, form, name, documents=table, label=label, replace=replace, progress=notify)
    print_taxonomy(found, json, collection)
    if not found.documents and not label:
        label_them = "add --label to label the documents by the groups"
        if form not in ("json", "csv"):
            say(f"a {file.suffix} file holds groups only: {label_them}; a .json file of Sonde holds documents too")
        elif form == "csv" and documents is None:
            say(f"the table holds groups only: give the table of documents with --documents, or {label_them}")
        else:
            say(f"the file puts no document of this collection into a group: {label_them}")
