"""Worksheets of Excel and LibreOffice."""

from collections.abc import Iterator
from typing import Any

from ..errors import SondeError, UsageError
from .bytestream import ByteStream
from .delimited import column_names
from .source import Item, Meter, ReadOptions, Row, Source, did_you_mean


class Workbook(Source):
    """The rows of a worksheet below its first row with content."""

    def __init__(self, stream: ByteStream, options: ReadOptions, format: str) -> None:
        import python_calamine

        self.name = stream.name
        self._stream = stream.on_disk()
        self.total = stream.size if stream.size is not None else self._stream.size
        try:
            self._book = python_calamine.CalamineWorkbook.from_path(str(self._stream.path))
        except python_calamine.CalamineError as error:
            reason = (
                "protected by a password"
                if isinstance(error, python_calamine.PasswordError)
                else "damaged or no workbook"
            )
            raise SondeError(f"{self.name} is {reason}: save it again as .xlsx ({error})") from error
        self._sheet = self._chosen(options.sheet)
        self._top, self._names = self._header()
        self.note = f"sheet {self._sheet!r}"
        self.nothing = (
            f"has a header ({', '.join(self._names)}) but no rows in sheet {self._sheet!r}: give one with content"
        )

    def items(self, meter: Meter) -> Iterator[Item]:
        """Rows with content; "row 12" is the row that a spreadsheet program numbers 12."""
        sheet = self._book.get_sheet_by_name(self._sheet)
        last = sheet.end[0] + 1 if sheet.end else 1
        for number, cells in enumerate(sheet.iter_rows(), start=1):
            if number > self._top and any(cell != "" for cell in cells):
                meter.done = (self.total or 0) * number // last
                yield Row(f"row {number}", dict(zip(self._names, map(_value, cells), strict=True)))

    def _header(self) -> tuple[int, list[str]]:
        for number, cells in enumerate(self._book.get_sheet_by_name(self._sheet).iter_rows(), start=1):
            if any(cell != "" for cell in cells):
                return number, column_names([str(_value(cell)) for cell in cells])
        return 0, []

    def _chosen(self, name: str | None) -> str:
        names = self._book.sheet_names
        if name is not None and name not in names:
            near = did_you_mean(name, names)
            said = f"{self.name} has no sheet {name!r}{near}; it has {', '.join(map(repr, names))}"
            raise UsageError(said, code="not-found", field="sheet", value=name, alternatives=names)
        chosen = name or next((sheet for sheet in names if self._book.get_sheet_by_name(sheet).height > 0), None)
        if chosen is None:
            raise SondeError(f"{self.name} is empty: none of its sheets ({', '.join(names)}) has a cell")
        return chosen


def _value(cell: Any) -> Any:
    """Excel knows no integers: a number without a fraction is meant as one."""
    return int(cell) if isinstance(cell, float) and cell.is_integer() else cell
