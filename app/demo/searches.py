"""The searches that the demo runs, each with what it should find first."""

from dataclasses import dataclass


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
