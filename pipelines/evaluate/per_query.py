"""The measures of each query in each mode, as a file: which queries a mode answers badly."""

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path

from ...indexer.files import check_target, write_output
from ...indexer.progress import Notify, silent
from ...indexer.store.tabular import Formulas
from .search import SearchQuality

SUFFIXES = (".csv", ".jsonl")


def check_per_query(path: Path) -> None:
    """Check before the work that the measures of each query can be written to a file.

    Raises:
        UsageError: The suffix is not valid, or `path` is a folder.
        SondeError: The folder does not exist.
    """
    check_target(path, SUFFIXES, "write measures to")


def write_per_query(found: Sequence[SearchQuality], path: Path, notify: Notify = silent) -> None:
    """Write one row for each mode and query: the query's id and text, and its measures.

    A CSV cell that a spreadsheet would run as a formula gets an apostrophe in front, and `notify` a sentence.

    Raises:
        UsageError: The suffix is not valid, or `path` is a folder.
        SondeError: The folder does not exist, or the file cannot be written.
    """
    check_per_query(path)
    rows = [
        {"mode": quality.mode, "query": one.query, "text": one.text, **one.measures}
        for quality in found
        for one in quality.per_query
    ]
    formulas, stream = Formulas(), io.StringIO()
    if path.suffix.lower() == ".jsonl":
        stream.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    else:
        table = csv.DictWriter(stream, list(rows[0]))
        table.writeheader()
        table.writerows({name: formulas.cell(value) for name, value in row.items()} for row in rows)
    write_output(path, lambda file: file.write(stream.getvalue().encode()))
    if formulas.quoted:
        notify(formulas.note(".jsonl"))
