"""The forms of a taxonomy: a tree in the terminal, and files, with `sonde taxonomy export` and `import`."""

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...indexer.errors import UsageError, out_of_range
from ...indexer.files import check_different, check_target, text_of, write_output
from ...indexer.store.kinds import TAXONOMY
from ...indexer.wording import counted
from .asking import Yes, ask_to_replace, ask_to_replace_edits
from .output import CollectionPath, Device, Json, print_json, progress, quoted, say, say_notes, snippet

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...pipelines.taxonomy import Taxonomy, TaxonomyGroup
    from ..api import Collection

WIDTH = 60
FORMS = {".json": "json", ".csv": "csv", ".ttl": "ttl", ".jsonld": "jsonld", ".rdf": "rdf", ".xml": "rdf"}
"""The forms of files by suffix."""
Name = Annotated[
    str | None, typer.Option("--name", metavar="TAXONOMY", help="Name of the taxonomy; default: the newest.")
]
Depth = Annotated[int | None, typer.Option("--depth", metavar="N", help="Show only the N upper levels of the tree.")]


def register(group: typer.Typer) -> None:
    """Add the commands to the group."""
    group.command("export", short_help="Write a taxonomy to JSON, CSV or SKOS.")(export)
    group.command("import", short_help="Read a taxonomy from JSON, CSV or SKOS.")(import_)


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
    if _form(to) != "json" and any(opened.taxonomy(name).levels):
        say_notes([f"{to.suffix} files do not hold the names of the levels; .json files do"])


def _form(path: Path) -> Any:
    if path.suffix.lower() not in FORMS:
        raise UsageError(
            f"{path} does not end in a taxonomy format: use {', '.join(FORMS)}", code="bad-file", value=str(path)
        )
    return FORMS[path.suffix.lower()]


def _write(path: Path, text: str) -> None:
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
    column: Annotated[
        list[str] | None,
        typer.Option(
            "--column", metavar="NAME=COLUMN", help="Which column of a table is `name`, and so on; repeat it for more."
        ),
    ] = None,
    name: Name = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace a taxonomy of the same name, and its log.")
    ] = False,
    device: Device = "auto",
    depth: Depth = None,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Read a taxonomy from a file. Documents whose ids are in the file go to their groups.

    A CSV file needs a column `name`; `number`, `parent`, `description`, `locked`, `where`, `examples` and `near` are
    optional. If a column has another name, use --column. Files in SKOS need rdflib: pip install 'sonde[skos]'.

    \b
    Examples:
      sonde taxonomy import desk.sonde desk.json
      sonde taxonomy import desk.sonde groups.csv --documents documents.csv --name ours
      sonde taxonomy import desk.sonde titles.csv --name own --column name=Title --column parent="Belongs to"
      sonde taxonomy import other.sonde desk.json --label
    """
    from ..api import open as open_collection

    check_depth(depth, json)
    form, columns = _form(file), _columns(column or [])
    notes: list[str] = []
    text = _table(file, "the taxonomy", notes) if form == "csv" else text_of(file, "the taxonomy")
    table = None if documents is None else _table(documents, "the documents", notes)
    with progress(quiet=json) as notify:
        opened = open_collection(collection, device=device)
        if replace:
            ask_to_replace_edits(opened, name or (_name_in(text) if form == "json" else "") or str(TAXONOMY), yes)
        before = complete_names(opened)
        found = opened.import_taxonomy(
            text, form, name, documents=table, columns=columns, label=label, replace=replace, progress=notify
        )
    say_notes(notes)
    print_taxonomy(found, json, collection, depth)
    say_newest(before, found.name)
    _say_how_to_fill(found, file, form, documents, label)


def _name_in(text: str) -> str:
    """Return the name of the taxonomy in a JSON file; "" if it has none, or is not valid, which the import says."""
    from json import loads

    try:
        return str(loads(text)["name"])
    except (ValueError, RecursionError, LookupError, TypeError):
        return ""


def _columns(given: list[str]) -> dict[str, str]:
    """Return the columns of tables by the names of Sonde."""
    found: dict[str, str] = {}
    for each in given:
        name, equals, column = each.partition("=")
        if not equals or not column:
            said = f"--column {each!r} is not NAME=COLUMN: write, for example, --column name=Title"
            raise UsageError(said, code="wrong-type", field="columns", value=each)
        if found.setdefault(name, column) != column:
            said = f"--column gives {name!r} two columns, {found[name]!r} and {column!r}: give it one"
            raise UsageError(said, code="conflict", field="columns", value=each)
    return found


def _table(path: Path, what: str, notes: list[str]) -> str:
    """Return the text of a table, which may be in the encoding in which Excel writes it; the notes get a sentence."""
    from ..api.functions import text_of_table

    text, encoding = text_of_table(path, what)
    notes += [f"{path} is not UTF-8: it was read as {encoding}"] if encoding else []
    return text


def _say_how_to_fill(found: "Taxonomy", file: Path, form: str, documents: Path | None, label: bool) -> None:
    """Say how documents get into the groups, if the file puts none there."""
    if not found.documents and not label:
        label_them = "add --label to label the documents by the groups"
        if form not in ("json", "csv"):
            say(f"a {file.suffix} file holds groups only: {label_them}; a .json file of Sonde holds documents too")
        elif form == "csv" and documents is None:
            say(f"the table holds groups only: give the table of documents with --documents, or {label_them}")
        else:
            say(f"the file puts no document of this collection into a group: {label_them}")


def check_depth(depth: int | None, json: bool) -> None:
    """Check that a tree can be cut at a depth.

    Raises:
        UsageError: It is below 1, or JSON is wanted, which has all groups.
    """
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


def _marks(group: "TaxonomyGroup", cut: int) -> str:
    marks = [word for word in ("locked", "proposed") if getattr(group, word)]
    marks += [f"rule: {snippet(group.rule, WIDTH)}"] if group.rule else []
    marks += [f"{counted(cut, 'group')} under it"] if cut else []
    return f"  [{'; '.join(marks)}]" if marks else ""


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
