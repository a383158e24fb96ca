"""Taxonomies as two tables: one row for each group, and one row for each document."""

import csv
import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any

from ...indexer.errors import UsageError
from ...indexer.store.members import DEEPEST
from ...indexer.store.tabular import Formulas
from ...indexer.wording import on_one_line
from .groups import DIGITS, NO_GROUP, SEPARATOR, Group, Rule, check_name, path, totals, walk
from .portable import Portable, checked, finite
from .tables import Columns, Row, read_table

GROUPS = (
    "number", "name", "parent", "description", "locked", "proposed", "where", "examples", "near", "source", "path",
)  # fmt: skip
DOCUMENTS = ("id", "group", "path", "score", "locked")
"""The columns of the tables; of those that are read, only `name`, and `id` with `group`, have to be there."""
TOLD = "documents", "name"
"""Columns that are written for people and not read: documents in and below each group, and each document's group."""
YES, NO = "yes", ""


def groups_csv(found: Portable) -> str:
    """Return a table of groups; examples of a rule have spaces between them, and quotes around ids with spaces."""
    sizes = totals(found.groups, Counter(number for number, _ in found.documents.values()))
    rows = (_group_row(found.groups, group) | {TOLD[0]: sizes[group.number]} for group, _ in walk(found.groups))
    return _written((*GROUPS, TOLD[0]), rows)


def _group_row(groups: Mapping[int, Group], group: Group) -> dict[str, Any]:
    rule = group.rule or Rule()
    return {
        "number": group.number, "name": group.name, "parent": "" if group.parent is None else group.parent,
        "description": group.description, "locked": YES if group.locked else NO,
        "proposed": YES if group.proposed else NO, "where": rule.where or "", "examples": _joined(rule.examples),
        "near": rule.near if rule.examples else "", "source": group.source, "path": path(groups, group.number),
    }  # fmt: skip


def _joined(ids: Sequence[str]) -> str:
    stream = io.StringIO()
    csv.writer(stream, delimiter=" ", lineterminator="").writerow(ids)
    return stream.getvalue()


def _separate(cell: str) -> tuple[str, ...]:
    return tuple(id for id in next(csv.reader([cell], delimiter=" ")) if id)


def documents_csv(found: Portable) -> str:
    """Return a table of documents; an empty group stands for none."""
    rows = (
        {
            "id": id, "group": "" if number == NO_GROUP else number,
            "path": "" if number == NO_GROUP else path(found.groups, number),
            "score": "" if score is None else score, "locked": YES if id in found.locks else NO,
            TOLD[1]: "" if number == NO_GROUP else found.groups[number].name,
        }
        for id, (number, score) in found.documents.items()
    )  # fmt: skip
    return _written((*DOCUMENTS, TOLD[1]), rows)


def _written(columns: tuple[str, ...], rows: Iterator[dict[str, Any]]) -> str:
    stream, formulas = io.StringIO(), Formulas()
    writer = csv.DictWriter(stream, columns, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: formulas.cell(value) for name, value in row.items()})
    return stream.getvalue()


def from_csv(
    groups: str, documents: str | None = None, columns: Mapping[str, str] | None = None, own: str | None = None
) -> Portable:
    """Return a taxonomy from a table of groups and, if there is one, a table of documents.

    A parent is a number, a name or a path. Rows without numbers get those after the largest, in their order.

    Args:
        groups: The table of groups.
        documents: The table of documents, or None.
        columns: Columns of the tables by the names in `GROUPS` and `DOCUMENTS`, where theirs are different.
        own: The column that the ids of the collection come from; a table may have it for `id`.

    Raises:
        SondeError: The tree is not valid, or a document is in a group that does not exist.
        UsageError: A column is missing.
    """
    chosen = Columns(columns, own, (*GROUPS, *DOCUMENTS))
    rows = read_table(groups, GROUPS, ("name",), "groups", chosen)
    members = [] if documents is None else read_table(documents, DOCUMENTS, ("id", "group"), "documents", chosen)
    chosen.check_used()
    numbers = _numbers(rows)
    found = {number: _group(row, number) for number, row in zip(numbers, rows, strict=True)}
    named = _Named(found, {number: _own_path(row) for number, row in zip(numbers, rows, strict=True)})
    tree = {
        number: _under(found[number], named.number(row.get("parent", ""), row))
        for number, row in zip(numbers, rows, strict=True)
    }
    placed, locks = _documents(members, _Named(tree, {}))
    return checked(Portable(tree, (), placed, locks))


