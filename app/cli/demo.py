"""`sonde demo`: a real corpus that needs no download, and three searches of it."""

from pathlib import Path
from typing import Annotated

import typer

from ...indexer.wording import counted
from .output import say
from .progress import progress
from .search import print_results


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("demo")(demo)


def demo(
    to: Annotated[Path, typer.Option("--to", metavar="C.sonde", help="Where to put the collection.")] = Path(
        "demo.sonde"
    ),
) -> None:
    """Index the docstrings of Python's standard library, run three searches, and show what to try next.

    \b
    Examples:
      sonde demo
    """
    from ..api import Collection, index
    from ..demo import FILTERED, QUERIES, stdlib_docstrings

    say(f"indexing the docstrings of Python's standard library into {to}")
    with progress() as notify:
        # The columns of documents made here are nobody's news: only the progress is shown.
        collection: Collection = index(
            stdlib_docstrings(), to, progress=lambda event: None if isinstance(event, str) else notify(event)
        )
    report = collection.report
    assert report is not None
    print(f"{to}: {counted(len(collection), 'document')}, {report.added:,} new; {report.seconds:,.0f} s")
    for query in QUERIES:
        print(f'\n$ sonde search {to} "{query}" -k 3')
        print_results(collection.search(query, k=3), json=False)
    print(f'\nTry next:\n  sonde search {to} "{FILTERED.query}" --where "{FILTERED.where}"')
    print(f"  sonde similar {to} json.dumps\n  sonde info {to}")
    print("  sonde index YOUR.csv --to yours.sonde")
