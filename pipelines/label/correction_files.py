"""Tables of corrections, as people code texts by hand: CSV, JSONL and XLSX."""

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...indexer.errors import SondeError, UsageError
from ...indexer.files import check_target, text_of, write_output
from ...indexer.progress import Notify, silent
from ...indexer.readers.columns import ids_or, place_of_ids
from ...indexer.readers.read import read_rows
from ...indexer.readers.values import id_text
from ...indexer.store.collection import StoredCollection
from ...indexer.store.documents import texts_by_id
from ...indexer.store.export import write_table
from ...indexer.store.tabular import MOST_CHARS, Formulas, unquoted
from ...indexer.wording import counted, listed, on_one_line
from .corrections import ADVICE, Correction
from .labels import NONE_NAME, indicated, indicators, labels_by_id
from .review import Unsure

READ = (".csv", ".xlsx", ".jsonl")
WRITTEN = (".csv", ".jsonl")
SHEETS = (".csv", ".xlsx")
NAMES = ("label", "labels")
ASSIGNED = "label:"
"""How the column of a sheet begins that has the labels of the run, beside an empty one to code by hand."""
Row = tuple[str, list[str]]


def read_corrections(
    path: Path, own: str | None = None, *, several: bool = False, known: Sequence[str] = (), progress: Notify = silent
) -> dict[str, list[str]]:
    """Read a file of corrections: `id`, and `label` or (JSONL) `labels`; or a column of 0 and 1 for each label.

    In a workbook, and in a sheet to code by hand, rows without a label are left out: nobody has coded them yet.

    Args:
        path: The file: CSV, JSONL or XLSX.
        own: A name that the column of ids may have too: the column that the ids of the collection come from.
        several: Whether a document may have several labels, in rows of their own.
        known: The labels that columns of 0 and 1 may be named after; any if empty.
        progress: Receives a note on rows without a label.

    Raises:
        UsageError: The suffix is not valid, a column is missing, a label is empty, or two rows of a document differ.
        SondeError: The file cannot be read.
    """
    suffix = path.suffix.lower()
    if suffix not in READ:
        raise UsageError(f"cannot read corrections from {str(path)!r}: the name must end in .csv, .xlsx or .jsonl")
    try:
        if suffix == ".jsonl":
            lines = text_of(path, "the corrections").splitlines()
            rows = [_row(json.loads(line), number, path, own) for number, line in
                    enumerate((line for line in lines if line.strip()), 1)]  # fmt: skip
        else:
            rows = _coded(path, *_table(path), own, known, progress)
        return labels_by_id(rows, path, several)
    except (ValueError, csv.Error, RecursionError) as error:
        raise SondeError(f"cannot read {path}: {error}") from None


def note_changed_texts(collection: StoredCollection, path: Path, own: str | None, progress: Notify) -> None:
    """Name the coded documents of a sheet whose text in the collection is no longer the sheet's, if there are any.

    Only what `write_sheet` wrote has the texts as they were; a table of other columns gives no note.

    Args:
        collection: The collection.
        path: A file that `read_corrections` could read.
        own: As there.
        progress: Receives the note.
    """
    names, rows = _table(path) if path.suffix.lower() in SHEETS else ([], [])
    plain = [name.strip().lower() for name in names]
    key = place_of_ids(names, ("id",), own)
    if key is None or not {"text", "label"} <= {*plain} or not any(name.startswith(ASSIGNED) for name in plain):
        return
    text, label = plain.index("text"), plain.index("label")
    coded = {unquoted(id_text(cells[key])): str(cells[text] or "") for cells in rows if _labels(cells[label])}
    with collection.view() as view:
        now = texts_by_id(view.catalog, coded)
    if found := [id for id, before in coded.items() if id in now and not _is_text(before, now[id].text)]:
        have = "has" if len(found) == 1 else "have"
        changed = f"{counted(len(found), 'text')} of {path.name} {have} changed since the sheet was written"
        progress(f"{changed}, and the corrections were made for what it shows: {listed(found)}")


def _is_text(cell: str, text: str) -> bool:
    """Whether a cell, which Excel cuts and in which line ends and control characters change, has this text."""
    seen, full = ("".join(filter(str.isalnum, each)) for each in (cell, text))
    return full.startswith(seen) if len(cell) > MOST_CHARS // 2 else full == seen


def _table(path: Path) -> tuple[list[str], list[list[Any]]]:
    return _csv(path) if path.suffix.lower() == ".csv" else _workbook(path)


def _csv(path: Path) -> tuple[list[str], list[list[Any]]]:
    text = text_of(path, "the corrections")
    rows = [row for row in csv.reader(text.splitlines(), delimiter=_delimiter(text)) if row]
    names = rows[0] if rows else []
    return names, [[*row, *[None] * (len(names) - len(row))] for row in rows[1:]]


def _workbook(path: Path) -> tuple[list[str], list[list[Any]]]:
    rows = list(read_rows(path, lambda cells: True))
    return [str(name) for name in rows[0][1]], [cells for _, cells in rows[1:]]


