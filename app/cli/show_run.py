"""`sonde runs show` and `sonde runs draw`: what a run found."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from ...indexer.errors import UsageError
from ...indexer.store.kinds import CLUSTER, KINDS, MAP, TOPIC, TOPIC_KINDS
from ...indexer.wording import counted
from .asking import Yes, ask_to_replace
from .cluster import curve_points, draw_curve, print_curve, print_items
from .output import CollectionPath, Device, Json, print_json, progress, say, snippet
from .topic import print_closest, print_topic, print_topic_of, print_topics, show_breakdown, show_tree

if TYPE_CHECKING:
    from ...indexer.store.fields import Period
    from ...indexer.store.kinds import RunKind
    from ...indexer.store.runs import Run
    from ...pipelines.analysis.breakdown import RunBreakdown
    from ...pipelines.analysis.runs import RunDetails
    from ...pipelines.plots import BarsPlot, LinesPlot
    from ...pipelines.topics import Breakdown, Topics
    from ..api import Collection

Name = Annotated[str, typer.Argument(metavar="RUN", help="The run's name.")]
Kind = Annotated[str | None, typer.Option("--kind", help=f"Kind of run: {', '.join(KINDS[:-1])} or {KINDS[-1]}.")]
By = Annotated[
    str | None, typer.Option("--by", metavar="COLUMN", help="Count documents by a column of dates or classes.")
]
Span = Annotated[str | None, typer.Option("--period", help="With --by a date: year, quarter, month, week or day.")]
Shares = Annotated[bool, typer.Option("--shares", help="With --by: show shares of each period or class, not counts.")]


def show(
    collection: CollectionPath,
    run: Name,
    number: Annotated[
        str | None,
        typer.Argument(
            metavar="NUMBER",
            help="Show this group or label, by number or name: its documents, or --by; -1 for the outliers.",
        ),
    ] = None,
    k: Annotated[int, typer.Option("-k", help="Number of documents or, with --search, of groups.")] = 10,
    search: Annotated[
        str | None, typer.Option("--search", metavar="QUERY", help="Show the clusters or topics closest to a query.")
    ] = None,
    text: Annotated[str | None, typer.Option("--text", help="Topics: show the topic of a text.")] = None,
    by: By = None,
    period: Span = None,
    shares: Shares = False,
    tree: Annotated[bool, typer.Option("--tree", help="Topics: show which topics are similar.")] = False,
    curve: Annotated[
        bool, typer.Option("--curve", help="Clusters: show the measures from which -k auto chose k.")
    ] = False,
    to: Annotated[
        Path | None,
        typer.Option("--to", metavar="FILE", help="With --by: write counts, n and shares (.csv, .xlsx or .jsonl)."),
    ] = None,
    kind: Kind = None,
    yes: Yes = False,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Show how a run was made, with its clusters, topics or labels; or show the documents of one of these.

    \b
    Examples:
      sonde runs show themes.sonde kmeans
      sonde runs show themes.sonde kmeans 0 -k 5
      sonde runs show themes.sonde kmeans --by stars
      sonde runs show themes.sonde kmeans 0 --by stars
      sonde runs show themes.sonde kmeans --by stars --to stars.xlsx
      sonde runs show news.sonde kmeans --curve
      sonde runs show news.sonde topics --search "late parcels"
      sonde runs show news.sonde topics --by date --period month
      sonde runs show news.sonde topics --tree
      sonde runs show news.sonde fine:topics
      sonde runs show desk.sonde taxonomy --by date --period week
      sonde runs show desk.sonde "taxonomy:taxonomy level 0" --by date
    """
    from ..api import open as open_collection

    asked = {"NUMBER": number, "--search": search, "--text": text, "--by": by, "--tree": tree or None,
             "--curve": curve or None}  # fmt: skip
    names = [name for name, value in asked.items() if value is not None]
    if len(names) > 1 and names != ["NUMBER", "--by"]:
        raise UsageError(f"ask for one thing at a time: {' or '.join(names)}")
    _check_by(by, period, shares, to)
    if to is not None:
        _write_breakdown(open_collection(collection), run, by or "", kind, period, number, to, yes, json)
        return
    with progress(quiet=json) as notify:
        opened = open_collection(collection, device=device)
        details = opened.run(run, kind)
        found = details.run.kind
        item = None if number is None else details.number_of(number)
        _refuse(run, found, "--curve" if curve else None, CLUSTER)
        if found in TOPIC_KINDS:
            topics = opened.topic_run(_column(details.run), progress=notify)
            _show_topics(topics, opened, item, k, search, text, by, period, shares, tree, json)
            return
    _refuse(run, found, "--text" if text is not None else "--tree" if tree else None, TOPIC)
    _refuse(run, found, "--search" if search is not None else None, CLUSTER)
    if by is not None:
        whole = found.nested and item is not None  # the group may be at any level
        name = found.column(details.run.name) if whole else run
        counts = opened.breakdown(name, by, kind, period=_span(period))
        print_breakdown(counts if item is None else counts.only(item), json, shares=shares)
    elif item is not None:
        _print_members(opened, run, item, k, str(found), json)
    elif search is not None:
        for item, cosine in opened.clusters_near(search, run, k):
            values = {"number": item.number, "name": item.name, "score": cosine}
            print_json(values) if json else print(f"{cosine:>6.3f}  {item.number:>4}  {snippet(item.name, 60)}")
    elif curve:
        print_curve(*curve_points(opened, run), json)
    else:
        print_details(details, json)