def _numbers(rows: list[Row]) -> list[int]:
    """Return the number of the group of each row; rows without one get those after the largest."""
    given = [row.whole("number") for row in rows]
    holders: dict[int, Row] = {}
    for number, row in zip(given, rows, strict=True):
        if number is not None and holders.setdefault(number, row) is not row:
            raise row.wrong(f"has the number {number}, as {holders[number].place.partition(' of ')[0]} has")
    free = count(max(holders, default=-1) + 1)
    return [next(free) if number is None else number for number in given]


def _group(row: Row, number: int) -> Group:
    rule, near = None, row.real("near")
    if row.get("where") or row.get("examples"):
        rule = Rule(row.get("where") or None, _separate(row.get("examples", "")), 0.7 if near is None else near)
    try:
        name = check_name(row["name"])
    except UsageError as error:
        error.prefix(row.place)
        raise
    return Group(
        number, name, row.get("description", ""), None, row.truth("locked"), row.truth("proposed"),
        rule, row.get("source", ""),
    )  # fmt: skip


def _own_path(row: Mapping[str, str]) -> str:
    """Return the path of a row's group, as far as the row tells it."""
    above = row.get("parent", "")
    return row.get("path") or (f"{above}{SEPARATOR}{row['name']}" if above and not above.isdecimal() else row["name"])


def _under(group: Group, parent: int | None) -> Group:
    return Group.from_dict(group.to_dict() | {"parent": parent})


class _Named:
    """Finds groups by number, name or path."""

    def __init__(self, groups: Mapping[int, Group], paths: Mapping[int, str]) -> None:
        self.groups = groups
        self.by_name: dict[str, list[int]] = {}
        for number, group in groups.items():
            for name in {group.name, paths.get(number) or _path(groups, number)}:
                self.by_name.setdefault(name, []).append(number)

    def number(self, cell: str, row: Row) -> int | None:
        """Return the number of the group that a cell of a row names; None for an empty cell.

        Raises:
            SondeError: There is no such group, or several have this name.
        """
        if not cell:
            return None
        if cell.isdecimal() and len(cell) <= DIGITS and int(cell) in self.groups:
            return int(cell)
        found = self.by_name.get(cell, [])
        if len(found) != 1:
            many = f"is the name of the groups {', '.join(map(str, found[:5]))}: give a number or a path"
            said = many if found else "does not exist: give the number, name or path of a group"
            raise row.wrong(f"names the group {on_one_line(cell)!r}, which {said}")
        return found[0]


def _path(groups: Mapping[int, Group], number: int) -> str:
    seen, names = set(), []
    above: int | None = number
    while above is not None and above in groups and above not in seen and len(seen) < DEEPEST:
        seen.add(above)
        names.append(groups[above].name)
        above = groups[above].parent
    return SEPARATOR.join(reversed(names))


def _documents(rows: list[Row], named: _Named) -> tuple[dict[str, tuple[int, float | None]], dict[str, int]]:
    placed: dict[str, tuple[int, float | None]] = {}
    locks = {}
    for row in rows:
        number, id = named.number(row["group"], row), row["id"]
        place = NO_GROUP if number is None else number
        if id in placed:
            raise row.wrong(f"has the document {on_one_line(id)!r} again: list each once")
        placed[id] = place, finite(row.real("score"), "score")
        if row.truth("locked"):
            locks[id] = place
    return placed, locks
