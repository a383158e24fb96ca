"""Tables of true labels: an id and a label in each row."""

from pathlib import Path
from typing import Any

from ...indexer.errors import SondeError, UsageError
from ...indexer.readers.columns import id_rank, normalised_name
from ...indexer.readers.formats import format_by_name
from ...indexer.readers.read import read_rows
from ...indexer.readers.values import id_text
from ...indexer.store.formulas import unquoted
from .corrections import labels_by_id
from .examples import LABEL

COLUMNS = (*LABEL, "labels")


def read_truth(path: Path) -> dict[str, list[str]]:
    """Read the true labels of documents by id; a cell with a list gives several. Rows without a label are left out.

    Args:
        path: A CSV, TSV, JSONL, Parquet or XLSX table, as for `read_rows`.

    Raises:
        UsageError: There are no such columns, or two rows assign different labels to one document.
        SondeError: The file cannot be read, a row with a label has no id, or no row has a label.
    """
    rows = list(read_rows(path, lambda cells: True))
    names = [str(name) for name in rows.pop(0)[1]] if not rows[0][0] else []
    label = next((place for known in COLUMNS for place, n in enumerate(names) if normalised_name(n) == known), None)
    ranks = [(rank, place) for place, name in enumerate(names) if (rank := id_rank(name)) is not None]
    if label is None or not ranks:
        said = f"{path} must have the columns id and label, not {', '.join(names) or 'a first row of data'}"
        raise UsageError(said, code="not-found", field="truth", alternatives=names)
    quoted = format_by_name(path) in ("csv", "tsv")
    found = []
    for origin, cells in rows:
        id, given = id_text(cells[min(ranks)[1]]), _labels(cells[label])
        if given and not id:
            raise SondeError(f"{path}, {origin}: a label needs the id of a document")
        found.append((unquoted(id), [unquoted(each) for each in given]) if quoted else (id, given))
    true = {id: given for id, given in labels_by_id(found, path).items() if given}
    if not true:
        raise SondeError(f"no row of {path} has a label in the column {names[label]!r}")
    return true


def _labels(cell: Any) -> list[str]:
    several = cell if isinstance(cell, list) else [cell]
    return [text for text in (id_text(each).strip() for each in several) if text]
