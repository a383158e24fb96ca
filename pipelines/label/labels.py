"""Labels: names with descriptions, sentences that an NLI model judges, and labels as people write them in tables."""

import csv
import json
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from ...indexer.errors import UsageError, arg, as_text, as_texts, did_you_mean
from ...indexer.files import text_of
from ...indexer.readers.values import id_text
from ...indexer.store.kinds import NO_LABEL

NONE = -1
"""The number of "none of these"."""
NONE_NAME = NO_LABEL
MOST_LABELS = 2_000
"""Labels of one run. Each is embedded in eight wordings, half a minute for 2,000 of them, and the labels adapt to up to
50,000 texts in arrays of a number for each text and label: 800 MB with 2,000 labels. With 200,000 labels and a hundred
texts, it was 6 GB and several minutes.
"""


@dataclass(frozen=True, slots=True)
class Label:
    """A label: its name and, if the name is not clear enough, a description."""

    name: str
    description: str = ""

    @property
    def wording(self) -> str:
        """The name with its description, in the form that models read: "refund: the customer wants money back"."""
        return f"{self.name}: {self.description}" if self.description else self.name

    @classmethod
    def parse(cls, text: str) -> "Label":
        """Read "name" or "name: description"."""
        name, _, description = text.strip().partition(": ")
        return cls(" ".join(name.split()), " ".join(description.split()))


Labels = Iterable[str | Label] | Mapping[str, str] | Label | str


def make_labels(given: Labels, *, several: bool | None = None) -> tuple[Label, ...]:
    """Return the user's labels.

    Args:
        given: Names, "name: description" texts or `Label`s; a mapping of names to descriptions; or one
            comma-separated text, in which a label with commas is in double quotes.
        several: Whether a text may get several labels; a single label is then a yes-or-no question. None if the caller
            cannot choose this.

    Raises:
        UsageError: There are no labels, only one label to choose from, too many, an empty label, or a duplicate label;
            or a comma may be part of a description.
    """
    if isinstance(given, str):
        labels = tuple(map(Label.parse, _separated(given))) if given.strip() else ()
        if '"' not in given:  # with quotes, every comma is meant
            _check_commas(labels)
    elif isinstance(given, Mapping):
        texts = ((as_text(name, "label"), as_text(text or "", "description")) for name, text in given.items())
        labels = tuple(Label(*(" ".join(text.split()) for text in pair)) for pair in texts)
    else:
        labels = _listed(given)
    if not labels:
        raise UsageError("no labels given: give some, such as refund,praise,delivery", code="empty", field="labels")
    check_count(len(labels))
    seen: dict[str, int] = {}
    for number, label in enumerate(labels, 1):
        if not label.name:
            raise UsageError(f"label {number} of {len(labels)} is empty: leave it out", code="empty", field="labels")
        if label.name.casefold() == NONE_NAME:
            said = f"{label.name!r} is what Sonde calls a text that no label fits: leave it out"
            said += "" if several is None else f", and use {arg('none')}"
            raise UsageError(said, code="reserved", field="labels", value=label.name)
        if (first := seen.setdefault(label.name.casefold(), number)) != number:
            said = f"label {number} {label.name!r} repeats label {first}: leave one out"
            raise UsageError(said, code="repeated", field="labels", value=label.name)
    if len(labels) == 1 and not several:
        name = labels[0].name
        other = "" if several is None else f", or {arg('multi_label')}"
        said = f"{name!r} is the only label, so every text would get it: give two or more{other}"
        raise UsageError(said, code="too-few", field="labels", value=name)
    return labels


def check_count(labels: int) -> None:
    """Check that there are not too many labels for one run.

    Raises:
        UsageError: There are too many.
    """
    if labels > MOST_LABELS:
        said = f"there are {labels:,} labels; the maximum is {MOST_LABELS:,}: give fewer and broader ones, and label "
        said += "the documents of each in a second run"
        raise UsageError(said, code="too-many", field="labels", value=labels)


