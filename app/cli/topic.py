"""What a topic run holds, as `sonde runs show` and `sonde runs draw` print and draw it; and the old `sonde topic`."""

from math import ceil
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, cast

import typer

from ...indexer.errors import UsageError
from ...indexer.store.kinds import COARSE
from ...indexer.wording import counted
from .cluster import fitted_told, names_told, say_unclear
from .commands import NegativeNumbers, group_numbers
from .output import CollectionPath, Device, Json, print_json, progress, say, snippet

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...indexer.store.fields import Period
    from ...pipelines.topics import Breakdown, Topic, Topics

SHADES = " ▁▂▃▄▅▆▇█"


def register(app: typer.Typer) -> None:
    """Add the old name of what `sonde runs` does to topic runs."""
    app.command("topic", cls=NegativeNumbers, hidden=True)(topic)


def topic(
    collection: CollectionPath,
    number: Annotated[
        int | None, typer.Argument(metavar="NUMBER", help="Number of a topic; -1 for the outliers.")
    ] = None,
    run: Annotated[str | None, typer.Option("--run", metavar="RUN", help="Topic run; the newest by default.")] = None,
    k: Annotated[int, typer.Option("-k", help="Number of documents to show or, with --search, of topics.")] = 10,
    search: Annotated[
        str | None, typer.Option("--search", metavar="QUERY", help="Show the topics closest to a query.")
    ] = None,
    text: Annotated[str | None, typer.Option("--text", help="Show the topic of a text.")] = None,
    tree: Annotated[bool, typer.Option("--tree", help="Show which topics are similar.")] = False,
    over: Annotated[
        str | None, typer.Option("--over", metavar="COLUMN", help="Show topics over time, by a column of dates.")
    ] = None,
    period: Annotated[
        str | None,
        typer.Option(
            "--period", help="With --over: year, quarter, month, week or day; chosen by the span if left out."
        ),
    ] = None,
    by: Annotated[
        str | None, typer.Option("--by", metavar="COLUMN", help="Show topics by the values of a column.")
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option("--to", metavar="FILE", help="With --tree, --over or --by: draw to an .html, .png or .svg file."),
    ] = None,
    merge: Annotated[str | None, typer.Option("--merge", metavar="3,7", help="Merge topics.")] = None,
    split: Annotated[int | None, typer.Option("--split", metavar="N", help="Split a merged topic in two.")] = None,
    reduce_to: Annotated[
        int | None, typer.Option("--reduce-to", metavar="N", help="Merge similar topics until N are left.")
    ] = None,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Show a topic run, or merge and split its topics. `sonde runs` does the same for every kind of run."""
    from ..api import open as open_collection
    from ..api.functions import check_plot_target

    asked = [name for name, value in {
        "NUMBER": number, "--search": search, "--text": text, "--tree": tree or None, "--over": over, "--by": by,
        "--merge": merge, "--split": split, "--reduce-to": reduce_to,
    }.items() if value is not None]  # fmt: skip
    if len(asked) > 1:
        raise UsageError(f"ask for one thing at a time: {' or '.join(asked)}")
    if to is not None and not (tree or over is not None or by is not None):
        raise UsageError("--to draws what --tree, --over or --by show: add one of them")
    if period is not None and over is None:
        raise UsageError("--period needs --over")
    if to is not None:
        check_plot_target(to)
    merged = group_numbers([merge], "--merge") if merge is not None else []
    with progress(quiet=json) as notify:
        found = open_collection(collection, device=device).topic_run(run, progress=notify)
        if merge is not None:
            found = found.merge(merged)
        elif split is not None:
            found = found.split(split)
        elif reduce_to is not None:
            found = found.reduce(reduce_to)
    if number is not None:
        print_topic(found, number, k, json)
    elif search is not None:
        print_closest(found, search, k, json)
    elif text is not None:
        print_topic_of(found, text, json)
    elif tree:
        show_tree(found, to, json)
    elif over is not None or by is not None:
        what = found.over(over, cast("Period | None", period)) if over is not None else found.by(str(by))
        show_breakdown(found, what, to, json)
    else:
        print_topics(found, json)


HEAD = f"{'number':>6} {'size':>9} {'share':>6} {'accuracy':>8}  name"
"""The head of the columns of `topic_line`, as in the table of `print_items`."""
BESIDE = " " * HEAD.index("name")
FEW = 5
"""Topics below which a note says that there are finer ones: the coarse level of most collections has 5 to 12."""
MANY = 30
"""Topics above which a note says that there are coarser ones: more than a screen shows."""
HARDLY_ANY = 3
"""Groups of the coarse level that are not suggested, although they may be the clearest ones."""


def topic_line(topic: "Topic") -> str:
    """Return a topic's number, size, share, name accuracy and name as one line."""
    told = "–" if topic.name_accuracy is None else f"{topic.name_accuracy:.2f}"
    return f"{topic.number:>6} {topic.size:>9,} {topic.share:>6.1%} {told:>8}  {snippet(topic.name, 60)}"


def print_closest(found: "Topics", query: str, k: int, json: bool) -> None:
    """Print the topics closest to a query, with their cosines."""
    if not json:
        print(f"{'cosine':>6}  {HEAD}")
    for topic, cosine in found.search(query, k):
        print_json(topic.to_dict() | {"score": cosine}) if json else print(f"{cosine:>6.3f}  {topic_line(topic)}")


def print_topics(found: "Topics", json: bool) -> None:
    """Print the topics of a run with their terms, the largest groups inside each, and the levels."""
    inside = {} if json else found.inside()
    if len(found) and not json:
        print(HEAD)
    for topic in found:
        if json:
            print_json({"run": found.name} | topic.to_dict())
            continue
        print(topic_line(topic))
        print(BESIDE + snippet(", ".join(term for term, _ in topic.terms[:8]), 90))
        if topic.number in inside:
            print(BESIDE + _inside(inside[topic.number]))
    report = found.run.report
    parts = [counted(len(found), "topic"), counted(found.run.documents, "document")]
    parts += [_levels(found)] if found.levels else []
    if found.outliers:
        parts.append(f"{counted(found.outliers, 'outlier')} ({found.outliers / max(found.run.documents, 1):.1%})")
    parts += fitted_told(report, "assigned to the nearest topic")
    parts += names_told(report)
    if found.newer:
        newer = f"{found.newer:,} newer {'document is' if found.newer == 1 else 'documents are'} not in it"
        parts.append(f"{newer}: sonde topics {found.collection.named} --update {found.name}")
    parts += [f"{found.run.seconds:,.1f} s"] if found.run.seconds else []
    say(f"{found.name}: {' · '.join(parts)}")
    if not len(found):
        say(f"{found.name}: no group of texts is dense enough for a topic; try a smaller --min-size, or more texts")
    say_unclear(found.name, report)
    if found.run.parameters.get("about") and found.levels:
        flat = f"sonde taxonomy {found.collection.named} --from {quote(found.name)} --flat"
        say(f"{found.name}: a taxonomy also gets the levels; for only these {counted(len(found), 'topic')}: {flat}")
    if finer := _finer(found):
        few = counted(len(found), "topic")
        say(f"{found.name}: the suggested level is coarse ({few}); finer levels are stored too: {finer}")
    if coarse := _coarse(found):
        say(f"{found.name}: {coarse}")


def _finer(found: "Topics") -> str:
    """Return how to see the finer levels of a run whose suggested topics are few; "" where they are not."""
    if len(found) >= FEW or found.level != found.suggested:
        return ""
    sizes = {f"{name}:{found.run.name}": size for name, size in found.levels.items() if size > len(found)}
    shown = (f"sonde runs show {found.collection.named} {quote(name)} ({size:,})" for name, size in sizes.items())
    return " · ".join(shown)


def _coarse(found: "Topics") -> str:
    """Return when and how to see the coarse level: the topics are many, or it has two or three groups; "" otherwise."""
    groups = found.levels.get(COARSE.name, 0)
    if not 0 < groups < len(found) or (len(found) <= MANY and groups > HARDLY_ANY):
        return ""
    run = found.run.name
    seen = f"sonde runs show {quote(str(found.collection.path))} {quote(COARSE.column(run))} ({groups:,})"
    if len(found) > MANY:
        return f"for a shorter list, see the coarse level: {seen}"
    return f"the texts fall most clearly into {groups} groups, which tell little by themselves: {seen}"


SHOWN_INSIDE = 3
"""Groups of the next finer level that are named with each topic."""


def _inside(topics: "Sequence[Topic]") -> str:
    """Return the largest groups inside a topic, and how many more there are."""
    named = [f"{snippet(topic.name, 40)} ({topic.size:,})" for topic in topics[:SHOWN_INSIDE]]
    more = len(topics) - len(named)
    return "in it: " + "; ".join(named) + (f"; {more:,} more" if more else "")


def _levels(found: "Topics") -> str:
    """Return how many groups each level has, and which level is suggested."""
    sizes = (
        f"{name} {size:,}{' (suggested)' if name == found.suggested else ''}" for name, size in found.levels.items()
    )
    return f"levels: {', '.join(sizes)}"


def print_topic(found: "Topics", number: int, k: int, json: bool) -> None:
    """Print a topic's terms, keywords and best documents."""
    if not json and number >= 0:
        topic = found.topic(number)
        print(HEAD)
        print(topic_line(topic))
        print(f"  terms     {', '.join(f'{term} {weight:.4f}' for term, weight in topic.terms)}")
        if topic.keywords:
            print(f"  keywords  {', '.join(f'{term} {cosine:.3f}' for term, cosine in topic.keywords[:10])}")
    members = found.documents(number, k)
    if not members and number < 0:
        say(f"{found.name}: there are no outliers")
    for member in members:
        if json:
            print_json({"topic": number} | member.to_dict())
        else:
            title = f" · {snippet(member.title, 80)}" if member.title else ""
            print(f"{member.rank:>3}. {member.score:.3f}  {snippet(member.id, 60)}{title}")
            print(f"     {snippet(member.text)}")


def print_topic_of(found: "Topics", text: str, json: bool) -> None:
    """Print the topic of a text."""
    [answer] = found.of([text])
    shown = f"{answer.topic}  {answer.name}  (cosine {answer.score:.3f}, probability {answer.probability:.2f})"
    print_json(answer.to_dict()) if json else print(shown)


def show_tree(found: "Topics", to: Path | None, json: bool) -> None:
    """Print which topics are similar, or draw it."""
    if to is not None:
        found.draw_tree(to)
        leaves = len(found.model.vectors)
        inner = "" if leaves == len(found) else f" and the {counted(leaves, 'group')} that they consist of"
        say(f"{to}: the tree of {counted(len(found), 'topic')}{inner}")
        return
    for node in found.tree():
        if json:
            print_json(node.to_dict())
        else:
            print(f"{node.distance:.3f}  {snippet(node.left, 50)}  +  {snippet(node.right, 50)}")
            print(f"{'':7}{node.level - 1} left: {snippet(node.name, 70)}  ({', '.join(map(str, node.topics))})")


def show_breakdown(found: "Topics", what: "Breakdown", to: Path | None, json: bool, *, shares: bool = False) -> None:
    """Print topics over time or by class, or draw them: their counts, or their shares of each period or class."""
    if what.without:
        say(f"{counted(what.without, 'document')} without a value in {what.column!r}")
    if to is not None:
        kind = "over time" if what.kind == "period" else "by class"
        what.draw(to, f"{found.collection.path.name}: topics {kind}, by {what.column}", shares=shares)
        parts = counted(len(what.parts), what.kind, "classes" if what.kind == "class" else None)
        say(f"{to}: {counted(len(found), 'topic')} in {parts}")
    elif json:
        for row in what.rows():
            print_json(row)
    elif what.kind == "period":
        _print_periods(what, shares)
    else:
        _print_classes(what, shares)


def _amount(value: float, shares: bool) -> str:
    return f"{value:.1%}" if shares else f"{int(value):,}"


def _print_periods(what: "Breakdown", shares: bool) -> None:
    span = f"{what.parts[0]} to {what.parts[-1]}, {counted(len(what.parts), 'period')}"
    told = "share of each period, scaled to the topic's highest" if shares else "share of a topic's own peak"
    print(f"{span}; ▁ to █ is the {told}")
    for place, topic in enumerate(what.topics):
        values = (what.shares if shares else what.counts)[place].tolist()
        most = max(values)
        peak = values.index(most)
        marks = "".join(SHADES[ceil(8 * value / (most or 1))] for value in values)
        print(f"{topic.number:>4} {topic.size:>9,}  {snippet(topic.name, 60)}")
        words = ", ".join(term for term, _ in what.terms.get((place, peak), []))
        print(f"     {marks}  most in {what.parts[peak]}: {_amount(most, shares)} ({words})")


def _print_classes(what: "Breakdown", shares: bool) -> None:
    for place, topic in enumerate(what.topics):
        values = (what.shares if shares else what.counts)[place].tolist()
        order = sorted(range(len(what.parts)), key=lambda part: (-values[part], part))[:5]
        order = sorted(order) if what.timed else order
        shown = ", ".join(f"{what.parts[part]} {_amount(values[part], shares)}" for part in order if values[part])
        print(f"{topic.number:>4} {topic.size:>9,}  {snippet(topic.name, 60)}")
        print(f"{'':16}{snippet(shown, 110)}")