def _coded(
    path: Path, names: list[str], rows: Sequence[Sequence[Any]], own: str | None, known: Sequence[str], progress: Notify
) -> list[Row]:
    """Return the rows of a table that have labels."""
    key = place_of_ids(names, ("id",), own)
    plain = [name.strip().lower() for name in names]
    label = next((plain.index(name) for name in NAMES if name in plain), None)
    codes = indicators(names, rows, key, known) if label is None and key is not None else {}
    if key is None or (label is None and not codes):
        header = ", ".join(map(on_one_line, names)) or "an empty file"
        raise UsageError(f"{path} must have the columns {ids_or(own)} and label, not {header}")
    sheet = label is None or path.suffix.lower() == ".xlsx" or any(name.startswith(ASSIGNED) for name in plain)
    found: list[Row] = []
    empty = 0
    for number, cells in enumerate(rows, 1):
        id = id_text(cells[key])
        given = indicated(cells, codes) if label is None else _labels(cells[label])
        if not id and (given or not sheet):
            raise UsageError(f"row {number} of {path} needs {ids_or(own)} and label")
        if not given and not sheet:
            raise _empty(number, path, id)
        if given:
            found.append((unquoted(id), [unquoted(name) for name in given]))
        empty += not given
    if not found:
        raise UsageError(f"no row of {path} has a label: write one beside each text that you coded")
    if empty:
        progress(f"{counted(empty, 'row')} without a label left out")
    return found


def _labels(cell: Any) -> list[str]:
    return [text] if (text := id_text(cell).strip()) else []


def _empty(number: int, path: Path, id: object) -> UsageError:
    return UsageError(f"row {number} of {path} gives {str(id)!r} an empty label: {ADVICE}")


def _row(row: Any, number: int, path: Path, own: str | None) -> Row:
    """Return the id and the labels of a line of JSON."""
    names = [*row] if isinstance(row, dict) else []
    place = place_of_ids([str(name) for name in names], ("id",), own)
    id = None if place is None else row[names[place]]
    if id is None or not {*NAMES} & {*names}:
        raise UsageError(f"row {number} of {path} needs {ids_or(own)} and label")
    listed = row.get("labels")
    label = row.get("label")
    labels = listed if isinstance(listed, list) and listed else label if isinstance(label, list) and label else [label]
    given = ["" if label is None else str(label).strip() for label in labels]
    if not all(given):
        raise _empty(number, path, id)
    return str(id), given


def write_corrections(found: Sequence[Correction], path: Path, progress: Notify = silent) -> None:
    """Write corrections to a CSV or JSONL file that `read_corrections` can read; several labels need JSONL.

    A CSV cell that a spreadsheet would run as a formula gets an apostrophe in front, and `progress` a sentence.

    Raises:
        UsageError: The suffix is not valid, `path` is a folder, or a document has several labels and the file is CSV.
        SondeError: The folder does not exist.
    """
    check_target(path, WRITTEN, "write corrections to")
    formulas = Formulas()
    if path.suffix.lower() == ".jsonl":
        text = "".join(json.dumps(each.to_dict(), ensure_ascii=False) + "\n" for each in found)
    else:
        if several := next((each for each in found if len(each.labels) > 1), None):
            raise UsageError(f"document {several.id!r} has several labels, which CSV cannot hold: write .jsonl")
        stream = io.StringIO()
        writer = csv.writer(stream)
        rows = [("id", "label"), *((each.id, each.to_dict()["label"]) for each in found)]
        writer.writerows([formulas.cell(cell) for cell in row] for row in rows)
        text = stream.getvalue()
    write_output(path, lambda stream: stream.write(text.encode()))
    if formulas.quoted:
        progress(formulas.note(".jsonl"))


def _delimiter(text: str) -> str:
    """Return the sign between the columns, which the first line shows: a comma, a semicolon or a tab."""
    header = text.partition("\n")[0]
    return max((",", ";", "\t"), key=header.count)


def check_sheet(path: Path) -> None:
    """Check where a sheet is to go.

    Raises:
        UsageError: The suffix is not valid, or the file exists: it may hold codes.
        SondeError: The folder does not exist.
    """
    check_target(path, SHEETS, "write a sheet to")
    if path.exists():
        said = f"{path} exists and may hold codes: write to another file, or delete this one"
        raise UsageError(said, code="conflict", field="to", value=str(path))


def write_sheet(found: Sequence[Unsure], path: Path, progress: Notify = silent) -> None:
    """Write documents to a .csv or .xlsx file with an empty column `label`, to code them by hand.

    `read_corrections` reads the file back, without the rows that are still empty.

    Args:
        found: The documents, with their labels in a run.
        path: The file.
        progress: Receives a note if cells were changed, or cut.

    Raises:
        UsageError: The suffix is not valid, the file exists, or there is no document.
        SondeError: The file cannot be written.
    """
    check_sheet(path)
    if not found:
        raise UsageError("there is no document to code: all have corrections", code="empty", field="k")
    titled = any(each.title for each in found)
    assigned = f"{ASSIGNED}{found[0].run}"
    rows = [
        {"id": each.id, **({"title": each.title} if titled else {}), "text": each.text,
         assigned: "; ".join(each.labels) or NONE_NAME, "label": None}
        for each in found
    ]  # fmt: skip
    write_table(rows, path, "texts", {"text": 80, "title": 40, assigned: 30, "label": 30}, progress=progress)
