"""What a search is asked: its queries and its settings, checked."""

import reprlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ...indexer.errors import UsageError, as_text
from .arguments import settings_from
from .options import SearchOptions

if TYPE_CHECKING:
    from ...pipelines.search.settings import SearchSettings
    from ...pipelines.search.trec import Query


def checked_pairs(queries: "Iterable[Query]") -> "list[Query]":
    """Return queries with their ids.

    Raises:
        UsageError: One is not a pair of an id and a text.
    """
    found = list(queries)
    for pair in found:
        if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
            said = f"{reprlib.repr(pair)} is not a valid query: give an id and a text, as ('q1', 'late parcel')"
            raise UsageError(said, code="wrong-type", field="queries", value=pair)
    return [(as_text(key, "id"), as_text(text, "query")) for key, text in found]


def search_settings(
    method: str, k: int | None, settings: "SearchSettings | None", options: SearchOptions
) -> "SearchSettings":
    """Return the settings of a search: the given ones, changed by each option and by `k` where it is given."""
    from ...pipelines.search.settings import SearchSettings

    return settings_from(SearchSettings, settings, options if k is None else {"k": k, **options}, method)
