"""`sonde tag`, `sonde runs correct` and `sonde judge`: tags, corrections and judgements by people."""

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from ...indexer.errors import UsageError, out_of_range
from ...indexer.files import check_different, check_target, text_of
from ...indexer.store.kinds import LABEL
from ...indexer.wording import counted, existing
from .output import CollectionPath, Json, print_json, progress, quoted, say, snippet

if TYPE_CHECKING:
    from ...pipelines.label import Unsure
    from ...pipelines.label.corrections import Correction
    from ..api import Collection


def register(app: typer.Typer) -> None:
    """Add the commands, and the old name of one part of `judge`."""
    app.command("tag")(tag)
    app.command("judge")(judge)
    app.command("judgements", hidden=True)(judgements)


def correct(
    collection: CollectionPath,
    ids: Annotated[list[str] | None, typer.Argument(metavar="ID...", help="Document ids.")] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(
            "--label", metavar="L", help="Correct label, or 'none of these'. Repeat it for a --multi-label run."
        ),
    ] = None,
    run: Annotated[
        str | None,
        typer.Option("--run", metavar="RUN", help="Label run to correct; by default the newest with this label."),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="Read corrections from a .csv, .xlsx or .jsonl file with id and label, one row per document.",
        ),
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option(
            "--to",
            metavar="FILE",
            help="Write the stored corrections (.csv, .jsonl); with --random or --unsure, a sheet to code by hand "
            "(.csv, .xlsx).",
        ),
    ] = None,
    forget: Annotated[bool, typer.Option("--forget", help="Delete the corrections of these documents.")] = False,
    unsure: Annotated[bool, typer.Option("--unsure", help="Show the documents with the least certain labels.")] = False,
    random: Annotated[bool, typer.Option("--random", help="Show random documents and their labels.")] = False,
    k: Annotated[int, typer.Option("-k", help="With --unsure or --random: number of documents to show.")] = 20,
    json: Json = False,
) -> None:
    """Correct labels. The next `sonde label` with the same run name applies the corrections and learns from them.

    With only a collection, list the stored corrections; if several runs have some, add --run. A file can hold several
    labels per document: "late; broken" in one cell, several rows, a column of 0 and 1 for each label, or in .jsonl a
    list under `labels`. Write 'none of these' if no label fits. An empty label is refused, except in a workbook or in a
    sheet that --random --to or --unsure --to wrote: there it means that you have not coded the text.

    \b
    Examples:
      sonde runs correct tickets.sonde --unsure -k 5
      sonde runs correct tickets.sonde 1 3 --label spam
      sonde runs correct tickets.sonde --from corrections.csv
      sonde runs correct tickets.sonde --to kept.jsonl
      sonde runs correct tickets.sonde --random -k 60 --to hand.xlsx
      sonde label tickets.sonde --labels open,spam --replace
    """
    from ..api import open as open_collection
    from ..api.functions import check_sheet

    chosen = [bool(label), file is not None, forget, unsure, random]
    if sum(chosen) > 1:
        raise UsageError("choose one of --label, --from, --forget, --unsure and --random")
    if ids and (unsure or random):
        said = "--random" if random else "--unsure"
        raise UsageError(f"{said} takes no ids: to name a run, write --run {quote(ids[0])}")
    if bool(ids) != bool(label or forget):
        raise UsageError("a correction needs ids and --label, or ids and --forget")
    if to is not None:
        check_sheet(to) if unsure or random else check_target(to, (".csv", ".jsonl"), "write corrections to")
    opened = open_collection(collection)
    if unsure or random:
        if k < 1:
            raise out_of_range("k", k, "show 1 document or more")
        run = opened.corrected_run(run)
        _review(opened.unsure(run, k, random=random), run, collection, to, json)
        return
    if forget:
        say(f"{counted(opened.forget_corrections(ids or (), run), 'correction')} kept")
    elif label or file is not None:
        given = file or dict.fromkeys(ids or (), label or ())
        found = opened.correct(given, run, progress=lambda event: say(f"note: {event}"))
        say(f"{found.run}: {counted(found.documents, 'document')} corrected, {counted(found.total, 'correction')} kept")
        _say_missing(opened, found.run)
    elif to is not None:
        say(f"{counted(opened.save_corrections(to, run, lambda event: say(str(event))), 'correction')} written to {to}")
    else:
        _list(opened.corrections(run), json)


