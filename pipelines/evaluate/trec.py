"""Test sets as TREC and BEIR have them: queries, judgements (qrels), and runs for standard evaluation tools."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from ...indexer.errors import SondeError, as_text
from ...indexer.files import text_of, write_output
from ...indexer.progress import Notify, silent
from ...indexer.store.collection import StoredCollection
from ...indexer.store.documents import document_ids, ids_by_number, numbers_by_id
from ...indexer.wording import counted, listed
from ..search.results import Results
from ..search.search import check_query, search_many
from ..search.settings import SearchSettings

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
    words = {id: _one_word(id) for id in ids}
    owners: dict[str, str] = {}
    for id, word in words.items():
        if (other := owners.setdefault(word, id)) != id:
            said = f"the {kind} ids {other!r} and {id!r} would both be written as {word!r}"
            raise SondeError(f"{said}, because TREC files have no spaces in ids: rename one of them", code="conflict")
    return words


def _one_word(id: str) -> str:
    """Return an id with `_` for its spaces, as TREC files have it."""
    return "_".join(id.split())


Qrels = dict[str, dict[str, int]]
"""Grades by query id and document id; 0 or below is not relevant."""

_GRADE = re.compile(r"(-?[0-9]{1,9})(?:\.0*)?")


def read_qrels(path: Path, notify: Notify = silent) -> Qrels:
    """Return the judgements in a TREC qrels file (`query 0 document grade`) or BEIR's TSV with a header.

    The first line is a header if its last cell has no digit. A grade is a whole number, which may be written as `1.0`.

    Args:
        path: The file, plain or gzipped.
        notify: Receives a note if lines contradict each other.

    Raises:
        SondeError: The file cannot be read, or a line is no judgement.
    """
    judged: Qrels = {}
    again: list[str] = []
    for number, line in enumerate(text_of(path, "the judgements").splitlines(), 1):
        cells = [cell.strip() for cell in (line.split("\t") if "\t" in line else line.split())]
        if not line.strip() or (number == 1 and not any(map(str.isdigit, cells[-1]))):
            continue
        grade = _GRADE.fullmatch(cells[-1])
        if len(cells) not in (3, 4) or not grade:
            said = "expected query, document and grade, a whole number"
            raise SondeError(f"line {number} of {path} is not a judgement: {said}")
        grades, document = judged.setdefault(cells[0], {}), cells[-2]
        if grades.get(document, int(grade[1])) != int(grade[1]):
            again.append(f"query {cells[0]}, document {document}")
        grades[document] = int(grade[1])
    if not judged:
        raise SondeError(f"{path} has no judgements")
    if again:
        few = f"{counted(len(again), 'line')} with another grade than an earlier line ({listed(again)})"
        notify(f"note: {path.name} has {few}: the last one counts")
    return judged


def with_text_ids(queries: Sequence[Query], qrels: Qrels) -> tuple[list[Query], Qrels]:
    """Return queries and judgements with ids that are text, whatever a caller in Python gives.

    Raises:
        UsageError: An id or a query cannot be a text.
    """
    asked = [(as_text(key, "query id"), as_text(text, "query")) for key, text in queries]
    truth = {as_text(key, "query id"): {as_text(id, "id"): grade for id, grade in qrels[key].items()} for key in qrels}
    return asked, truth


def relevant(grades: dict[str, int]) -> bool:
    """Return whether any document is relevant; without one, a query cannot tell a good ranking from a bad one."""
    return any(grade > 0 for grade in grades.values())


def note_unknown_queries(queries: Sequence[Query], qrels: Qrels, notify: Notify) -> None:
    """Tell of judgements whose query has no text: often the ids of the two files differ."""
    texts = {key for key, _ in queries}
    if strange := [key for key in qrels if key not in texts]:
        few = f"{counted(len(strange), 'judged query', 'judged queries')} without a text: {listed(strange)}"
        notify(f"note: left out {few}")


def own_ids(collection: StoredCollection, judged: Iterable[str], notify: Notify = silent) -> dict[str, str]:
    """Return the collection's id of every judged document that it has, and tell of the others.

    An id with spaces is also known by the word that TREC files have in its place.
    """
    named = dict.fromkeys(judged)
    with collection.view() as view:
        numbers = numbers_by_id(view.catalog, named)
        ids = ids_by_number(view.catalog, list(numbers.values()))
        found = {id: ids[number] for id, number in numbers.items()}
        if len(found) < len(named):
            wanted, written = named.keys() - found, dict[str, list[str]]()
            for _, id in document_ids(view.catalog):
                if (word := _one_word(id)) != id and word in wanted:
                    written.setdefault(word, []).append(id)
            found |= {word: several[0] for word, several in written.items() if len(several) == 1}
    if missing := [id for id in named if id not in found]:
        said = f"{counted(len(missing), 'judged document')} not in the collection, which no search can find"
        notify(f"note: {said}: {listed(missing)}")
    return found
