"""Results and documents as tables: DataFrames, tables in notebooks, and safe cells and workbooks for spreadsheets."""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from html import escape
from typing import IO, TYPE_CHECKING, Any

from ..errors import MissingExtraError, SondeError, unknown_option
from ..wording import counted
from .fields import EXACT_INTEGERS, json_value, stored_text

if TYPE_CHECKING:
    import pandas as pd
    from xlsxwriter.worksheet import Worksheet


_NULLABLE = {"integer": "Int64", "boolean": "boolean"}
"""Types of pandas for values that would become floats or objects beside missing ones."""
ROWS_SHOWN = 20
LISTED, CHARACTERS = 5, 120
"""Items of a list, and characters of a cell, that a notebook shows."""


class Tabular:
    """A result that has `rows()`: JSON values under the stable names of `--json`."""

    __slots__ = ()

    if TYPE_CHECKING:

        def rows(self) -> list[dict[str, Any]]:
            """Return one row for each group, finding or count, as JSON values."""
            ...

    def to_pandas(self) -> "pd.DataFrame":
        """Return the rows as a DataFrame.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        return frame_of(self.rows(), ())


class Shown(Tabular):
    """A result that notebooks show as a short table, and consoles as one line."""

    __slots__ = ()

    _row = "group"
    """What one row is about."""

    def __repr__(self) -> str:
        parts = [repr(name) for name in (getattr(self, "name", None),) if name]
        parts.append(counted(len(self.rows()), self._row))
        if isinstance(documents := getattr(self, "documents", None), int):
            parts.append(counted(documents, "document"))
        return f"{type(self).__name__}({', '.join(parts)})"

    def _repr_html_(self) -> str:
        """Return the first rows as an HTML table, every text escaped."""
        rows = self.rows()
        names = list(dict.fromkeys(name for row in rows for name in row))
        head = "".join(f"<th>{escape(name)}</th>" for name in names)
        body = "".join(
            f"<tr>{''.join(f'<td>{escape(_shown(row.get(name)))}</td>' for name in names)}</tr>"
            for row in rows[:ROWS_SHOWN]
        )
        more = f"<p>… and {len(rows) - ROWS_SHOWN:,} more: to_pandas() has all</p>" if len(rows) > ROWS_SHOWN else ""
        notes = "".join(f"<p>{escape(note)}</p>" for note in getattr(self, "notes", ()))
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>" if rows else ""
        return without_mathematics(f"<p>{escape(repr(self))}</p>{notes}{table}{more}")


def without_mathematics(html: str) -> str:
    """Return HTML in which a notebook draws no formulas: texts of documents may have dollar signs."""
    return f'<div class="tex2jax_ignore mathjax_ignore">{html}</div>'


def _shown(value: Any) -> str:
    """Return a cell as text; of a list, its first items, and of an item with several parts, the first."""
    if isinstance(value, (list, tuple)):
        firsts = [_first(each) for each in value[:LISTED]]
        return ", ".join(firsts) + (", …" if len(value) > LISTED else "")
    if isinstance(value, float):
        return f"{value:.4g}"
    text = "" if value is None else str(value)
    return text if len(text) <= CHARACTERS else f"{text[: CHARACTERS - 1]}…"


def _first(item: Any) -> str:
    if isinstance(item, Mapping):
        item = list(item.values())
    return _shown(item[0] if isinstance(item, (list, tuple)) and item else item)


def only_columns(frame: "pd.DataFrame", columns: Sequence[str] | None) -> "pd.DataFrame":
    """Return some columns of a DataFrame of documents, in the order given; all if None.

    Raises:
        UsageError: A column does not exist. Without a row, any column is taken, because none shows which there are.
    """
    if columns is None:
        return frame
    for name in columns if len(frame) else ():
        if name not in frame.columns:
            raise unknown_option("columns", name, frame.columns)
    return frame.reindex(columns=list(columns))


def frame_of(rows: Iterable[dict[str, Any]], columns: Sequence[str] = ("id", "title", "text")) -> "pd.DataFrame":
    """Return rows as a DataFrame, which has `columns` if there is no row.

    Integers and booleans keep their type where values are missing: such a column has the type Int64 or boolean. Times
    are datetime64 in UTC, and so are dates that stand among times, which Python cannot compare with each other.

    Raises:
        MissingExtraError: pandas is not installed.
    """
    try:
        import pandas as pd
    except ImportError:
        raise MissingExtraError("pandas", "pandas", "to_pandas()") from None
    found = list(rows)
    frame = pd.DataFrame(found, columns=None if found else list(columns))
    for name in frame.columns[frame.isna().any() | (frame.dtypes == "object")]:
        values = [row.get(name) for row in found]
        timed = any(isinstance(value, datetime) for value in values)
        kind = "datetime64[us]" if timed else _NULLABLE.get(pd.api.types.infer_dtype(values, skipna=True))
        if kind:
            frame[name] = pd.Series(values, dtype=kind)
    return frame


MOST_ROWS = 2**20 - 1
"""Rows below the header that a sheet can hold (ECMA-376 leaves it open; Excel's own limit)."""
MOST_CHARS = 32_767
"""UTF-16 units that a cell can hold in Excel."""
FIRST_DAY = date(1900, 3, 1)
"""Excel counts days that do not exist before this one; earlier dates are written as text."""
WIDTH, WIDTHS = 18, {"text": 80, "title": 40}
"""Widths of columns in characters."""

_FORMULA = re.compile(r"\s*[=+\-@＝＋－＠]|[\t\r\n]")
"""How OWASP's page "CSV Injection" says that such a cell begins; spaces before it do not help."""
_NUMBER = re.compile(r"\s*[+-]?(\d[\d,]*\.?\d*|\.\d+)(e[+-]?\d+)?%?\s*", re.IGNORECASE | re.ASCII)
_DASHES = ("-", "--", "+")
"""Cells of a sign alone, with which people leave a question out."""
APOSTROPHE = "'"


class Formulas:
    """Puts an apostrophe before what a spreadsheet would run, and counts the cells.

    Attributes:
        raw: Whether cells stay as they are.
        quoted: How many cells got one.
    """

    def __init__(self, raw: bool = False) -> None:
        """Begin with no cell."""
        self.raw = raw
        self.quoted = 0

    def cell(self, value: Any) -> Any:
        """Return a cell as it is written; numbers, also those in a text, stay as they are."""
        if self.raw or not isinstance(value, str) or not _is_formula(value):
            return value
        self.quoted += 1
        return APOSTROPHE + value

    def note(self, unchanged: str, advice: str = "") -> str:
        """Return one sentence about what was changed and which files hold the rest, "" if nothing was."""
        if not self.quoted:
            return ""
        return (
            f"note: an apostrophe was put before {counted(self.quoted, 'cell')} that a spreadsheet would run as a "
            f"formula; {unchanged} files hold the unchanged texts{advice}"
        )


def unquoted(cell: str) -> str:
    """Return a cell without the apostrophe that `Formulas` put before it."""
    return cell[1:] if cell.startswith(APOSTROPHE) and _is_formula(cell[1:]) else cell


def _is_formula(text: str) -> bool:
    return bool(_FORMULA.match(text)) and not _NUMBER.fullmatch(text) and text.strip() not in _DASHES


def empty_columns(names: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the columns in which no row has a value; none if there is no row."""
    left = dict.fromkeys(names)
    for row in rows:
        for name in [name for name in left if row.get(name) not in (None, "", [])]:
            del left[name]
        if not left:
            break
    return list(left) if len(left) < len(names) else []


class Workbook:
    """Writes rows to the one sheet of a workbook, in bounded memory.

    Attributes:
        cut: Number of cells whose text was cut, since a cell cannot hold more than `MOST_CHARS`.
    """

    def __init__(
        self, stream: IO[bytes], names: Sequence[str], folder: str, sheet: str = "documents",
        widths: Mapping[str, int] = WIDTHS, wrap: bool = False,
    ) -> None:  # fmt: skip
        """Begin a sheet with a header of column names, which stays in sight.

        Args:
            stream: Receives the file when `close` is called.
            names: Of the columns, in their order.
            folder: Where parts of the file are until then; the caller removes it.
            sheet: Its name.
            widths: Of columns, in characters; others have WIDTH.
            wrap: Whether texts go on below each other in their cells, for short texts that are read in a report.
        """
        import xlsxwriter

        plain = dict.fromkeys(("strings_to_formulas", "strings_to_urls", "strings_to_numbers"), False)
        self._book = xlsxwriter.Workbook(stream, {"constant_memory": True, "tmpdir": folder, **plain})
        self._sheet: Worksheet = self._book.add_worksheet(sheet)
        self._day = self._book.add_format({"num_format": "yyyy-mm-dd"})
        self._time = self._book.add_format({"num_format": "yyyy-mm-dd hh:mm:ss"})
        self._names, self._rows, self.cut = names, 0, 0
        self._plain = self._book.add_format({"text_wrap": True, "valign": "top"}) if wrap else None
        self._sheet.freeze_panes(1, 0)
        bold = self._book.add_format({"bold": True})
        for column, name in enumerate(names):
            self._sheet.set_column(column, column, widths.get(name, WIDTH))
            self._sheet.write_string(0, column, self._text(name), bold)

    def write(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Write rows below those that are there.

        Raises:
            SondeError: There are more than a sheet can hold.
        """
        for row in rows:
            self._rows += 1
            if self._rows > MOST_ROWS:
                raise SondeError(f"a workbook holds at most {MOST_ROWS:,} rows: write a .csv or .parquet file instead")
            for column, name in enumerate(self._names):
                self._cell(column, row.get(name))

    def name_left_out(self, names: Sequence[str]) -> None:
        """Say on a second sheet how many columns were left out, if any; in one row, so that the first one is longer."""
        if names:
            said = f"{counted(len(names), 'column')} left out, because no document here has a value: {', '.join(names)}"
            self._book.add_worksheet("left out").write_string(0, 0, self._text(said))

    def close(self) -> None:
        """Write the file to the stream."""
        self._sheet.autofilter(0, 0, self._rows, max(0, len(self._names) - 1))
        self._book.close()

    def note(self) -> str:
        """Return one sentence about cells that were cut, "" if none was."""
        if not self.cut:
            return ""
        said = f"note: {counted(self.cut, 'cell')} had more than the {MOST_CHARS:,} characters that Excel can hold"
        return f"{said}, and ends in …; .csv, .jsonl and .parquet files hold the whole texts"

    def _cell(self, column: int, value: Any) -> None:
        given = json_value(value) if isinstance(value, float) else value
        if given is None or given == "":
            return
        if isinstance(given, bool):
            self._sheet.write_boolean(self._rows, column, given, self._plain)
        elif isinstance(given, (int, float)) and abs(given) < EXACT_INTEGERS:
            self._sheet.write_number(self._rows, column, given, self._plain)
        elif isinstance(given, date) and date(given.year, given.month, given.day) >= FIRST_DAY:
            form = self._time if isinstance(given, datetime) else self._day
            self._sheet.write_datetime(self._rows, column, given, form)  # type: ignore[arg-type]  # a date is fine
        else:
            self._sheet.write_string(self._rows, column, self._text(stored_text(given)), self._plain)

    def _text(self, text: str) -> str:
        """Return what a cell holds of a text; Excel counts a character beyond the first plane as two."""
        if len(text) * 2 <= MOST_CHARS or len(text.encode("utf-16-le")) // 2 <= MOST_CHARS:
            return text
        self.cut += 1
        return text.encode("utf-16-le")[: 2 * (MOST_CHARS - 1)].decode("utf-16-le", "ignore") + "…"
