"""Examples of labels: texts, or stored documents, each with its label; and tables of them, or of true labels."""

import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...indexer.errors import SondeError, UsageError, arg, as_text
from ...indexer.readers.columns import ID as IDS
from ...indexer.readers.columns import ids_or, normalised_name, place_of_ids
from ...indexer.readers.formats import format_by_name
from ...indexer.readers.given import by_index, given_table
from ...indexer.readers.read import read_rows
from ...indexer.readers.values import id_text
from ...indexer.store.tabular import unquoted
from ...indexer.wording import on_one_line, shown_id
from .labels import check_count, indicated, indicators, labels_by_id

LABEL = ("label", "category", "class", "intent", "topic", "target")

COLUMNS = (*LABEL, "labels")

TEXT = ("text", "sentence", "question", "query", "content")
ID = ("id", "key", "document", "doc_id")
ID_AND_LABEL = (ID[0], LABEL[0])


@dataclass(frozen=True, slots=True)
class LabelledExample:
    """A text, or the id of a stored document, with its label."""

    label: str
    text: str | None = None
    id: str | None = None


def read_labelled(path: Path, own: str | None = None) -> list[LabelledExample]:
    """Read examples from a table with a column label and one of texts, or of ids; for `own`, see `place_of_ids`.

    Raises:
        UsageError: There are no such columns, too many labels, or two labels for one id.
        SondeError: The file cannot be read, a row has no label, or there is one label only.
    """
    rows = list(read_rows(path, lambda cells: True))
    names = [str(name) for name in rows.pop(0)[1]] if rows and not rows[0][0] else []
    return _labelled(str(path), names, rows, own)


def given_labelled(given: Any, own: str | None = None) -> Sequence[LabelledExample]:
    """Return the examples that a caller gives: as such, as a table, or as labels by the ids of stored documents.

    Args:
        given: Examples, a table or a list of mappings with the columns that `read_labelled` reads, or a mapping of ids
            to labels, which may be a pandas Series.
        own: See `place_of_ids`.

    Raises:
        UsageError: It is none of these, or a reason of `read_labelled`.
        SondeError: A row has no label, or there is one label only.
    """
    if isinstance(given, (list, tuple)) and all(isinstance(each, LabelledExample) for each in given):
        return given
    if isinstance(labels := by_index(given), Mapping):
        named = [[as_text(id, "id"), as_text(label, "label")] for id, label in labels.items()]
        return _labelled("examples", list(ID_AND_LABEL), [(f"item {n}", cells) for n, cells in enumerate(named, 1)])
    table = given_table(given, "examples")
    if table is None:
        said = (
            f"{arg('examples')} is {reprlib.repr(given)}: give a path, a table with the columns label, and text or id, "
        )
        said += "labels by id, such as {'doc-1': 'card'}, or a list of sonde.LabelledExample"
        raise UsageError(said, code="wrong-type", field="examples")
    return _labelled("examples", *table, own)


def _labelled(
    source: str, names: Sequence[str], rows: Sequence[tuple[str, Sequence[Any]]], own: str | None = None
) -> list[LabelledExample]:
    """Return the examples of a table; `source` is what messages call it."""
    names = [name.strip().lower() for name in names]
    label, text = (next((names.index(n) for n in known if n in names), None) for known in (LABEL, TEXT))
    key = place_of_ids(names, ID, own)
    if label is None or (text is None and key is None):
        header = ", ".join(names) or "a first row of data"
        raise UsageError(f"{source} must have the columns label, and text or {ids_or(own)}, not {header}")
    found = []
    for origin, cells in rows:
        name = str(cells[label] if cells[label] is not None else "").strip()
        words = str(cells[text] or "").strip() if text is not None else ""
        known = id_text(cells[key]) if key is not None else ""
        if not name or not (words or known):
            raise SondeError(f"{source}, {origin}: an example needs a label and a text or an id")
        found.append(LabelledExample(name, words or None, known or None))
    check_labels(found, f"{source}: ")
    found = [replace(example, id=None) if example.text else example for example in found]
    labels = len({example.label for example in found})
    check_count(labels)
    if labels < 2:
        only = f"{source} has examples of one label only, {found[0].label!r}" if found else f"{source} has no examples"
        raise SondeError(f"{only}: give some of each of two or more")
    return found


