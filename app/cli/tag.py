"""`sonde tag`: documents under a name."""

from pathlib import Path
from typing import Annotated

import typer

from ...indexer.wording import counted
from .options import CollectionPath, Json
from .output import print_json, say


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("tag")(tag)


def tag(
    collection: CollectionPath,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The tag.")],
    ids: Annotated[list[str] | None, typer.Argument(metavar="ID...", help="Ids of documents.")] = None,
    where: Annotated[str | None, typer.Option("--where", help="All documents that pass this filter.")] = None,
    ids_file: Annotated[
        Path | None, typer.Option("--ids", metavar="FILE", help="A file with an id on each line; - is standard input.")
    ] = None,
    add: Annotated[bool, typer.Option("--add", help="Add them to a tag that there is.")] = False,
    remove: Annotated[bool, typer.Option("--remove", help="Take them out of a tag.")] = False,
    replace: Annotated[bool, typer.Option("--replace", help="Replace a tag that there is.")] = False,
    json: Json = False,
) -> None:
    """Put documents together under a name: by id, or by a filter.

    A tag is kept as a run: filters know it as "tag:NAME", an export has a column of that name, `sonde runs` renames and
    deletes it. A document that is deleted, or whose text changes, loses it.

    \b
    Examples:
      sonde tag reviews.sonde unhappy --where "stars <= 2"
      sonde tag reviews.sonde odd 4711 4712
      sonde tag themes.sonde look-again --where '"cluster:kmeans" = 1'
      sonde cluster themes.sonde -k 2 --where '"tag:unhappy"' --name within
      sonde runs themes.sonde unhappy --rename angry
    """
    from ...indexer.errors import UsageError
    from ...pipelines.tags import tag as run_tag
    from ..api import open as open_collection

    ways = {"new": True, "add": add, "remove": remove, "replace": replace}
    chosen = [way for way, asked in ways.items() if asked]
    if len(chosen) > 2:
        raise UsageError("choose one of --add, --remove and --replace")
    given = [*(ids or ()), *(_lines(ids_file) if ids_file else ())]
    change = chosen[-1]
    found = run_tag(open_collection(collection), name, ids=given, where=where, change=change)  # type: ignore[arg-type]
    if json:
        print_json(found.to_dict())
    else:
        say(f"{found.tag}: {counted(found.documents, 'document')}, {found.changed:,} changed")


def _lines(path: Path) -> list[str]:
    from ...indexer.errors import SondeError
    from .search import standard_input

    if str(path) == "-":
        return [line for line in standard_input().splitlines() if line.strip()]
    try:
        return [line for line in path.read_text("utf-8-sig").splitlines() if line.strip()]
    except UnicodeDecodeError:
        raise SondeError(f"cannot read the ids in {path}: it is not UTF-8") from None
