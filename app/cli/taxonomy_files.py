"""`sonde taxonomy export` and `import`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...indexer.store.kinds import TAXONOMY
from .asking import Yes, ask_to_replace, ask_to_replace_edits
from .output import CollectionPath, Device, Json, progress, say, say_notes
from .taxonomy_edits import Name
from .taxonomy_tree import Depth, check_depth, complete_names, print_taxonomy, say_newest

if TYPE_CHECKING:
    from ...pipelines.taxonomy import Taxonomy

FORMS = {".json": "json", ".csv": "csv", ".ttl": "ttl", ".jsonld": "jsonld", ".rdf": "rdf", ".xml": "rdf"}
"""The forms of files by suffix."""


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
    if _form(to) != "json" and any(opened.taxonomy(name).levels):
        say_notes([f"{to.suffix} files do not hold the names of the levels; .json files do"])


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
    column: Annotated[
        list[str] | None,
        typer.Option(
            "--column",
            metavar="NAME=COLUMN",
            help="Which column of a table is `name`, and so on; repeat it for more.",
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
    from ...indexer.files import text_of
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
    from ...indexer.errors import UsageError

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