def check_labels(examples: Sequence[LabelledExample], where: str = "") -> None:
    """Check that no document has two labels: a run of examples gives each document one.

    Examples with an id and a text are compared by both, because the texts of one document may have labels of their own.

    Args:
        examples: The examples.
        where: What the message begins with, such as the name of a file.

    Raises:
        UsageError: An id has two labels; the message names them.
    """
    labels: dict[tuple[str, str | None], str] = {}
    for example in examples:
        if example.id is None:
            continue
        first = labels.setdefault((example.id, example.text), example.label)
        if first != example.label:
            both = f"{on_one_line(first)!r} and {on_one_line(example.label)!r}"
            said = f"{where}the example {shown_id(example.id)} has two labels, {both}: keep the right one"
            raise UsageError(said, code="conflict", field="examples", value=example.id)


def read_truth(
    path: Path, own: str | None = None, *, several: bool = False, known: Sequence[str] = ()
) -> dict[str, list[str]]:
    """Read the true labels of documents by id. Rows without a label are left out.

    A cell with a list gives several labels, and an empty list none. So do several rows, or a column of 0 and 1 for each
    label.

    Args:
        path: A CSV, TSV, JSONL, Parquet or XLSX table, as for `read_rows`.
        own: See `place_of_ids`.
        several: Whether a document may have several labels, in rows of their own.
        known: The labels that columns of 0 and 1 may be named after; any if empty.

    Raises:
        UsageError: There are no such columns, or two rows assign different labels to one document.
        SondeError: The file cannot be read, a row with a label has no id, or no row has a label.
    """
    rows = list(read_rows(path, lambda cells: True))
    names = [str(name) for name in rows.pop(0)[1]] if not rows[0][0] else []
    found = _truth(str(path), names, rows, own, known, quoted=format_by_name(path) in ("csv", "tsv"))
    return labels_by_id(found, path, several)


def given_truth(
    given: Any, field: str, own: str | None = None, *, several: bool = False, known: Sequence[str] = ()
) -> Any:
    """Return labels by id if a caller gives a table with the columns `id` and `label`, or a pandas Series.

    Args:
        given: What the caller gives; anything else is returned as it is.
        field: The name of the argument.
        own: See `place_of_ids`.
        several: See `read_truth`.
        known: See `read_truth`.

    Raises:
        UsageError: A table has no such columns, or two rows assign different labels to one document.
        SondeError: A row with a label has no id, or no row has a label.
    """
    given = by_index(given)
    table = None if isinstance(given, Mapping) else given_table(given, field)
    return given if table is None else labels_by_id(_truth(field, *table, own, known), field, several)


def _truth(
    source: str, names: Sequence[str], rows: Sequence[tuple[str, Sequence[Any]]], own: str | None,
    known: Sequence[str], quoted: bool = False,
) -> list[tuple[str, list[str]]]:  # fmt: skip
    """Return the ids and the labels of the rows of a table that have labels; `source` is what messages call it."""
    label = next((place for known in COLUMNS for place, n in enumerate(names) if normalised_name(n) == known), None)
    key = place_of_ids([normalised_name(name) for name in names], IDS, own and normalised_name(own))
    codes = indicators(names, [cells for _, cells in rows], key, known) if label is None and key is not None else {}
    if key is None or (label is None and not codes):
        said = (
            f"{source} must have the columns {ids_or(own)} and label, not {', '.join(names) or 'a first row of data'}"
        )
        raise UsageError(said, code="not-found", field="truth", alternatives=names)
    found = []
    for origin, cells in rows:
        id = id_text(cells[key])
        given = (indicated(cells, codes) or None) if label is None else _labels(cells[label])
        if given and not id:
            raise SondeError(f"{source}, {origin}: a label needs the id of a document")
        if given is not None and id:
            found.append((unquoted(id), [unquoted(each) for each in given]) if quoted else (id, given))
    if not any(given for _, given in found):
        column = "" if label is None else f" in the column {names[label]!r}"
        raise SondeError(f"no row of {source} has a label{column}")
    return found


def _labels(cell: Any) -> list[str] | None:
    """Return the labels of a cell; None for an empty one, which says nothing, and none for an empty list."""
    if isinstance(cell, (list, tuple)) and not cell:
        return []
    several = cell if isinstance(cell, (list, tuple)) else [cell]
    return [text for text in (id_text(each).strip() for each in several) if text] or None
