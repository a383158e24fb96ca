"""`sonde get`, `sonde count` and `sonde compare`: documents by id, how many there are, and how two parts differ."""

from typing import TYPE_CHECKING, Annotated, cast

import typer

from ...indexer.errors import UsageError
from ...indexer.wording import counted
from .output import CollectionPath, Device, Json, print_json, say, say_notes, snippet

if TYPE_CHECKING:
    from ...indexer.store.fields import Period
    from ...pipelines.compare import Contrast, RunComparison
    from ...pipelines.search.counts import Counts

WIDTH = 40


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (compare, get, count):
        app.command(command.__name__)(command)


def get(
    collection: CollectionPath,
    ids: Annotated[list[str], typer.Argument(metavar="ID...", help="Document ids.")],
    json: Json = False,
) -> None:
    """Print stored documents: title, text and metadata.

    \b
    Examples:
      sonde get reviews.sonde 4711
      sonde get reviews.sonde 4711 4712 --json
    """
    from ..api import open as open_collection
    from ..api.functions import json_value, shown_metadata

    opened = open_collection(collection)
    known = opened.documents(ids)
    for place, found in enumerate(known[id] for id in ids if id in known):
        if json:
            metadata = {name: json_value(value) for name, value in found.metadata.items()}
            about = {"id": found.id, "title": found.title, "text": found.text, "language": found.language}
            print_json({**about, "metadata": metadata})
            continue
        print(("\n" if place else "") + (f"{found.id} · {found.title}" if found.title else found.id))
        for name, value in shown_metadata(found.metadata, found.metadata):
            print(f"{name}: {value}")
        print(f"\n{found.text}")
    for id in ids:
        opened.get(id)  # refuses the first id that does not exist


def count(
    collection: CollectionPath,
    by: Annotated[
        str | None, typer.Option("--by", metavar="COLUMN", help="A metadata field, a run, or a column of a run.")
    ] = None,
    where: Annotated[str | None, typer.Option("--where", help="Count only documents that match this filter.")] = None,
    period: Annotated[
        str | None, typer.Option("--period", help="Count dates by this period: year, quarter, month, week or day.")
    ] = None,
    mean_of: Annotated[
        str | None,
        typer.Option("--mean-of", metavar="COLUMN", help="With --by: also show the mean of this column of numbers."),
    ] = None,
    offset: Annotated[int, typer.Option("--offset", help="Number of values to skip; at most 200 are listed.")] = 0,
    json: Json = False,
) -> None:
    """Count documents: all, those that match a filter, or for each value of a column.

    By a taxonomy, documents are counted at its top level. Its columns name the other levels and the whole tree.

    \b
    Examples:
      sonde count reviews.sonde
      sonde count reviews.sonde --where "stars <= 2"
      sonde count reviews.sonde --by stars
      sonde count reviews.sonde --by date --period year
      sonde count reviews.sonde --by date --mean-of stars
      sonde count desk.sonde --by taxonomy
      sonde count desk.sonde --by taxonomy:taxonomy
    """
    from ..api import open as open_collection

    if period and by is None:
        raise UsageError("--period needs --by: name the column with the dates")
    if mean_of is not None and by is None:
        raise UsageError("--mean-of needs --by: name the column whose values get a mean")
    opened = open_collection(collection)
    if by is None:
        found = len(opened) if where is None else opened.matching(where, k=0)[0]
        if where is not None and not found:
            say_notes([opened.explain_filter(where)])
        print_json({"documents": found}) if json else print(counted(found, "document"))
        return
    counts = opened.count_by(by, where, period=cast("Period | None", period), mean_of=mean_of, offset=offset)
    if counts.column != by and not json:
        say(f"counted by {counts.column}")
    _print_counts(counts, json, offset)


def _print_counts(found: "Counts", json: bool, offset: int) -> None:
    from ..api.functions import json_value

    about = {"column": found.column, "documents": found.documents, "missing": found.missing, "distinct": found.distinct}
    if json:
        extremes = {name: json_value(getattr(found, name)) for name in ("low", "high", "mean")}
        values = [{"value": json_value(value), "documents": many} for value, many in found.values]
        names = [{"name": name} for name in found.names] or [{}] * len(values)
        beside = zip(found.means, found.numbers, found.deviations, strict=True)
        means = [{"mean": mean, "n": many, "sd": spread} for mean, many, spread in beside] or [{}] * len(values)
        listed = [value | name | mean for value, name, mean in zip(values, names, means, strict=True)]
        print_json({**about, **extremes, "values": listed})
        return
    texts = [str(value).lower() if isinstance(value, bool) else str(json_value(value)) for value, _ in found.values]
    shown = [snippet(text, WIDTH) for text in texts]
    width = max(map(len, shown), default=0)
    means = list(map(_mean, found.means, found.numbers, found.deviations)) or [""] * len(shown)
    for value, (_, many), name, beside in zip(shown, found.values, found.names or shown, means, strict=True):
        print(f"{value:<{width}}  {many:>8,}{beside}" + (f"  {snippet(name)}" if name != value else ""))
    if (more := found.distinct - offset - len(found.values)) > 0:
        print(f"… {counted(more, 'more value')}")
    mean = f", mean {found.mean:.6g}" if found.mean is not None else ""
    several = sum(many for _, many in found.values) > found.documents - found.missing
    also = ", some counted for several values" if several else ""
    print(f"{counted(found.documents, 'document')}, {found.missing:,} without a value{mean}{also}")


def _mean(mean: float | None, many: int, deviation: float | None) -> str:
    """Return a mean with the number of documents that it is of, and their standard deviation."""
    spread = "" if deviation is None else f"sd {deviation:.3g}, "
    return "" if mean is None else f"  mean {mean:.6g} ({spread}n {many:,})"


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
    from ..api import open as open_collection

    named = run or []
    if cluster and len(named) > 1:
        raise UsageError("two clusters are compared within one run: give --run once")
    parts = {"clusters": cluster or [], "where": where or [], "queries": query or []}
    if cluster:
        found = open_collection(collection, device=device).compare(**parts, run=named[0] if named else None, k=k)
    else:
        found = open_collection(collection, device=device).compare(**parts, runs=named, k=k)
    print_json(found.to_dict()) if json else _print_differences(found)


def _print_differences(found: "Contrast | RunComparison") -> None:
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
