"""`sonde get` and `sonde count`: stored documents by id, and how many there are."""

from typing import TYPE_CHECKING, Annotated, cast

import typer

from ...indexer.wording import counted
from .output import CollectionPath, Json, print_json, say, say_notes, snippet

if TYPE_CHECKING:
    from ...indexer.store.fields import Period
    from ...pipelines.search.counts import Counts

WIDTH = 40


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("get")(get)
    app.command("count")(count)


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
        str | None,
        typer.Option("--by", metavar="COLUMN", help="A metadata field, a run, or a column of a run."),
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
    from ...indexer.errors import UsageError
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
