"""`sonde topics` makes a topic run; `sonde topic` looks into one and changes it."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from typer.core import TyperCommand

from ...indexer.wording import counted
from .output import CollectionPath, Device, Json, LabelsFile, NamingEngine, Seed, print_json, progress, say, snippet

if TYPE_CHECKING:
    from ...pipelines.topics import Breakdown, Topic, Topics
    from ...pipelines.topics.settings import Outliers

SHADES = " ▁▂▃▄▅▆▇█"


class NegativeNumbers(TyperCommand):
    """A command whose argument may be a negative number, which Click would take for options."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Leave `-1` to the arguments; other unknown options are still refused, as arguments too many."""
        ctx.ignore_unknown_options = any(re.fullmatch(r"-\d+", each) for each in args)
        return super().parse_args(ctx, args)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("topics")(topics)
    app.command("topic", cls=NegativeNumbers)(topic)


def topics(
    collection: CollectionPath,
    name: Annotated[str, typer.Option("--name", metavar="RUN", help="Name of the run.")] = "topics",
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace a run of the same name; topics that stay keep their numbers.")
    ] = False,
    update: Annotated[
        str | None,
        typer.Option("--update", metavar="RUN", help="Only assign new documents to the topics of an existing run."),
    ] = None,
    min_size: Annotated[
        int | None, typer.Option("--min-size", help="Minimum texts per topic; depends on the corpus size by default.")
    ] = None,
    reduce_to: Annotated[int | None, typer.Option("--reduce-to", metavar="N", help="Maximum number of topics.")] = None,
    seed_words: Annotated[
        str | None, typer.Option("--seed-words", metavar="A,B;C,D", help="Groups of words that should become topics.")
    ] = None,
    outliers: Annotated[
        str,
        typer.Option(
            "--outliers", help="keep texts that are far from every topic as outliers, or put each in the nearest topic."
        ),
    ] = "nearest",
    names: Annotated[
        str,
        typer.Option("--names", help="terms, model (terms nearest to the topic), or auto: model if it is available."),
    ] = "auto",
    labels: Annotated[
        str | None, typer.Option("--labels", metavar="A,B,C", help="Name topics with these labels where one fits.")
    ] = None,
    labels_file: LabelsFile = None,
    engine: NamingEngine = "similarity",
    match: Annotated[
        str | None, typer.Option("--match", metavar="RUN", help="Number topics like those of another run.")
    ] = None,
    sample: Annotated[
        int, typer.Option("--sample", help="Number of texts to fit on; the rest get the nearest topic.")
    ] = 50_000,
    seed: Seed = 0,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Find the topics of a collection with BERTopic, and store them as a run.

    Uses the collection's stored embeddings. The same settings and versions give the same topics.

    \b
    Examples:
      sonde topics reviews.sonde
      sonde topics reviews.sonde --name twelve --reduce-to 12 --outliers keep
      sonde topics reviews.sonde --name guided --seed-words "battery,charge;delivery,parcel"
      sonde topics news.sonde --name named --labels "economy,politics,sport: matches and players"
      sonde topics news.sonde --update topics
    """
    from ...indexer.errors import UsageError
    from ...pipelines.topics import TopicSettings
    from ..api import open as open_collection
    from ..api.functions import read_candidates
    from ..api.functions import seed_words as groups

    settings = TopicSettings(
        seed, min_size, reduce_to, groups(seed_words) if seed_words is not None else (), cast("Outliers", outliers),
        sample=sample, names=cast(Any, names), labels=read_candidates(labels, labels_file), engine=engine,
    )  # fmt: skip
    settings.check()
    if update is not None and (replace or name != "topics" or match or settings != TopicSettings()):
        raise UsageError("--update keeps the run as it is: leave out --name, --replace, --match and all settings")
    with progress(quiet=json) as notify:
        opened = open_collection(collection, device=device)
        if update is not None:
            known = opened.topic_run(update, progress=notify)
            found, newer = (known.update(), known.newer) if known.newer else (known, 0)
            say(f"{update}: {counted(newer, 'document')} got a topic")
        else:
            found = opened.topics(name, replace=replace, match=match, settings=settings, progress=notify)
    _print_topics(found, json)


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
        typer.Option("--period", help="With --over: year, month, week or day; depends on the time span by default."),
    ] = None,
    by: Annotated[
        str | None, typer.Option("--by", metavar="COLUMN", help="Show topics by the values of a column.")
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option("--to", metavar="FILE", help="With --tree, --over or --by: draw it to an .html or .png file."),
    ] = None,
    merge: Annotated[str | None, typer.Option("--merge", metavar="3,7", help="Merge topics.")] = None,
    split: Annotated[int | None, typer.Option("--split", metavar="N", help="Split a merged topic in two.")] = None,
    reduce_to: Annotated[
        int | None, typer.Option("--reduce-to", metavar="N", help="Merge similar topics until N are left.")
    ] = None,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Show a topic run: its topics, the documents of one topic, the tree, topics over time. Merge or split topics.

    \b
    Examples:
      sonde topic news.sonde
      sonde topic news.sonde 0 -k 5
      sonde topic news.sonde --search "late parcels"
      sonde topic news.sonde --over date --period month --to over.png
      sonde topic news.sonde --by desk
      sonde topic news.sonde --tree --to tree.html
      sonde topic news.sonde --merge 0,1
      sonde topic news.sonde --reduce-to 3
    """
    from ...indexer.errors import UsageError
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
    merged = _numbers(merge) if merge is not None else []
    with progress(quiet=json) as notify:
        found = open_collection(collection, device=device).topic_run(run, progress=notify)
        if merge is not None:
            found = found.merge(merged)
        elif split is not None:
            found = found.split(split)
        elif reduce_to is not None:
            found = found.reduce(reduce_to)
    if number is not None:
        _print_topic(found, number, k, json)
    elif search is not None:
        for each, cosine in found.search(search, k):
            print_json(each.to_dict() | {"score": cosine}) if json else print(f"{cosine:>6.3f}  {_line(each)}")
    elif text is not None:
        [answer] = found.of([text])
        shown = f"{answer.topic}  {answer.name}  (cosine {answer.score:.3f}, probability {answer.probability:.2f})"
        print_json(answer.to_dict()) if json else print(shown)
    elif tree:
        _tree(found, to, json)
    elif over is not None or by is not None:
        what = found.over(over, period) if over is not None else found.by(str(by))
        _breakdown(found, what, to, json)
    else:
        _print_topics(found, json)


