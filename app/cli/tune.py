"""`sonde tune`, `sonde tune threshold` and `sonde ask`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...indexer.errors import UsageError, out_of_range
from .commands import DefaultGroup
from .output import CollectionPath, Device, Json, print_json, progress, say, say_notes, snippet

if TYPE_CHECKING:
    from ...pipelines.search.ask import Answer
    from ..api import Collection

NO_ANSWER = "nothing similar enough"


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(cls=DefaultGroup, no_args_is_help=True, rich_markup_mode=None)
    group.callback()(_keep_group)
    group.command("search", short_help="Tune search; `search` may be left out.")(tune_search)
    group.command("threshold", short_help="Find the threshold of `sonde ask`.")(tune_threshold)
    app.add_typer(group, name="tune")
    app.command("ask")(ask)


def _keep_group() -> None:
    """Find the best settings for a collection, from queries with known answers."""


def tune_search(
    collection: CollectionPath,
    queries: Annotated[
        Path | None,
        typer.Option("--queries", metavar="Q.jsonl", help="Judged queries: a JSONL file with _id and text."),
    ] = None,
    qrels: Annotated[
        Path | None,
        typer.Option("--qrels", metavar="QRELS", help="Judgements of the queries: TREC qrels or BEIR's TSV."),
    ] = None,
    clicks: Annotated[
        Path | None,
        typer.Option(
            "--clicks", metavar="FILE", help="A click log: rows with a query and the id of the chosen document."
        ),
    ] = None,
    rerank: Annotated[bool, typer.Option("--rerank", help="Also tune the second stage; takes longer.")] = False,
    count: Annotated[int, typer.Option("--count", help="Maximum number of queries to make from the texts.")] = 300,
    dry: Annotated[bool, typer.Option("--dry-run", help="Report the result without storing it.")] = False,
    reset: Annotated[bool, typer.Option("--reset", help="Remove the tuned settings.")] = False,
    seed: Annotated[int, typer.Option("--seed", help="Random seed for the queries and the halves.")] = 0,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Tune the fusion weight, the depth and the breadth of the index; with --rerank also the second stage.

    Settings are chosen on one half of the queries and checked on the other. If the gain is significant, they become
    the collection's defaults for all searches; otherwise nothing changes. Without queries, Sonde makes some: titles
    that should find their texts, or the rarest words of a sentence that is removed from its text. Tuning needs at
    least 20 queries. `search` may be left out: `sonde tune C.sonde`.

    \b
    Examples:
      sonde tune articles.sonde
      sonde tune articles.sonde --queries judged.jsonl --qrels judged.tsv --rerank
      sonde tune articles.sonde --clicks clicks.csv --dry-run
      sonde tune articles.sonde --reset
    """
    from ...pipelines.tune import TuneSettings
    from ...pipelines.tune.queries import FEWEST
    from ..api import open as open_collection

    if reset and dry:
        raise UsageError("--reset removes what was tuned, and --dry-run changes nothing: choose one")
    if count < FEWEST:
        raise out_of_range("count", count, f"give a whole number from {FEWEST}")
    settings = TuneSettings(rerank=rerank, queries=count, seed=seed, keep=not dry)
    settings.check()
    opened = open_collection(collection, device=device)
    if reset:
        known = opened.forget_tuning()
        print(f"{collection}: {'nothing was stored' if known.empty else f'forgot {known}'}")
        return
    with progress() as notify:
        found = opened.tune_search(queries=queries, qrels=qrels, clicks=clicks, settings=settings, progress=notify)
    if json:
        print_json(found.to_dict())
        return
    print(f"chosen on {found.chosen_on} queries, checked on {found.checked_on} others: {found.source}")
    if found.chosen:
        print(f"best on those {found.chosen_on}: {', '.join(_told(*each) for each in found.chosen.items())}")
    for gain in found.gains:
        print(f"on the others: {gain}")
    say_notes(found.notes)
    if found.stored:
        print(f"stored: {found.stored}")


def _told(name: str, value: float | None) -> str:
    return f"{name} chosen for each query" if value is None else f"{name} {value:g}"