def _review(found: "list[Unsure]", run: str, collection: Path, to: Path | None, json: bool) -> None:
    """Print documents with their labels, or write them to a sheet to code by hand."""
    from ..api.functions import write_sheet

    if to is None:
        for each in found:
            print_json(each.to_dict()) if json else print_unsure(each)
        say(f"run {run}")
        return
    write_sheet(found, to, lambda event: say(str(event)))
    read = f"sonde runs correct {quoted(collection)} --from {quoted(to)} --run {quote(run)}"
    say(f"{counted(len(found), 'document')} of {run} written to {to}: fill in the column label, then {read}")


def _say_missing(opened: "Collection", run: str) -> None:
    """Say that a label run does not exist yet, which is allowed but may be a slip."""
    names = [each.name for each in opened.runs(LABEL.name)]
    if run not in names:
        say(f"note: there is no label run {run!r} yet: {existing(names)}")


def _list(found: "list[Correction]", json: bool) -> None:
    if not found:
        say("nothing was corrected")
    elif json:
        for each in found:
            print_json(each.to_dict())
    else:
        shown = [("label", "id"), *((", ".join(each.labels) or "none of these", each.id) for each in found)]
        width = max(len(label) for label, _ in shown)
        for label, id in shown:
            print(f"{label:<{width}}  {id}")


def print_unsure(found: "Unsure") -> None:
    """Print a document, its labels and the runner-up with their scores, and before them the margin: 0 is undecided."""
    rival = f", else {found.rival}" if found.rival else ""
    print(f"{found.margin:>6.3f}  {found.shown}{rival}  {snippet(found.id, 40)}")
    print(f"        {snippet(found.text, 140)}")


def tag(
    collection: CollectionPath,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the tag.")],
    ids: Annotated[list[str] | None, typer.Argument(metavar="ID...", help="Document ids.")] = None,
    where: Annotated[str | None, typer.Option("--where", help="Also all documents that match this filter.")] = None,
    ids_file: Annotated[
        Path | None, typer.Option("--ids", metavar="FILE", help="File with one id per line; - is standard input.")
    ] = None,
    add: Annotated[bool, typer.Option("--add", help="Add the documents to an existing tag.")] = False,
    remove: Annotated[bool, typer.Option("--remove", help="Remove the documents from a tag.")] = False,
    replace: Annotated[bool, typer.Option("--replace", help="Replace an existing tag.")] = False,
    json: Json = False,
) -> None:
    """Give documents a tag. With ids and --where, all documents with these ids and all that match the filter get it.

    A tag is stored as a run. Filters and exports call it "tag:NAME". `sonde runs name` renames it, and `sonde runs
    delete` deletes it. A document loses its tags when it is deleted, not when its text changes.

    \b
    Examples:
      sonde tag reviews.sonde unhappy --where "stars <= 2"
      sonde tag reviews.sonde odd 4711 4712
      sonde tag themes.sonde look-again --where '"cluster:kmeans" = 1'
      sonde cluster themes.sonde -k 2 --where '"tag:unhappy"' --name within
      sonde runs name themes.sonde unhappy angry
    """
    from ..api import open as open_collection

    ways = {"new": True, "add": add, "remove": remove, "replace": replace}
    chosen = [way for way, asked in ways.items() if asked]
    if len(chosen) > 2:
        raise UsageError("choose one of --add, --remove and --replace")
    listed = _lines(ids_file) if ids_file else []
    if ids_file and not (listed or ids or where):
        raise UsageError(f"{_of(ids_file)} holds no id: write one id on each line", code="empty", field="ids")
    given = [*(ids or ()), *listed]
    change = chosen[-1]
    found = open_collection(collection).tag(name, ids=given or None, where=where, change=change)  # type: ignore[arg-type]
    if json:
        print_json(found.to_dict())
    else:
        say(f"{found.tag}: {counted(found.documents, 'document')}, {found.changed:,} changed")


def _of(path: Path) -> str:
    return "standard input" if str(path) == "-" else str(path)


def _lines(path: Path) -> list[str]:
    from .search import standard_input

    text = standard_input() if str(path) == "-" else text_of(path, "the ids")
    return [line for line in text.splitlines() if line.strip()]


