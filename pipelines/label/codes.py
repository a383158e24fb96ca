"""Several labels of one text in a table, as people write them.

One cell may hold them ("late; broken", "late, broken" or a list in JSON), several rows, or a column of 0 and 1 for each
label.
"""

import json
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...indexer.errors import UsageError, arg, did_you_mean
from ...indexer.readers.values import id_text
from .labels import NONE_NAME

SIGNS = (";", "|", "\n", ",")
"""Between labels; a comma comes last, because a label may hold one."""


YES, NO = ("1", "true", "x"), ("0", "false", "")
"""Cells of a column for one label; "1.0" of a spreadsheet is "1"."""


def plain(name: str) -> str:
    """Return a name as names are compared: without regard to case and spaces."""
    return " ".join(name.split()).casefold()


def codes_of(cells: Sequence[str], known: Iterable[str]) -> list[str]:
    """Return the labels that cells name, each once.

    A cell is divided only if it is no label as a whole and at least one of its parts is: then the others are slips.

    Args:
        cells: The texts of the cells of one document.
        known: The labels of the run, as `plain` returns them.
    """
    labels = {plain(NONE_NAME), *known}
    found: dict[str, str] = {}
    for name in (name for cell in cells for name in _named(cell.strip(), labels)):
        found.setdefault(plain(name), name)
    return list(found.values())


def _named(cell: str, known: Container[str]) -> list[str]:
    if plain(cell) in known:
        return [cell]
    parts = _listed(cell) or _divided(cell, known)
    return parts if parts == [cell] else [name for part in parts for name in _named(part, known)]


def _listed(cell: str) -> list[str]:
    """Return the texts of a list in JSON; nothing for other cells."""
    if not (cell.startswith("[") and cell.endswith("]")):
        return []
    try:
        given = json.loads(cell)
    except (ValueError, RecursionError):
        return []
    if not all(isinstance(each, str) and each.strip() for each in given):
        return []
    return given or [NONE_NAME]


def _divided(cell: str, known: Container[str]) -> list[str]:
    """Return the parts of a cell if one of them is a label, else the cell."""
    for sign in SIGNS:
        parts = [part for each in cell.split(sign) if (part := each.strip())]
        if len(parts) > 1 and any(_has_label(part, known) for part in parts):
            return parts
    return [cell]


def _has_label(cell: str, known: Container[str]) -> bool:
    return any(plain(part) in known for sign in SIGNS for part in (cell, *cell.split(sign)))


def indicators(
    names: Sequence[str], rows: Sequence[Sequence[Any]], key: int, known: Sequence[str] = ()
) -> dict[int, str]:
    """Return the columns of a table that hold 0 and 1 for one label each: its name by their place.

    Args:
        names: The columns.
        rows: The cells of each row.
        key: The place of the ids.
        known: The labels of the run; any column of 0 and 1 is a label if there are none.

    Raises:
        UsageError: Such a column is named nearly like a label that has none.
    """
    labels = {plain(name): name for name in (*known, NONE_NAME)}
    signs = {place: {_sign(row[place]) for row in rows} for place in range(len(names)) if place != key}
    found = {place: names[place] for place, each in signs.items() if any(each) and each <= {*YES, *NO}}
    if not known:
        return found
    open_ = [name for key, name in labels.items() if key not in map(plain, found.values())]
    for name in found.values():
        if plain(name) not in labels and (meant := did_you_mean(name, open_)):
            raise UsageError(f"there is no label {name!r}{meant}: rename this column", code="not-found", value=name)
    return {place: labels[plain(name)] for place, name in found.items() if plain(name) in labels}


def indicated(cells: Sequence[Any], columns: Mapping[int, str]) -> list[str]:
    """Return the labels of a row with columns of 0 and 1; nothing if all cells are empty: nobody has coded it."""
    signs = {name: _sign(cells[place]) for place, name in columns.items()}
    given = [name for name, sign in signs.items() if sign in YES]
    return given or ([NONE_NAME] if any(signs.values()) else [])


def _sign(cell: Any) -> str:
    return id_text(cell).strip().lower()


def labels_by_id(
    rows: Sequence[tuple[str, list[str]]], source: Path | str, several: bool = False
) -> dict[str, list[str]]:
    """Return the labels of each document; if it may have several, those of all its rows.

    Raises:
        UsageError: Two rows assign different labels to one document, which may have only one.
    """
    found: dict[str, tuple[int, list[str]]] = {}
    for number, (id, names) in enumerate(rows, 1):
        first, known = found.setdefault(id, (number, names))
        if several:
            found[id] = first, list(dict.fromkeys([*known, *names]))
        elif known != names:
            both = f"{', '.join(known)} and {', '.join(names)}"
            raise UsageError(
                f"rows {first} and {number} of {source} give {id!r} different labels, {both}: keep one row for each "
                f"document; several labels need a run made with {arg('multi_label')}"
            )
    return {id: names for id, (_, names) in found.items()}
