"""`sonde correct`: what a person says of labels."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...indexer.wording import counted
from .options import CollectionPath, Json
from .output import print_json, say, snippet

if TYPE_CHECKING:
    from ...pipelines.label.corrections import Correction
    from ...pipelines.label.review import Unsure


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("correct")(correct)


def correct(
    collection: CollectionPath,
    ids: Annotated[list[str] | None, typer.Argument(metavar="ID...", help="Ids of documents.")] = None,
    label: Annotated[
        list[str] | None,
        typer.Option("--label", metavar="L", help="Their right label, or 'none of these'; several with --multi-label."),
    ] = None,
    run: Annotated[str, typer.Option("--run", metavar="RUN", help="The label run.")] = "labels",
    file: Annotated[
        Path | None, typer.Option("--from", metavar="FILE", help="Corrections: .csv or .jsonl with id and label.")
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option("--to", metavar="FILE", help="Write the corrections that are kept, as .csv or .jsonl."),
    ] = None,
    forget: Annotated[bool, typer.Option("--forget", help="Forget what was said of these documents.")] = False,
    unsure: Annotated[bool, typer.Option("--unsure", help="Show the documents whose label is least sure.")] = False,
    k: Annotated[int, typer.Option("-k", help="With --unsure: how many.")] = 20,
    json: Json = False,
) -> None:
    """Correct labels: this is kept, and the next `sonde label` under that name heeds it and learns from it.

    Without anything more, the corrections that are kept are listed.

    \b
    Examples:
      sonde correct tickets.sonde --unsure -k 5
      sonde correct tickets.sonde 1 3 --label spam
      sonde correct tickets.sonde --from corrections.csv
      sonde correct tickets.sonde --to kept.jsonl
      sonde label tickets.sonde --labels open,spam --replace
    """
    from ...indexer.errors import UsageError
    from ...pipelines.label.corrections import correct as keep
    from ...pipelines.label.corrections import corrections, read_corrections
    from ...pipelines.label.corrections import forget as drop
    from ...pipelines.label.review import unsure as least_sure
    from ..api import open as open_collection

    chosen = [bool(label), file is not None, forget, unsure]
    if sum(chosen) > 1:
        raise UsageError("choose one of --label, --from, --forget and --unsure")
    if bool(ids) != bool(label or forget):
        raise UsageError("a correction needs ids and --label, or ids and --forget")
    opened = open_collection(collection)
    if unsure:
        for found in least_sure(opened, run, k):
            print_json(found.to_dict()) if json else _print_unsure(found)
        return
    if forget:
        left = drop(opened, ids or (), run)
        say(f"{run}: {counted(left, 'correction')} kept")
    elif label or file is not None:
        given = read_corrections(file) if file else dict.fromkeys(ids or (), label or [])
        count = keep(opened, given, run)
        say(f"{run}: {counted(len(given), 'document')} corrected, {counted(count, 'correction')} kept")
    else:
        _list(corrections(opened, run), to, json)


def _list(found: "list[Correction]", to: Path | None, json: bool) -> None:
    from ...pipelines.label.corrections import write_corrections

    if to is not None:
        write_corrections(found, to)
        say(f"{counted(len(found), 'correction')} written to {to}")
        return
    for each in found:
        print_json(each.to_dict()) if json else print(f"{', '.join(each.labels) or 'none of these'}\t{each.id}")
    if not found:
        say("nothing was corrected")


def _print_unsure(found: "Unsure") -> None:
    print(f"{found.margin:>6.3f}  {found.label} {found.score:.3f}, else {found.other}  {snippet(found.id, 40)}")
    print(f"        {snippet(found.text, 140)}")
