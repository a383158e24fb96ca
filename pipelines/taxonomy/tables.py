"""Tables as spreadsheets write them: which column is which, and what their cells say."""

import csv
import io
import re
import reprlib
from collections.abc import Iterable, Mapping, Sequence

from ...indexer.errors import SondeError, UsageError, give_column
from ...indexer.readers import cell_parsers
from ...indexer.readers.columns import ids_or, place_of_ids
from ...indexer.store.tabular import unquoted
from ...indexer.wording import existing, on_one_line

LONGEST_CELL = 2**24
"""Characters of a cell: a rule may name many examples."""
YES, NO = cell_parsers.YES | {"x", "1"}, cell_parsers.NO | {"0"}
"""What a cell may say, in small letters: spreadsheets write TRUE and FALSE in the language of the person."""
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+(e[+-]?\d+)?", re.IGNORECASE)


class Row(dict[str, str]):
    """Cells by column, and where they are: rows are counted as spreadsheets do."""

    def __init__(self, cells: Mapping[str, str], number: int, table: str) -> None:
        super().__init__(cells)
        self.place = f"row {number} of the table of {table}"

    def wrong(self, said: str) -> SondeError:
        """Return the error for a row that cannot be read."""
        return SondeError(f"{self.place} {said}", code="bad-file")

    def whole(self, name: str) -> int | None:
        """Return the whole number in a cell, or None if it is empty.

        Raises:
            SondeError: It is not a whole number.
        """
        try:
            return int(self[name]) if self.get(name) else None
        except ValueError:
            raise self._odd(name, "a whole number") from None

    def real(self, name: str) -> float | None:
        """Return the number in a cell, which may have a decimal comma, or None if it is empty.

        Raises:
            SondeError: It is not a number.
        """
        cell = self.get(name, "")
        try:
            return float(cell.replace(",", ".") if _DECIMAL_COMMA.fullmatch(cell) else cell) if cell else None
        except ValueError:
            raise self._odd(name, "a number") from None

    def truth(self, name: str) -> bool:
        """Return whether a cell says yes; an empty one says no.

        Raises:
            SondeError: It says neither yes nor no.
        """
        cell = self.get(name, "").lower()
        if cell and cell not in YES | NO:
            raise self._odd(name, "yes or no")
        return cell in YES

    def _odd(self, name: str, what: str) -> SondeError:
        return self.wrong(f"has the {name} {on_one_line(self[name])!r}: give {what}")


class Columns:
    """Which columns of tables are which: those that a person named, and others by their names.

    Attributes:
        given: Columns of tables by the names of Sonde.
        own: The column that the ids of the collection come from; it may stand for `id`.
    """

    def __init__(self, given: Mapping[str, str] | None, own: str | None, known: Iterable[str]) -> None:
        """Take what a person named.

        Args:
            given: Columns by the names of Sonde.
            own: The column that the ids of the collection come from, or None.
            known: The names that there are.

        Raises:
            UsageError: It is not a mapping of names to columns, or a name does not exist.
        """
        self.given, self.own = given or {}, own
        self.used, self.there = set[str](), dict[str, None]()
        texts = isinstance(self.given, Mapping) and all(isinstance(one, str) for one in self.given.values())
        if not texts:
            said = f"columns is {reprlib.repr(given)}: give a mapping such as {{'name': 'Title'}}"
            raise UsageError(said, code="wrong-type", field="columns", value=given)
        names = list(dict.fromkeys(known))
        if odd := next((name for name in self.given if name not in names), None):
            said = f"{on_one_line(str(odd))!r} is not a column that a taxonomy has: use {', '.join(names)}"
            raise UsageError(said, code="unknown", field="columns", value=odd, alternatives=names)

    def places(self, header: Sequence[str], names: Sequence[str]) -> dict[str, int]:
        """Return the places of the columns that a header has: those that were named, else those of the same name.

        Upper and lower case are the same, and spaces at the ends do not count.
        """
        plain = [_plain(cell) for cell in header]
        found = {}
        for name in names:
            chosen = _place(header, plain, self.given[name]) if name in self.given else None
            self.used |= set() if chosen is None else {name}
            if chosen is None and name == "id":
                chosen = place_of_ids(header, ("id",), self.own)
            place = _place(header, plain, name) if chosen is None else chosen
            found |= {} if place is None else {name: place}
        return found

    def check_used(self) -> None:
        """Check that each column that was named is in a table.

        Raises:
            UsageError: One is not.
        """
        if left := [name for name in self.given if name not in self.used]:
            said = f"no table has the column {on_one_line(self.given[left[0]])!r}, given as the {left[0]}: "
            said += existing(self.there)
            raise UsageError(said, code="not-found", field="columns", value=self.given[left[0]])


def _place(header: Sequence[str], plain: Sequence[str], name: str) -> int | None:
    if name in header:
        return header.index(name)
    return plain.index(_plain(name)) if _plain(name) in plain else None


def _plain(name: str) -> str:
    return name.strip().casefold()


def read_table(text: str, names: Sequence[str], needed: Sequence[str], what: str, columns: Columns) -> list[Row]:
    """Return the rows of a table in CSV, without those that are blank.

    Args:
        text: The table.
        names: The columns that are read.
        needed: Those that have to be there.
        what: What it holds, for messages.
        columns: Which columns are which.

    Raises:
        SondeError: It is not valid CSV.
        UsageError: A column is missing.
    """
    csv.field_size_limit(max(LONGEST_CELL, csv.field_size_limit()))  # only raised: other threads read with it too
    try:
        plain = text.removeprefix("\ufeff")
        reader = csv.reader(io.StringIO(plain, newline=""), delimiter=_delimiter(plain, needed, columns))
        rows = [(number, cells) for number, cells in enumerate(reader, 1) if any(map(str.strip, cells))]
    except csv.Error as error:
        raise SondeError(f"the table of {what} is not valid CSV: {error}", code="bad-file") from None
    header = rows[0][1] if rows else []
    places = columns.places(header, names)
    _check_header(header, places, needed, what, columns)
    columns.there |= dict.fromkeys(cell.strip() for cell in header if cell.strip())
    return [
        Row({name: _cell(cells[place]) if place < len(cells) else "" for name, place in places.items()}, number, what)
        for number, cells in rows[1:]
    ]


def _check_header(
    header: Sequence[str], places: Mapping[str, int], needed: Sequence[str], what: str, columns: Columns
) -> None:
    if not (missing := [name for name in needed if name not in places]):
        return
    name, there = missing[0], existing([cell.strip() for cell in header if cell.strip()])
    if name in columns.given:
        said = f"the table of {what} has no column {on_one_line(columns.given[name])!r}: {there}"
        raise UsageError(said, code="not-found", field="columns", value=columns.given[name])
    wanted = ids_or(columns.own) if name == "id" and columns.own else repr(name)
    said = f"the table of {what} has no column {wanted}: {there}"
    said += f"; if one of them is the {name}, use {give_column(name)}" if header else ""
    raise UsageError(said, code="bad-file", value=name)


def _cell(cell: str) -> str:
    return unquoted(cell).strip()


def _delimiter(text: str, needed: Sequence[str], columns: Columns) -> str:
    """Return what separates cells: spreadsheets in many countries write semicolons."""
    header = next((line for line in io.StringIO(text) if line.strip(' ",;\t')), "")
    cells = {sign: next(csv.reader([header], delimiter=sign), []) for sign in ";\t,"}
    complete = [sign for sign in cells if len(columns.places(cells[sign], needed)) == len(needed)]
    return complete[0] if complete else max(reversed(cells), key=lambda sign: len(cells[sign]))
