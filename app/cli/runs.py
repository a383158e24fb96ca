"""`sonde runs` and `sonde compare`."""

from typing import TYPE_CHECKING, Annotated

import typer

from ...indexer.store.kinds import KINDS
from ...indexer.wording import counted
from .cluster import print_items
from .output import CollectionPath, Device, Json, print_json, say, snippet

if TYPE_CHECKING:
    from ...indexer.store.runs import Run
    from ...pipelines.analysis.runs import RunDetails
    from ...pipelines.compare import Contrast, RunComparison
    from ..api import Collection


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("runs")(runs)


def runs(
    collection: CollectionPath,
    name: Annotated[str | None, typer.Argument(metavar="RUN", help="The run to show or change.")] = None,
    kind: Annotated[
        str | None, typer.Option("--kind", help=f"Kind of run: {', '.join(KINDS[:-1])} or {KINDS[-1]}.")
    ] = None,
    rename: Annotated[str | None, typer.Option("--rename", metavar="NEW", help="Rename the run.")] = None,
    item: Annotated[
        int | None,
        typer.Option("--item", metavar="N", help="With --rename: rename this cluster, topic or label."),
    ] = None,
    by: Annotated[
        str | None, typer.Option("--by", metavar="COLUMN", help="Count documents by a column of dates or classes.")
    ] = None,
    merge: Annotated[
        str | None, typer.Option("--merge", metavar="3,7", help="Merge clusters; the result has the first number.")
    ] = None,
    delete: Annotated[bool, typer.Option("--delete", help="Delete the run.")] = False,
    json: Json = False,
) -> None:
    """List the runs of a collection. Show, rename or delete a run; rename or merge its clusters.

    Runs are marked if they were made with another model than the collection's current one.

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
        raise UsageError("--delete cannot be combined with --rename or --item")
    if by is not None and (delete or rename is not None):
        raise UsageError("--by cannot be combined with --rename or --delete")
    if merge is not None and (name is None or delete or rename is not None or by is not None):
        raise UsageError("--merge needs a RUN, and cannot be combined with --rename, --delete or --by")
    if item is not None and rename is None:
        raise UsageError("--item needs --rename: the new name")
    opened = open_collection(collection)
    if name is None:
        _list(opened.runs(kind), json)
    elif delete:
        opened.delete_run(name, kind=kind)
        say(f"deleted the run {name!r}")
    elif rename is not None:
        opened.rename_run(name, rename, kind=kind, item=item)
        say(f"renamed {'the run' if item is None else f'number {item} of'} {name!r} to {rename!r}")
    elif merge is not None:
        _merge(opened, str(name), merge, kind)
    elif by is not None:
        _breakdown(opened, name, by, kind, json)
    else:
        _show(opened.run(name, kind), json)


def _list(found: "list[Run]", json: bool) -> None:
    for run in found:
        if json:
            print_json(run.to_dict())
        else:
            state = "" if run.complete else "  incomplete"
            state += f"  made with {run.model}" if run.other_model else ""
            documents = counted(run.documents, "document")
            print(f"{run.kind:<8} {run.name:<24} {documents:>20}  {run.created[:16]}{state}")
    if not found:
        say("no runs: make one with `sonde cluster`")


def _merge(opened: "Collection", name: str, numbers: str, kind: str | None) -> None:
    """Merge clusters, or topics, of a run."""
    from ...indexer.errors import UsageError
    from ...indexer.store.kinds import KINDS, TOPIC

    try:
        chosen = [int(part) for part in numbers.split(",")]
    except ValueError:
        raise UsageError(f"--merge is {numbers!r}: write numbers with commas between them, such as 3,7") from None
    run = opened.run(name, kind).run
    if not run.kind.groups:
        known = " and ".join(kind.items for kind in KINDS if kind.groups)
        raise UsageError(f"{name!r} is a {run.kind} run: {known} can be merged")
    if run.kind is TOPIC:
        opened.topic_run(name).merge(chosen)
        say(f"merged topics {numbers} of {name!r}")
    else:
        item = opened.merge_clusters(chosen, name)
        say(f"{item.number} {item.name}: {counted(item.data['size'], 'document')}")


def _breakdown(opened: "Collection", name: str, column: str, kind: str | None, json: bool) -> None:
    found = opened.breakdown(name, column, kind)
    if json:
        for row in found.rows():
            print_json(row)
        return
    print(f"{'documents':>9}  {snippet(column, 20):<20}  {'number':>6}  name")
    for row in found.rows():
        part = row[found.period or "class"]
        print(f"{row['documents']:>9,}  {part:<20}  {row['number']:>6}  {row['name']}")


def _show(found: "RunDetails", json: bool) -> None:
    run = found.run
    if json:
        print_json(found.to_dict())
        return
    print(f"{run.kind} run {run.name}: {counted(run.documents, 'document')}, {run.created}, {run.seconds:,.1f} s")
    if run.other_model:
        print(f"  model      {run.model}: the collection now has another model; to update the run, make it again")
    for title, values in (("parameters", run.parameters), ("versions", run.versions), ("report", run.report)):
        shown = (f"{key} {value}" for key, value in values.items() if not isinstance(value, list | dict))
        print(f"  {title:<10} {', '.join(shown)}")
    print_items(found.items)


def register_compare(app: typer.Typer) -> None:
    """Add the command."""
    app.command("compare")(compare)


def compare(
    collection: CollectionPath,
    cluster: Annotated[list[int] | None, typer.Option("--cluster", metavar="N", help="A cluster; give two.")] = None,
    where: Annotated[list[str] | None, typer.Option("--where", help="A filter on metadata; give two.")] = None,
    query: Annotated[list[str] | None, typer.Option("--query", help="A query; give two.")] = None,
    run: Annotated[
        list[str] | None,
        typer.Option("--run", metavar="RUN", help="The run that holds the clusters; or give two runs to compare."),
    ] = None,
    k: Annotated[int, typer.Option("-k", help="With --query: number of documents found by each query.")] = 100,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Compare two clusters, two filters (such as time windows), two queries or two runs.

    \b
    Examples:
      sonde compare themes.sonde --cluster 0 --cluster 1
      sonde compare themes.sonde --where "stars <= 2" --where "stars > 2"
      sonde compare themes.sonde --query "late delivery" --query "noisy fan" -k 4
      sonde compare themes.sonde --run kmeans --run other
    """
    from ...indexer.errors import UsageError
    from ..api import open as open_collection

    named = run or []
    if cluster and len(named) > 1:
        raise UsageError("two clusters are compared within one run: give --run once")
    parts = {"clusters": cluster or [], "where": where or [], "queries": query or []}
    if cluster:
        found = open_collection(collection, device=device).compare(**parts, run=named[0] if named else None, k=k)
    else:
        found = open_collection(collection, device=device).compare(**parts, runs=named, k=k)
    print_json(found.to_dict()) if json else _print(found)


def _print(found: "Contrast | RunComparison") -> None:
    from ...pipelines.compare import Contrast

    if not isinstance(found, Contrast):
        agree = f"NMI {found.nmi:.3f} · ARI {found.ari:.3f}"
        print(f"{found.runs[0]} and {found.runs[1]}: {counted(found.documents, 'document')} · {agree}")
        for title, changes in (("split", found.split), ("merged", found.merged)):
            for change in changes:
                parts = ", ".join(f"{share:.0%} {n} ({snippet(name, 30)})" for n, name, share in change.parts)
                size = counted(change.size, "document")
                print(f"{title}: {change.number} ({snippet(change.name, 30)}), {size}: {parts}")
        return
    print(f"cosine of the means {found.similarity:.3f} · {counted(found.common, 'document')} in both")
    for side in found.sides:
        print(f"{snippet(side.name, 80)}: {counted(side.documents, 'document')}")
        print(f"  terms     {', '.join(f'{term} {score:.1f}' for term, score in side.terms) or 'none'}")
        print(f"  documents {', '.join(snippet(key, 40) for key in side.examples)}")