def _write_breakdown(
    opened: "Collection", run: str, by: str, kind: str | None, period: str | None, item: str | None, to: Path,
    yes: bool, json: bool,
) -> None:  # fmt: skip
    """Write a table with a row for each group and class: documents, n, and the share of the class."""
    number = None if item is None else opened.run(run, kind).number_of(item)
    ask_to_replace(yes, to)
    with progress(quiet=True) as notify:
        rows = opened.export_breakdown(to, run, by, kind, item=number, period=_span(period), progress=notify)
    print_json({"rows": rows, "path": str(to)}) if json else say(f"{counted(rows, 'row')} written to {to}")


def _check_by(by: str | None, period: str | None, shares: bool, to: Path | None = None) -> None:
    if by is None and to is not None:
        raise UsageError("--to needs --by: name a column")
    if by is None and (period is not None or shares):
        needs, column = ("--period", "the column with the dates") if period is not None else ("--shares", "a column")
        raise UsageError(f"{needs} needs --by: name {column}")


def _column(run: "Run") -> str:
    """Return the name of a topic run; for a level of one, with the level before it."""
    return run.kind.column(run.name) if run.kind.part else run.name


def _refuse(run: str, found: "RunKind", option: str | None, wanted: "RunKind") -> None:
    if option is not None and found is not wanted and found.follows is not wanted:
        raise UsageError(f"{run!r} is a {found} run: {option} is for {wanted} runs")


def _show_topics(
    topics: "Topics", opened: "Collection", number: int | None, k: int, search: str | None, text: str | None,
    by: str | None, period: str | None, shares: bool, tree: bool, json: bool,
) -> None:  # fmt: skip
    """Show a topic run, as `sonde topic` does."""
    if by is not None:
        counts = _topics_by(topics, opened, by, period)
        show_breakdown(topics, counts if number is None else counts.only(number), None, json, shares=shares)
    elif number is not None:
        print_topic(topics, number, k, json)
    elif search is not None:
        print_closest(topics, search, k, json)
    elif text is not None:
        print_topic_of(topics, text, json)
    elif tree:
        show_tree(topics, None, json)
    else:
        print_topics(topics, json)


def _topics_by(topics: "Topics", opened: "Collection", column: str, period: str | None) -> "Breakdown":
    """Count topics over time if the column has dates or a period is given, otherwise by class."""
    timed = period is not None or opened.fields().get(column) == "date"
    return topics.over(column, _span(period)) if timed else topics.by(column)


def _span(period: str | None) -> "Period | None":
    """Return a period as the methods of a collection take it; they refuse any other."""
    return cast("Period | None", period)


def draw(
    collection: CollectionPath,
    run: Name,
    to: Annotated[Path, typer.Option("--to", metavar="FILE", help="The .html, .png or .svg file to draw.")],
    by: Annotated[
        str | None, typer.Option("--by", metavar="COLUMN", help="Draw the groups over time, or by class.")
    ] = None,
    period: Span = None,
    shares: Shares = False,
    color: Annotated[
        str | None, typer.Option("--color", metavar="WHAT", help="Map: colour points, as in `sonde map`.")
    ] = None,
    points: Annotated[int, typer.Option("--points", help="Map: maximum number of documents to draw.")] = 50_000,
    kind: Kind = None,
    yes: Yes = False,
) -> None:
    """Draw a run: a map; the tree of topics; the curve from which -k auto chose k; with --by, groups over time.

    \b
    Examples:
      sonde runs draw news.sonde map --to map.html --color topic:topics
      sonde runs draw news.sonde topics --to tree.html
      sonde runs draw news.sonde topics --by date --period month --to over.png
      sonde runs draw desk.sonde taxonomy --by date --period month --to over.html
      sonde runs draw news.sonde kmeans --to curve.png
      sonde runs draw news.sonde kmeans --by stars --to bars.png
    """
    from ..api import open as open_collection
    from ..api.functions import check_plot_target

    check_plot_target(to)
    _check_by(by, period, shares)
    ask_to_replace(yes, to)
    with progress() as notify:
        opened = open_collection(collection)
        chosen = opened.run(run, kind).run
        found = chosen.kind
        _refuse(run, found, "--color" if color is not None else None, MAP)
        if by is not None and found not in TOPIC_KINDS:
            counts = opened.breakdown(run, by, kind, period=_span(period))
            _draw_breakdown(opened, chosen, counts, to, shares=shares)
        elif found is MAP:
            shown = opened.map_run(run)
            shown.draw(to, color, points=points, notify=notify)
            say(f"{to}: {counted(min(len(shown), points), 'document')}")
        elif found in TOPIC_KINDS:
            topics = opened.topic_run(_column(chosen), progress=notify)
            if by is None:
                show_tree(topics, to, json=False)
            else:
                show_breakdown(topics, _topics_by(topics, opened, by, period), to, json=False, shares=shares)
        elif found is CLUSTER:
            draw_curve(opened, *curve_points(opened, run), to)
        else:
            raise UsageError(f"{run!r} is a {found} run: to draw it, give --by and a column")