def tune_threshold(
    collection: CollectionPath,
    answered: Annotated[
        Path,
        typer.Option(
            "--answered", metavar="FILE", help="Questions that the collection answers: one per line, or a table."
        ),
    ],
    unanswerable: Annotated[
        Path, typer.Option("--unanswerable", metavar="FILE", help="Questions that the collection does not answer.")
    ],
    mode: Annotated[str, typer.Option("--mode", help="How to find the best hit: dense or hybrid.")] = "dense",
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Draw the curve to an .html, .png or .svg file.")
    ] = None,
    dry: Annotated[bool, typer.Option("--dry-run", help="Report the result without storing it.")] = False,
    seed: Annotated[int, typer.Option("--seed", help="Random seed for the halves.")] = 0,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Find the similarity below which `sonde ask` has no answer, and store it.

    A table has a column `question` and, if the right documents are known, one with their ids. The threshold with the
    highest F1 on one half of the questions is chosen; its results on the other half are printed.

    \b
    Examples:
      sonde tune threshold faq.sonde --answered answered.csv --unanswerable unanswerable.txt --plot curve.html
    """
    from ...pipelines.tune.threshold import ThresholdPlot
    from ..api import open as open_collection
    from ..api.functions import check_plot_target, write_plot

    if plot:
        check_plot_target(plot)
    opened = open_collection(collection, device=device)
    _warn(opened)
    found = opened.tune_threshold(answered, unanswerable, mode=mode, seed=seed, keep=not dry)
    if plot:
        write_plot(ThresholdPlot(f"Answers of {collection.name}", found.curve, found.threshold), plot)
        say(f"wrote {plot}")
    if json:
        print_json(found.to_dict())
        return
    if not found.aware:
        say("note: the questions have no ids, so every hit above the threshold counts as right")
    point = found.checked
    print(f"threshold {found.threshold:.3f}{' stored' if found.stored else ''}, chosen on half of the questions")
    print(
        f"other half: precision {point.precision:.3f}, recall {point.recall:.3f}, F1 {point.f1:.3f}; "
        f"{point.false_answers:.3f} of the unanswerable questions get an answer"
    )


def ask(
    collection: CollectionPath,
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="What to ask.")],
    threshold: Annotated[
        float | None, typer.Option("--threshold", metavar="T", help="Minimum cosine, instead of the stored threshold.")
    ] = None,
    field: Annotated[
        str | None, typer.Option("--field", metavar="NAME", help="Metadata field that holds the answer.")
    ] = None,
    mode: Annotated[str, typer.Option("--mode", help="How to find the best document: dense or hybrid.")] = "dense",
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Answer a question from a collection of questions and answers, or report that nothing is similar enough.

    The text of a document is the question (or a passage). The answer is its field "answer", if it has one. The
    threshold is the one stored by `sonde tune threshold`.

    \b
    Examples:
      sonde ask faq.sonde "how can I send a lamp back"
      sonde ask faq.sonde "how do I bake bread" --threshold 0.9 --json
    """
    from ..api import open as open_collection
    from ..api.functions import NOTHING_ANSWERS

    opened = open_collection(collection, device=device)
    found = opened.ask(question, threshold, field=field, mode=mode, progress=lambda event: say(str(event)))
    _warn(opened)
    refusal = None if found.hit or json else _refusal(found)
    for note in found.notes:
        if not (refusal and note.startswith(NOTHING_ANSWERS)):
            say_notes([note])
    if json:
        print_json(found.to_dict())
        return
    if refusal:
        print(refusal)
        return
    assert found.hit is not None
    print(found.answer)
    asked = found.hit.title or found.hit.text
    shown = "" if asked == found.answer else f"  {snippet(asked, 160)}"
    page = f", page {found.hit.page:,}" if found.hit.page else ""
    say(f"similarity {found.similarity:.3f}  {snippet(found.hit.id, 60)}{page}{shown}")


def _refusal(found: "Answer") -> str:
    """Return why there is no answer, with the number that decided: similarity with a threshold, else relevance."""
    from ..api.functions import NOTHING_ANSWERS

    if found.similarity is None:
        return NO_ANSWER
    if found.threshold is not None:
        return f"{NO_ANSWER}: the best similarity is {found.similarity:.3f}, below the threshold {found.threshold:g}"
    weak = next((note for note in found.notes if note.startswith(NOTHING_ANSWERS)), "")
    return f"{NO_ANSWER}{weak.removeprefix(NOTHING_ANSWERS)} (relevance: the estimated chance, 0 to 1, that it answers)"


def _warn(collection: "Collection") -> None:
    if warning := collection.model_warning():
        say_notes([warning])