def _numbers(text: str) -> list[int]:
    from ...indexer.errors import UsageError

    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(f"--merge is {text!r}: write numbers with commas between them, such as 3,7") from None


def _line(topic: "Topic") -> str:
    return f"{topic.number:>4} {topic.size:>9,} {topic.share:>6.1%}  {snippet(topic.name, 60)}"


def _print_topics(found: "Topics", json: bool) -> None:
    for topic in found:
        if json:
            print_json({"run": found.name} | topic.to_dict())
            continue
        print(_line(topic))
        print(f"{'':23}{snippet(', '.join(term for term, _ in topic.terms[:8]), 90)}")
    report = found.run.report
    parts = [counted(len(found), "topic"), counted(found.run.documents, "document")]
    if found.outliers:
        parts.append(f"{counted(found.outliers, 'outlier')} ({found.outliers / max(found.run.documents, 1):.1%})")
    parts.append(f"fitted on {counted(report['fitted'], 'text')}, {report['carried']:,} carried")
    if found.newer:
        newer = f"{found.newer:,} newer {'document is' if found.newer == 1 else 'documents are'} not in it"
        parts.append(f"{newer}: sonde topics {found.collection.path} --update {found.name}")
    say(f"{found.name}: {' · '.join(parts)} · {found.run.seconds:,.1f} s")


def _print_topic(found: "Topics", number: int, k: int, json: bool) -> None:
    if not json and number >= 0:
        topic = found.topic(number)
        print(_line(topic))
        print(f"  terms     {', '.join(f'{term} {weight:.4f}' for term, weight in topic.terms)}")
        if topic.keywords:
            print(f"  keywords  {', '.join(f'{term} {cosine:.3f}' for term, cosine in topic.keywords[:10])}")
    for member in found.documents(number, k):
        if json:
            print_json({"topic": number} | member.to_dict())
        else:
            title = f" · {snippet(member.title, 80)}" if member.title else ""
            print(f"{member.rank:>3}. {member.score:.3f}  {snippet(member.id, 60)}{title}")
            print(f"     {snippet(member.text)}")


def _tree(found: "Topics", to: Path | None, json: bool) -> None:
    if to is not None:
        found.draw_tree(to)
        say(f"{to}: the tree of {counted(len(found), 'topic')}")
        return
    for node in found.tree():
        if json:
            print_json(node.to_dict())
        else:
            print(f"{node.distance:.3f}  {snippet(node.left, 50)}  +  {snippet(node.right, 50)}")
            print(f"{'':7}{node.level - 1} left: {snippet(node.name, 70)}  ({', '.join(map(str, node.topics))})")


def _breakdown(found: "Topics", what: "Breakdown", to: Path | None, json: bool) -> None:
    if what.without:
        say(f"{counted(what.without, 'document')} without a {what.column}")
    if to is not None:
        kind = "over time" if what.kind == "period" else "by class"
        what.draw(to, f"{found.collection.path.name}: topics {kind}, by {what.column}")
        parts = counted(len(what.parts), what.kind, "classes" if what.kind == "class" else None)
        say(f"{to}: {counted(len(found), 'topic')} in {parts}")
    elif json:
        for row in what.rows():
            print_json(row)
    elif what.kind == "period":
        _print_periods(what)
    else:
        _print_classes(what)


def _print_periods(what: "Breakdown") -> None:
    span = f"{what.parts[0]} to {what.parts[-1]}, {counted(len(what.parts), 'period')}"
    print(f"{span}; ▁ to █ is the share of a topic's own peak")
    for place, topic in enumerate(what.topics):
        counts = what.counts[place]
        peak = int(counts.argmax())
        marks = "".join(SHADES[-(-int(count) * 8 // max(int(counts.max()), 1))] for count in counts)
        print(f"{topic.number:>4} {topic.size:>9,}  {snippet(topic.name, 60)}")
        words = ", ".join(term for term, _ in what.terms.get((place, peak), []))
        print(f"     {marks}  most in {what.parts[peak]}: {int(counts[peak]):,} ({words})")


def _print_classes(what: "Breakdown") -> None:
    for place, topic in enumerate(what.topics):
        counts = what.counts[place]
        order = sorted(range(len(what.parts)), key=lambda part: (-counts[part], part))[:5]
        shown = ", ".join(f"{what.parts[part]} {int(counts[part]):,}" for part in order if counts[part])
        print(f"{topic.number:>4} {topic.size:>9,}  {snippet(topic.name, 60)}")
        print(f"{'':16}{snippet(shown, 110)}")