Qrels = Annotated[Path | None, typer.Option("--to", metavar="QRELS", help="Write the judgements as TREC qrels.")]
Queries = Annotated[
    Path | None,
    typer.Option(
        "--queries",
        metavar="Q.jsonl",
        help="With --to: write the queries to this file. With --from: read them from it.",
    ),
]


def judge(
    collection: CollectionPath,
    query: Annotated[str | None, typer.Argument(metavar="QUERY", help="Query to judge the documents for.")] = None,
    ids: Annotated[list[str] | None, typer.Argument(metavar="ID...", help="Document ids.")] = None,
    grade: Annotated[
        int | None, typer.Option("--grade", metavar="N", help="0: not relevant; 1 to 10: relevant. The default is 1.")
    ] = None,
    forget: Annotated[bool, typer.Option("--forget", help="Delete the judgements of these documents.")] = False,
    from_: Annotated[
        Path | None,
        typer.Option("--from", metavar="QRELS", help="Read judgements: TREC qrels or BEIR's TSV. Needs --queries."),
    ] = None,
    to: Qrels = None,
    queries: Queries = None,
    json: Json = False,
) -> None:
    """Record which documents are relevant to a query, and which are not. The collection stores the judgements.

    With only a collection, list the judgements, including those from the web UI; --to exports them. `sonde evaluate
    search C.sonde` uses them. A judgement no longer counts if its document is deleted or its text changes.

    \b
    Examples:
      sonde judge reviews.sonde "late delivery" 4711 4712
      sonde judge reviews.sonde "late delivery" 4713 --grade 0
      sonde judge reviews.sonde "late delivery" 4713 --forget
      sonde judge judged.sonde
      sonde judge judged.sonde --to qrels.tsv --queries queries.jsonl
      sonde judge cacm.sonde --from qrels.tsv --queries queries.jsonl.gz
    """
    from ..api import open as open_collection

    if from_ is not None:
        if query is not None or ids or forget or grade is not None or to or json:
            raise UsageError("--from reads judgements: leave out everything but the collection and --queries")
        _import(collection, queries, from_)
        return
    if query is None:
        if forget or grade is not None:
            raise UsageError("give a query and the ids of documents")
        judgements(collection, to, queries, json)
        return
    if to or queries or json:
        raise UsageError("--to, --queries and --json show the judgements: leave out the query and the ids")
    if not ids:
        raise UsageError("give the ids of the documents to judge after the query")
    if forget and grade is not None:
        raise UsageError("choose one of --grade and --forget")
    number = open_collection(collection).judge(query, ids, None if forget else 1 if grade is None else grade)
    if forget:
        none = f"there is no judgement of {'this document' if len(ids) == 1 else 'these documents'}"
        said = f"forgot {counted(number, 'judgement')}" if number else none
        say(f"{said} for {snippet(query, 80)!r}")
    else:
        say(f"{counted(number, 'document')} {'relevant' if grade != 0 else 'not relevant'} to {snippet(query, 80)!r}")


def _import(collection: Path, queries: Path | None, qrels: Path) -> None:
    from ..api import open as open_collection

    if queries is None:
        raise UsageError("--from needs --queries: a JSONL file with the _id and the text of each query")
    with progress() as notify:
        count = open_collection(collection).import_judgements(queries, qrels, progress=notify)
    say(f"{counted(count, 'judgement')} stored")


def judgements(collection: CollectionPath, to: Qrels = None, queries: Queries = None, json: Json = False) -> None:
    """Show or export the judgements, as `sonde judge C.sonde` does."""
    from ..api import open as open_collection

    if queries and not to:
        raise UsageError("--queries needs --to: it writes the queries that the qrels refer to")
    check_different(to=to, queries=queries)
    found = open_collection(collection).judgements()
    if to:
        found.write(to, queries)
    elif json:
        for judgement in found.kept:
            print_json(judgement.to_dict())
    else:
        for judgement in found.kept:
            print(f"{judgement.grade:>2}  {snippet(judgement.id, 40)}  {snippet(judgement.query, 100)}")
    stale = f"; {found.stale:,} of deleted or changed documents do not count" if found.stale else ""
    say(f"{counted(len(found), 'judgement')} of {counted(len(found.queries), 'query', 'queries')}{stale}")
