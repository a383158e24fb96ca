"""`sonde compare`."""

from typing import TYPE_CHECKING, Annotated

import typer

from ...indexer.wording import counted
from .output import CollectionPath, Device, Json, print_json, say_notes, snippet

if TYPE_CHECKING:
    from ...pipelines.compare import Contrast, RunComparison


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("compare")(compare)


def compare(
    collection: CollectionPath,
    cluster: Annotated[
        list[int] | None, typer.Option("--cluster", metavar="N", help="Number of a group of the run; give two.")
    ] = None,
    where: Annotated[list[str] | None, typer.Option("--where", help="A filter on metadata; give two.")] = None,
    query: Annotated[list[str] | None, typer.Option("--query", help="A query; give two.")] = None,
    run: Annotated[
        list[str] | None,
        typer.Option("--run", metavar="RUN", help="The run of --cluster; or give two runs to compare."),
    ] = None,
    k: Annotated[int, typer.Option("-k", help="With --query: number of documents found by each query.")] = 100,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Compare two clusters, two filters (such as time windows), two queries or two runs.

    With --run, --cluster takes groups of that cluster run, topic run or taxonomy. A group of a taxonomy includes the
    groups under it.

    \b
    Examples:
      sonde compare themes.sonde --cluster 0 --cluster 1
      sonde compare themes.sonde --run kmeans --cluster 0 --cluster 1
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
        say_notes(found.notes)
        return
    both = counted(found.common, "document")
    print(f"similarity {found.similarity:.3f} (cosine of the mean embeddings) · {both} in both")
    for side in found.sides:
        print(f"{snippet(side.name, 80)}: {counted(side.documents, 'document')}")
        print(f"  terms     {', '.join(f'{term} {score:.1f}' for term, score in side.terms) or 'none'}")
        if doubtful := [term for term, _ in side.terms if term not in side.beyond_chance]:
            every = len(doubtful) == len(side.terms)
            print(f"  chance    {'all of these terms' if every else ', '.join(doubtful)} may differ only by chance")
        print(f"  documents {', '.join(snippet(key, 40) for key in side.examples)}")
