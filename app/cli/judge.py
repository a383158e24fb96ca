"""`sonde judge` and `sonde judgements`: which documents answer which queries."""

from pathlib import Path
from typing import Annotated

import typer

from ...indexer.wording import counted
from .options import CollectionPath, Json
from .output import print_json, say, snippet


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("judge")(judge)
    app.command("judgements")(judgements)


def judge(
    collection: CollectionPath,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="The query that the documents answer, or do not.")],
    ids: Annotated[list[str], typer.Argument(metavar="ID...", help="Ids of documents.")],
    grade: Annotated[
        int | None, typer.Option("--grade", metavar="N", help="0: not relevant; 1 to 10: relevant (1 unless given).")
    ] = None,
    forget: Annotated[bool, typer.Option("--forget", help="Take back what was said of them.")] = False,
) -> None:
    """Say which documents answer a query, and which do not; the collection keeps it.

    `sonde evaluate search C.sonde` measures with what was said. It no longer counts when a document is deleted or its
    text changes.

    \b
    Examples:
      sonde judge reviews.sonde "late delivery" 4711 4712
      sonde judge reviews.sonde "late delivery" 4713 --grade 0
      sonde judge reviews.sonde "late delivery" 4713 --forget
    """
    from ...indexer.errors import UsageError
    from ..api import open as open_collection

    if forget and grade is not None:
        raise UsageError("choose one of --grade and --forget")
    number = open_collection(collection).judge(query, ids, None if forget else 1 if grade is None else grade)
    if forget:
        say(f"{counted(number, 'judgement')} of {snippet(query, 80)!r} forgotten")
    else:
        say(f"{counted(number, 'document')} {'relevant' if grade != 0 else 'not relevant'} to {snippet(query, 80)!r}")


def judgements(
    collection: CollectionPath,
    to: Annotated[Path | None, typer.Option("--to", metavar="QRELS", help="Write them as TREC qrels.")] = None,
    queries: Annotated[
        Path | None, typer.Option("--queries", metavar="Q.jsonl", help="With --to: write the queries beside them.")
    ] = None,
    json: Json = False,
) -> None:
    """Show or export what was said of hits, here with `sonde judge` or in the web UI.

    \b
    Examples:
      sonde judgements judged.sonde
      sonde judgements judged.sonde --to qrels.tsv --queries queries.jsonl
    """
    from ...indexer.errors import UsageError
    from ..api import open as open_collection

    if queries and not to:
        raise UsageError("--queries needs --to: it names the queries of the qrels")
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
