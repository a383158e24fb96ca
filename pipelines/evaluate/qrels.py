"""Judgements of a test set: reading TREC qrels, and matching them with the queries and documents of a collection."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from ...indexer.errors import SondeError, as_text
from ...indexer.files import text_of
from ...indexer.progress import Notify, silent
from ...indexer.store.collection import StoredCollection
from ...indexer.store.documents import document_ids, ids_by_number, numbers_by_id
from ...indexer.wording import counted, listed
from ..search.trec import Query, one_word

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
                if (word := one_word(id)) != id and word in wanted:
                    written.setdefault(word, []).append(id)
            found |= {word: several[0] for word, several in written.items() if len(several) == 1}
    if missing := [id for id in named if id not in found]:
        said = f"{counted(len(missing), 'judged document')} not in the collection, which no search can find"
        notify(f"note: {said}: {listed(missing)}")
    return found
