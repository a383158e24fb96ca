"""`sonde runs`: what clusterings, topic models, maps and labellings a collection keeps."""

from typing import TYPE_CHECKING, Annotated, cast

import typer

from ...indexer.wording import counted
from .cluster import print_items
from .options import CollectionPath, Json
from .output import print_json, say

if TYPE_CHECKING:
    from ...indexer.runs import Kind, Run
    from ...pipelines.runs import RunDetails
    from ..api import Collection


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("runs")(runs)


def runs(
    collection: CollectionPath,
    name: Annotated[str | None, typer.Argument(metavar="RUN", help="A run, to show it or change it.")] = None,
    kind: Annotated[str | None, typer.Option("--kind", help="cluster, topic, map, label, tag or correction.")] = None,
    rename: Annotated[str | None, typer.Option("--rename", metavar="NEW", help="Rename the run.")] = None,
    item: Annotated[
        int | None,
        typer.Option("--item", metavar="N", help="With --rename: rename this cluster, topic or label."),
    ] = None,
    by: Annotated[
        str | None, typer.Option("--by", metavar="COLUMN", help="Count its documents by a column of dates or classes.")
    ] = None,
    merge: Annotated[
        str | None, typer.Option("--merge", metavar="3,7", help="Make clusters one, under the first one's number.")
    ] = None,
    delete: Annotated[bool, typer.Option("--delete", help="Delete the run.")] = False,
    json: Json = False,
) -> None:
    """List the runs that a collection keeps, show one, rename it or one of its clusters, or delete it.

    \b
    Examples:
      sonde runs themes.sonde
      sonde runs themes.sonde kmeans
      sonde runs themes.sonde kmeans --by stars
      sonde runs themes.sonde kmeans --rename themes
      sonde runs themes.sonde kmeans --item 0 --rename "late deliveries"
      sonde runs themes.sonde kmeans --merge 0,2
      sonde runs themes.sonde kmeans --delete
    """
    from ...indexer.errors import UsageError
    from ..api import open as open_collection

    if name is None and (rename is not None or item is not None or delete or by is not None):
        raise UsageError("say which run: sonde runs C.sonde RUN")
    if delete and (rename is not None or item is not None):
        raise UsageError("--delete goes with neither --rename nor --item")
    if by is not None and (delete or rename is not None):
        raise UsageError("--by goes with neither --rename nor --delete")
    if merge is not None and (name is None or delete or rename is not None or by is not None):
        raise UsageError("--merge needs a RUN, and goes with none of --rename, --delete and --by")
    if item is not None and rename is None:
        raise UsageError("--item needs --rename: the new name")
    opened, chosen = open_collection(collection), cast("Kind | None", kind)
    if name is None:
        _list(opened.runs(chosen), json)
    elif delete:
        opened.delete_run(name, kind=chosen)
        say(f"deleted the run {name!r}")
    elif rename is not None:
        opened.rename_run(name, rename, kind=chosen, item=item)
        say(f"renamed {'the run' if item is None else f'number {item} of'} {name!r} to {rename!r}")
    elif merge is not None:
        _merge(opened, str(name), merge, chosen)
    elif by is not None:
        _breakdown(opened, name, by, chosen, json)
    else:
        _show(opened.run(name, chosen), json)


def _list(found: "list[Run]", json: bool) -> None:
    for run in found:
        if json:
            print_json(run.to_dict())
        else:
            state = "" if run.complete else "  incomplete"
            documents = counted(run.documents, "document")
            print(f"{run.kind:<8} {run.name:<24} {documents:>20}  {run.created[:16]}{state}")
    if not found:
        say("no runs: make one with `sonde cluster`")


def _merge(opened: "Collection", name: str, numbers: str, kind: "Kind | None") -> None:
    """Merge clusters, or topics, of a run."""
    from ...indexer.errors import UsageError
    from ...pipelines.cluster.merge import merge_clusters
    from ...pipelines.topics import Topics

    try:
        chosen = [int(part) for part in numbers.split(",")]
    except ValueError:
        raise UsageError(f"--merge is {numbers!r}: write numbers with commas between them, such as 3,7") from None
    run = opened.run(name, kind).run
    if run.kind not in ("cluster", "topic"):
        raise UsageError(f"{name!r} is a {run.kind} run: clusters and topics can be merged")
    if run.kind == "topic":
        Topics(opened, name).merge(chosen)
        say(f"made topics {numbers} of {name!r} one")
    else:
        item = merge_clusters(opened, chosen, name)
        say(f"{item.number} {item.name}: {counted(item.data['size'], 'document')}")


def _breakdown(opened: "Collection", name: str, column: str, kind: "Kind | None", json: bool) -> None:
    from ...pipelines.breakdown import breakdown

    found = breakdown(opened, name, column, kind)
    for row in found.rows():
        part = row[found.period or "class"]
        print_json(row) if json else print(f"{row['documents']:>9,}  {part:<20}  {row['number']} {row['name']}")


def _show(found: "RunDetails", json: bool) -> None:
    run = found.run
    if json:
        print_json(found.to_dict())
        return
    print(f"{run.kind} run {run.name}: {counted(run.documents, 'document')}, {run.created}, {run.seconds:,.1f} s")
    for title, values in (("parameters", run.parameters), ("versions", run.versions), ("report", run.report)):
        shown = (f"{key} {value}" for key, value in values.items() if not isinstance(value, list | dict))
        print(f"  {title:<10} {', '.join(shown)}")
    print_items(found.items)
