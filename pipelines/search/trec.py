"""Read batches of queries, and write TREC run files for standard evaluation tools."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from ...indexer.errors import SondeError, as_text
from ...indexer.files import text_of, write_output
from ...indexer.progress import Notify, silent
from ...indexer.store.collection import StoredCollection
from .results import Results
from .search import check_query, search_many
from .settings import SearchSettings

Query = tuple[str, str]


def read_queries(path: Path) -> list[Query]:
    """Return (id, text) of every query in a JSONL file with `_id` and `text`, plain or gzipped.

    Raises:
        UsageError: A query is empty.
        SondeError: The file cannot be read, a line is not such an object, an id occurs twice, or there are no queries.
    """
    lines = text_of(path, "the queries").split("\n")
    queries = [_query(path, number, line) for number, line in enumerate(lines, 1) if line.strip()]
    if not queries:
        raise SondeError(f"{path} has no queries")
    again, times = Counter(key for key, _ in queries).most_common(1)[0]
    if times > 1:
        raise SondeError(f"{path} holds the query id {again!r} more than once")
    return queries


def _query(path: Path, number: int, line: str) -> Query:
    try:
        found = json.loads(line)
        key, text = found.get("_id", found.get("id", number)), found["text"]
        if not isinstance(text, str):
            raise ValueError
    except (ValueError, KeyError, AttributeError, RecursionError):
        raise SondeError(f'line {number} of {path} is not a query: expected {{"_id": "1", "text": "…"}}') from None
    check_query(text, f"line {number} of {path}: the query {str(key)!r}")
    return str(key), text


def run_queries(
    collection: StoredCollection,
    queries: Sequence[Query],
    settings: SearchSettings,
    run: Path | None = None,
    notify: Notify = silent,
    excerpts: bool = True,
) -> list[tuple[str, Results]]:
    """Search for every query and, if `run` is given, write the hits as a TREC run file.

    A run file has every document, also those with the same text: judgements count them all. With a run file, or
    without `excerpts`, the whole passage is the excerpt of a hit.

    Raises:
        UsageError: A setting, the filter or a query is not valid.
        SondeError: The collection's model, or the second stage's, is not available, or two ids of the run would be
            written as one.
    """
    queries = [(as_text(key, "query id"), as_text(text, "query")) for key, text in queries]
    for key, text in queries:
        check_query(text, f"the query {key!r}")
    if run:
        trec_ids((key for key, _ in queries), "query")  # before the work
    settings = replace(settings, collapse=settings.collapse and run is None)
    results = search_many(collection, [text for _, text in queries], settings, notify, excerpts and run is None)
    found = [(key, hits) for (key, _), hits in zip(queries, results, strict=True)]
    if run:
        write_trec(run, found, f"{settings.mode}-rerank" if settings.rerank else settings.mode)
    return found


def write_trec(path: Path, found: Sequence[tuple[str, Results]], tag: str) -> None:
    """Write a TREC run: `query Q0 document rank score tag`, with ids as `trec_ids` gives them.

    Scores have nine decimals: tools sort by them, and with fewer, near scores would be equal.

    Raises:
        SondeError: Two ids would be written as one, or the file cannot be written.
    """
    queries = trec_ids((key for key, _ in found), "query")
    documents = trec_ids((hit.id for _, results in found for hit in results), "document")
    lines = (
        f"{queries[key]} Q0 {documents[hit.id]} {hit.rank} {hit.score:.9f} sonde-{tag}\n"
        for key, results in found
        for hit in results
    )
    write_output(path, lambda stream: stream.write("".join(lines).encode()))


def trec_ids(ids: Iterable[str], kind: str) -> dict[str, str]:
    """Return each id as TREC files, both runs and qrels, have it.

    Args:
        ids: The ids of one file.
        kind: What has them: "query" or "document".

    Raises:
        SondeError: Two ids would be written as one.
    """
    words = {id: one_word(id) for id in ids}
    owners: dict[str, str] = {}
    for id, word in words.items():
        if (other := owners.setdefault(word, id)) != id:
            said = f"the {kind} ids {other!r} and {id!r} would both be written as {word!r}"
            raise SondeError(f"{said}, because TREC files have no spaces in ids: rename one of them", code="conflict")
    return words


def one_word(id: str) -> str:
    """Return an id with `_` for its spaces, as TREC files have it."""
    return "_".join(id.split())
