"""`sonde label`."""

from dataclasses import replace as replace_of
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...indexer.errors import UsageError, out_of_range
from ...indexer.store.kinds import LABEL
from ...indexer.wording import counted
from .asking import free_name, say_name
from .output import (
    Device,
    Json,
    LabelsFile,
    Replace,
    RunName,
    collections_in,
    print_json,
    progress,
    say,
    say_notes,
    snippet,
)

if TYPE_CHECKING:
    from ...pipelines.label import Classified, LabelReport, LabelSettings


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("label")(label)


def label(
    collection: Annotated[
        Path | None, typer.Argument(metavar="C.sonde", help="The collection.", autocompletion=collections_in)
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(
            "--labels",
            metavar="A,B,C",
            help="The labels; `name: description` adds a description. A label with commas takes double quotes.",
        ),
    ] = None,
    labels_file: LabelsFile = None,
    examples: Annotated[
        Path | None,
        typer.Option(
            "--examples", metavar="F", help="Learn from a table of texts (or ids) with labels, a few per label."
        ),
    ] = None,
    fine_tune: Annotated[
        Path | None,
        typer.Option(
            "--fine-tune", metavar="FOLDER", help="With --examples: tune the bi-encoder on them and save it in FOLDER."
        ),
    ] = None,
    text: Annotated[
        str | None, typer.Option("--text", help="Label this text instead of a collection; - is standard input.")
    ] = None,
    multi_label: Annotated[
        bool,
        typer.Option("--multi-label", help="Decide on each label separately: a text can get several labels or none."),
    ] = False,
    threshold: Annotated[
        float | None,
        typer.Option("--threshold", metavar="T", help="Minimum probability; below it, the label is 'none of these'."),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option("--engine", help="similarity (the default), nli, reranker or ensemble (similarity and nli)."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option("--model", metavar="M", help="bundled (nli), late (reranker), a model's folder or a hub name."),
    ] = None,
    template: Annotated[
        str | None, typer.Option("--template", help="Hypothesis for NLI, with {} for the label.")
    ] = None,
    shortlist: Annotated[
        int | None,
        typer.Option("--shortlist", help="Number of labels to judge per text, most similar first; 0 for all."),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(
            "--budget",
            metavar="B",
            help="Judge only a sample: a number of judgements, or a time such as 90s, 5min or 1h.",
        ),
    ] = None,
    where: Annotated[str | None, typer.Option("--where", help="Label only documents that match this filter.")] = None,
    name: RunName = "labels",
    replace: Replace = False,
    corrections: Annotated[
        bool,
        typer.Option(
            "--corrections/--no-corrections",
            help="Apply the corrections stored by `sonde runs correct`, and learn from them.",
        ),
    ] = True,
    corrections_of: Annotated[
        str | None,
        typer.Option("--corrections-of", metavar="RUN", help="First copy the corrections of another label run."),
    ] = None,
    none: Annotated[
        bool, typer.Option("--none", help="Texts that probably fit no label get the answer 'none of these'.")
    ] = False,
    promise: Annotated[
        float | None,
        typer.Option(
            "--promise", metavar="P", help="Like --none, but refuse at most this share of the texts that fit a label."
        ),
    ] = None,
    ask: Annotated[
        bool, typer.Option("--ask", help="Show the documents that are most useful to confirm or correct next.")
    ] = False,
    k: Annotated[int, typer.Option("-k", help="With --ask: number of documents to show.")] = 10,
    seed: Annotated[int, typer.Option("--seed", help="Random seed for the sample that a budget is spent on.")] = 0,
    device: Device = "auto",
    dtype: Annotated[
        str, typer.Option("--dtype", help="Precision of the model: auto, float32, bfloat16, float16.")
    ] = "auto",
    json: Json = False,
) -> None:
    """Give every document of a collection a label, and store the result as a run.

    Uses the names of the labels alone or, with --examples, a few texts for each label (docs/labelling.md).

    The output names the engine. If a run is stopped, run the same command again to continue.

    \b
    Examples:
      sonde label reviews.sonde --labels refund,praise,delivery
      sonde label reviews.sonde --labels refund,praise --multi-label --threshold 0.7 --name topics
      sonde label reviews.sonde --labels-file labels.txt --engine similarity --name plain
      sonde label reviews.sonde --labels refund,praise --none --name refused
      sonde label reviews.sonde --labels late,broken --where "stars <= 2" --name trouble
      sonde label reviews.sonde --examples labelled.csv --name learned
      sonde label tickets.sonde --ask -k 10
      sonde label --text "Where is my parcel?" --labels "delivery,refund: the customer wants money back"
      sonde label --text - --labels refund,delivery < letter.txt
    """
    from ...pipelines.label import LabelSettings
    from ..api import open as open_collection
    from ..api.functions import read_labels

    if (collection is None) == (text is None):
        raise UsageError("give a collection, or a text with --text")
    if ask:
        _ask(collection, any(each is not None for each in (labels, labels_file, examples)), name, k, json)
        return
    if sum(each is not None for each in (labels, labels_file, examples)) > 1:
        raise UsageError("give one of --labels, --labels-file and --examples")
    if (examples is not None and (text is not None or engine or model)) or (fine_tune is not None and examples is None):
        raise UsageError("--examples needs a collection, without --engine and --model; --fine-tune needs --examples")
    chosen: dict[str, Any] = {"template": template, "shortlist": shortlist}
    settings = LabelSettings(
        engine=engine, model=model, multi_label=multi_label, threshold=threshold, budget=budget, where=where,
        name=name, replace=replace, device=device, dtype=dtype, seed=seed, corrections=corrections,
        none=none, promise=promise, corrections_of=corrections_of,
        **{key: value for key, value in chosen.items() if value is not None},
    )  # fmt: skip
    given = read_labels(labels_file) if labels_file else labels or ""
    with progress(quiet=json) as notify:
        if text is not None:
            found: Any = _one_text(text, given, settings, notify)
        else:
            assert collection is not None
            opened = open_collection(collection, device=device)
            settings = replace_of(settings, name=free_name(opened, LABEL.name, name, replace))
            if examples is not None:
                found = opened.label_by_examples(examples, fine_tune=fine_tune, settings=settings, progress=notify)
            else:
                found = opened.label(given, settings=settings, progress=notify)
    if text is None:
        say_name(LABEL.name, name, settings.name)
    if json:
        print_json(found.to_dict())
    elif text is None:
        _print_report(found)
    else:
        _print_text(found)


def _ask(collection: Path | None, labelled: bool, run: str, k: int, json: bool) -> None:
    """Show the documents to confirm next, of the newest run unless another is named."""
    from ..api import open as open_collection
    from .feedback import print_unsure

    if collection is None or labelled:
        raise UsageError("--ask needs a collection that has labels: give no labels; --name chooses the run")
    if k < 1:
        raise out_of_range("k", k, "show 1 document or more")
    opened = open_collection(collection)
    known = opened.corrected_run(None if run == "labels" else run)
    for found in opened.to_confirm(known, k):
        print_json(found.to_dict()) if json else print_unsure(found)
    if not json:
        say(f"confirm or correct: sonde runs correct {collection} ID --label LABEL --run {known}; then label again")


def _one_text(text: str, labels: Any, settings: "LabelSettings", notify: Any) -> "Classified":
    from ..api import classify
    from .search import standard_input

    if settings.where is not None or settings.budget is not None:
        raise UsageError("--where and --budget are for collections, not for --text")
    return classify([standard_input() if text == "-" else text], labels, settings=settings, progress=notify)[0]


def _print_report(report: "LabelReport") -> None:
    width = max(len(name) for name in report.counts)
    for name, count in sorted(report.counts.items(), key=lambda pair: -pair[1]):
        print(f"{snippet(name, 60):<{min(width, 60)}}  {count:>9,}  {count / max(report.documents, 1):6.1%}")
    judged = ""
    if report.calls:
        judged = f" · {report.calls:,} of {report.full_calls:,} judgements, {counted(report.judged, 'document')} judged"
    if report.corrected:
        judged += f" · {counted(report.corrected, 'document')} as corrected"
    if report.agreement is not None:
        judged += f" · agreement with {report.engine} on {report.held_back:,} held out: {report.agreement:.1%}"
    say(
        f"run {report.name}: {counted(report.documents, 'document')} · {report.engine}, {report.model}{judged}"
        f" · {report.seconds:,.1f} s"
    )
    say_notes(report.notes)


def _print_text(found: "Classified") -> None:
    from ..api.functions import NONE_NAME

    for name, score in found.scores.items():
        print(f"{'*' if name in found.labels else ' '} {score:.3f}  {snippet(name, 60)}")
    if found.none is not None:
        said = f"{NONE_NAME} (separate from the labels; --none refuses from 0.5 on)"
        print(f"{' ' if found.labels else '*'} {found.none:.3f}  {said}")
    say(f"{', '.join(found.labels) or found.label} · {found.engine}, {found.model}")