def _separated(given: str) -> list[str]:
    """Return the parts of a comma-separated text; a part in double quotes may hold commas.

    Raises:
        UsageError: A quote is not closed.
    """
    try:
        [parts] = csv.reader([" ".join(given.split())], skipinitialspace=True, strict=True)
    except csv.Error:
        said = f"the labels {given!r} have a double quote that is not closed, or text right after one"
        raise UsageError(f'{said}: write labels with commas as "a, b",c', code="bad-quotes", field="labels") from None
    return parts


def _check_commas(labels: Sequence[Label]) -> None:
    """Check that a label without a description does not follow one with: its comma may be part of that description.

    Raises:
        UsageError: One does.
    """
    for before, label in pairwise(labels):
        if before.description and label.name and not label.description:
            said = f"the comma before {label.name!r} may be part of the description of {before.name!r}, or begin a "
            said += f'label: for a description with commas, write "{before.wording}, {label.name}" in double quotes; '
            said += f"for a label, put {label.name!r} before the labels with a description"
            raise UsageError(said, code="ambiguous", field="labels", value=label.name)


def _listed(given: object) -> tuple[Label, ...]:
    if isinstance(given, Label):
        return (given,)
    each = given if isinstance(given, Iterable) and not isinstance(given, bytes) else as_texts(given, "label")
    return tuple(label if isinstance(label, Label) else Label.parse(as_text(label, "label")) for label in each)


def read_labels(path: Path) -> list[str]:
    """Return the labels in a file: one per line, "name" or "name: description"; "#" starts a comment.

    Double quotes around a whole line are removed.

    Raises:
        SondeError: The file cannot be read, or contains no labels.
    """
    lines = text_of(path, "the labels").splitlines()
    found = [_unquoted(line.strip()) for line in lines if line.strip() and not line.lstrip().startswith("#")]
    if not found:
        raise UsageError(f"{path} has no labels: write one per line, such as `refund: the customer wants money back`")
    return found


def _unquoted(line: str) -> str:
    return line[1:-1] if len(line) > 1 and line[0] == line[-1] == '"' and '"' not in line[1:-1] else line


TEMPLATE = "This example is {}."
"""The template of transformers' zero-shot pipeline, which makes results comparable."""

BUNDLED_TEMPLATE = "This text is about {}."
"""A better template for the bundled model: accuracy on `bbc` is 0.853 with this one, 0.720 with the other."""


def check_template(template: str) -> str:
    """Check that a template has exactly one placeholder for the label, and return it.

    Raises:
        UsageError: The template has no placeholder, or several.
    """
    if template.count("{}") != 1:
        said = f"the template {template!r} must hold {{}} once, where the label goes: {TEMPLATE!r}"
        raise UsageError(said, code="bad-template", field="template", value=template, alternatives=(TEMPLATE,))
    return template


def hypotheses(labels: Sequence[Label], template: str = TEMPLATE) -> list[str]:
    """Return a hypothesis for each label; a description follows the name."""
    return [check_template(template).replace("{}", label.wording) for label in labels]


SIGNS = (";", "|", "\n", ",")
"""Between several labels in one cell; a comma comes last, because a label may hold one."""


YES, NO = ("1", "true", "x"), ("0", "false", "")
"""Cells of a column for one label; "1.0" of a spreadsheet is "1"."""


def plain(name: str) -> str:
    """Return a name as names are compared: without regard to case and spaces."""
    return " ".join(name.split()).casefold()


def codes_of(cells: Sequence[str], known: Iterable[str]) -> list[str]:
    """Return the labels that cells name, each once: "late; broken", "late, broken" or a list in JSON.

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
    parts = _in_json(cell) or _divided(cell, known)
    return parts if parts == [cell] else [name for part in parts for name in _named(part, known)]


def _in_json(cell: str) -> list[str]:
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
