"""Tables of true labels: an id and a label in each row."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...indexer.errors import SondeError, UsageError
from ...indexer.readers.columns import ID, ids_or, normalised_name, place_of_ids
from ...indexer.readers.formats import format_by_name
from ...indexer.readers.given import by_index, given_table
from ...indexer.readers.read import read_rows
from ...indexer.readers.values import id_text
from ...indexer.store.spreadsheets import unquoted
from .corrections import labels_by_id
from .examples import LABEL

COLUMNS = (*LABEL, "labels")


def read_truth(path: Path, own: str | None = None) -> dict[str, list[str]]:
    """Read the true labels of documents by id; a cell with a list gives several. Rows without a label are left out.

    Args:
        path: A CSV, TSV, JSONL, Parquet or XLSX table, as for `read_rows`.
        own: See `place_of_ids`.

    Raises:
        UsageError: There are no such columns, or two rows assign different labels to one document.
        SondeError: The file cannot be read, a row with a label has no id, or no row has a label.
    """
    rows = list(read_rows(path, lambda cells: True))
    names = [str(name) for name in rows.pop(0)[1]] if not rows[0][0] else []
    return _truth(str(path), names, rows, own, quoted=format_by_name(path) in ("csv", "tsv"))


def given_truth(given: Any, field: str, own: str | None = None) -> Any:
    """Return labels by id if a caller gives a table with the columns `id` and `label`, or a pandas Series.

    Args:
        given: What the caller gives; anything else is returned as it is.
        field: The name of the argument.
        own: See `place_of_ids`.

    Raises:
        UsageError: A table has no such columns, or two rows assign different labels to one document.
        SondeError: A row with a label has no id, or no row has a label.
    """
    given = by_index(given)
    table = None if isinstance(given, Mapping) else given_table(given, field)
    return given if table is None else _truth(field, *table, own)


def _truth(
    source: str, names: Sequence[str], rows: Sequence[tuple[str, Sequence[Any]]], own: str | None, quoted: bool = False
) -> dict[str, list[str]]:
    """Return the labels of a table by id; `source` is what messages call it."""
    label = next((place for known in COLUMNS for place, n in enumerate(names) if normalised_name(n) == known), None)
    key = place_of_ids([normalised_name(name) for name in names], ID, own and normalised_name(own))
    if label is None or key is None:
        said = (
            f"{source} must have the columns {ids_or(own)} and label, not {', '.join(names) or 'a first row of data'}"
        )
        raise UsageError(said, code="not-found", field="truth", alternatives=names)
    found = []
    for origin, cells in rows:
        id, given = id_text(cells[key]), _labels(cells[label])
        if given and not id:
            raise SondeError(f"{source}, {origin}: a label needs the id of a document")
        found.append((unquoted(id), [unquoted(each) for each in given]) if quoted else (id, given))
    true = {id: given for id, given in labels_by_id(found, source).items() if given}
    if not true:
        raise SondeError(f"no row of {source} has a label in the column {names[label]!r}")
    return true


def _labels(cell: Any) -> list[str]:
    several = cell if isinstance(cell, list) else [cell]
    return [text for text in (id_text(each).strip() for each in several) if text]