def print_breakdown(found: "RunBreakdown", json: bool, *, shares: bool = False) -> None:
    """Print how many documents each group has in each part of a column, or its share of them."""
    if found.without:
        say(f"{counted(found.without, 'document')} without a value in {found.column!r}")
    if json:
        for row in found.rows():
            print_json(row)
        return
    print(f"{'share' if shares else 'documents':>9}  {snippet(found.column, 20):<20}  {'number':>6}  name")
    for row in found.rows():
        part, amount = row[found.period or "class"], f"{row['share']:.1%}" if shares else f"{row['documents']:,}"
        print(f"{amount:>9}  {part:<20}  {row['number']:>6}  {row['name']}")
    if shares and found.several:
        say(found.base)


def breakdown_plot(title: str, found: "RunBreakdown", *, shares: bool = False) -> "LinesPlot | BarsPlot":
    """Return lines over time or bars by class, one of each for a group, without outliers.

    "none of these" is not an outlier but an answer, so it is drawn, after the labels.
    """
    from ...pipelines.plots import BarsPlot, LinesPlot
    from ..api.functions import NONE_NAME

    # A bar adds up its groups, and a group of a taxonomy has the documents of the groups under it.
    numbers = {item.number for item in found.items}
    rows = [place for place, item in enumerate(found.items)
            if item.number >= 0 and (found.period or item.data.get("parent") not in numbers)]  # fmt: skip
    rows = sorted(rows, key=lambda place: -int(found.counts[place].sum()))
    names = [f"{found.items[place].number} · {found.items[place].name}" for place in rows]
    nones = [place for place, item in enumerate(found.items) if (item.number, item.name) == (-1, NONE_NAME)]
    rows, names = rows + nones, names + [NONE_NAME] * len(nones)
    values = found.shares if shares else found.counts
    unit = found.base if shares else "documents"
    plot = LinesPlot if found.period else BarsPlot
    return plot(title, found.parts, names, values[rows], [found.parts] * len(rows), unit)


def _draw_breakdown(opened: "Collection", run: "Run", found: "RunBreakdown", to: Path, *, shares: bool = False) -> None:
    from ..api.functions import write_plot

    plot = breakdown_plot(f"{opened.path.name}: {run.kind.items} of {run.name} by {found.column}", found, shares=shares)
    write_plot(plot, to)
    parts = counted(len(found.parts), found.period or "class", None if found.period else "classes")
    say(f"{to}: {counted(len(plot.names), run.kind.item, run.kind.items)} in {parts}")


def print_details(found: "RunDetails", json: bool) -> None:
    """Print how a run was made, and its groups."""
    run = found.run
    if json:
        print_json(found.to_dict())
        return
    print(f"{run.kind} run {run.name}: {counted(run.documents, 'document')}, {run.created}, {run.seconds:,.1f} s")
    if run.other_model:
        print(f"  model      {run.model}: the collection now has another model; to update the run, make it again")
    words = {"carried": "placed" if run.kind.payload == "run_places" else "assigned"}  # scripts read the key in JSON
    for title, values in (("parameters", run.parameters), ("versions", run.versions), ("report", run.report)):
        single = {key: each for key, each in values.items() if not isinstance(each, list | dict | None)}
        shown = [f"{words.get(key, key)} {each}" for key, each in single.items()]
        if shown:
            print(f"  {title:<10} {', '.join(shown)}")
    if found.levels:
        print(f"  {'levels':<10} {', '.join(found.levels)}")
    print_items(found.items)


def _print_members(opened: "Collection", run: str, number: int, k: int, kind: str, json: bool) -> None:
    """Print the documents of a group, best matches first."""
    found = opened.members(run, number, kind, k=k)
    if not found:
        say(f"the {kind} run {run!r} has no documents under number {number}")
    reasons = next((item.data.get("why", {}) for item in opened.run(run, kind).items if item.number == number), {})
    for rank, member in enumerate(found, start=1):
        if json:
            print_json({"number": number, "rank": rank} | asdict(member))
            continue
        score = "    –" if member.score is None else f"{member.score:.3f}"
        title = f" · {snippet(member.title, 80)}" if member.title else ""
        print(f"{rank:>3}. {score}  {snippet(member.id, 60)}{title}")
        if member.id in reasons:
            print(f"     {snippet(reasons[member.id])}")
        print(f"     {snippet(member.text)}")
