"""`sonde demo`: a real corpus that needs no download, and three searches of it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ...indexer.wording import counted
from .output import progress, say
from .search import print_results


@dataclass(frozen=True, slots=True)
class DemoSearch:
    """A query over the demo corpus, with a filter or without, and the key of the document that should come first."""

    query: str
    expected: str
    where: str | None = None


SEARCHES = (
    DemoSearch("remove whitespace from both ends of a string", expected="builtins.str.strip"),
    DemoSearch("hide what the user types when entering a password", expected="getpass"),
    DemoSearch("find the biggest elements quickly", expected="heapq.nlargest"),
)

QUERIES = tuple(search.query for search in SEARCHES)

# Without its filter this one finds mail folders.
FILTERED = DemoSearch(
    "delete a folder and everything in it",
    expected="shutil.rmtree",
    where="package = 'shutil' AND kind = 'function'",
)


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
    from ..demo import stdlib_docstrings

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
