"""`sonde topics`."""

from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from ...indexer.errors import UsageError
from ...indexer.store.kinds import TOPIC
from ...indexer.wording import counted
from .asking import free_name, say_name
from .output import (
    CollectionPath,
    Device,
    Json,
    LabelsFile,
    NamerAddress,
    NamerModel,
    NamerShow,
    Names,
    NamingEngine,
    RunName,
    Seed,
    progress,
    say,
)
from .topic import print_topics

if TYPE_CHECKING:
    from ...pipelines.topics.settings import Level, Method, Outliers


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("topics")(topics)


def topics(
    collection: CollectionPath,
    name: RunName = "topics",
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace a run of the same name; topics that stay keep their numbers.")
    ] = False,
    update: Annotated[
        str | None,
        typer.Option("--update", metavar="RUN", help="Only assign new documents to the topics of an existing run."),
    ] = None,
    min_size: Annotated[
        int | None, typer.Option("--min-size", help="Minimum texts per topic. Implies --method dense.")
    ] = None,
    about: Annotated[
        int | None, typer.Option("--about", metavar="N", help="Approximate number of topics (within 10 %).")
    ] = None,
    reduce_to: Annotated[int | None, typer.Option("--reduce-to", metavar="N", help="Maximum number of topics.")] = None,
    seed_words: Annotated[
        str | None, typer.Option("--seed-words", metavar="A,B;C,D", help="Groups of words that should become topics.")
    ] = None,
    outliers: Annotated[
        str,
        typer.Option(
            "--outliers",
            help="keep: texts far from every topic become outliers; nearest: each goes to the nearest topic.",
        ),
    ] = "nearest",
    names: Names = "auto",
    labels: Annotated[
        str | None, typer.Option("--labels", metavar="A,B,C", help="Name topics with these labels where one fits.")
    ] = None,
    labels_file: LabelsFile = None,
    engine: NamingEngine = "similarity",
    namer: NamerAddress = None,
    namer_model: NamerModel = None,
    namer_show: NamerShow = False,
    match: Annotated[
        str | None, typer.Option("--match", metavar="RUN", help="Number topics like those of another run.")
    ] = None,
    sample: Annotated[
        int, typer.Option("--sample", help="Number of texts to fit on; the rest get the nearest topic.")
    ] = 50_000,
    method: Annotated[
        str,
        typer.Option(
            "--method",
            help="levels (groups at three nested levels), dense (dense groups at one level), or auto: dense with "
            "--min-size or fewer than 30 texts, else levels.",
        ),
    ] = "auto",
    level: Annotated[
        str, typer.Option("--level", help="The level of the run's topics: coarse, middle, fine, or the suggested one.")
    ] = "suggested",
    seed: Seed = 0,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Find the topics of a collection at three nested levels, and store them as a run.

    Uses the collection's stored embeddings. The same settings and versions give the same topics. Every fine topic lies
    in one middle topic, and every middle topic in one coarse topic. The run's topics are those of the suggested level;
    coarse:RUN, middle:RUN and fine:RUN name the levels, in commands, filters and exports.

    \b
    Examples:
      sonde topics reviews.sonde
      sonde topics reviews.sonde --name report --about 20
      sonde topics reviews.sonde --name few --level coarse
      sonde runs show news.sonde fine:topics
      sonde topics reviews.sonde --name twelve --reduce-to 12 --outliers keep
      sonde topics reviews.sonde --name guided --seed-words "battery,charge;delivery,parcel"
      sonde topics news.sonde --name named --labels "economy,politics,sport: matches and players"
      sonde topics news.sonde --update topics
    """
    from ...pipelines.topics import TopicSettings
    from ..api import open as open_collection
    from ..api.functions import read_candidates
    from ..api.functions import seed_words as groups

    settings = TopicSettings(
        seed, min_size, reduce_to, groups(seed_words) if seed_words is not None else (), cast("Outliers", outliers),
        sample=sample, names=cast(Any, names), labels=read_candidates(labels, labels_file), engine=engine,
        method=cast("Method", method), level=cast("Level", level),
        namer=namer, namer_model=namer_model, namer_show=namer_show,
        about=about,
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
            free = free_name(opened, TOPIC.name, name, replace)
            found = opened.topics(free, replace=replace, match=match, settings=settings, progress=notify)
            say_name(TOPIC.name, name, found.name)
    print_topics(found, json)
