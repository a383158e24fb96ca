"""What a user may say about a source, and what every reader of a format offers."""

import codecs
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from ..document import Document, Skipped, composed
from ..errors import SondeError, UsageError, arg, did_you_mean
from .coercion import check_types
from .columns import Columns
from .values import NestedError, flattened

SUFFIXES = {
    **{".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".json": "json", ".jsonl": "jsonl", ".ndjson": "jsonl"},
    **{".parquet": "parquet", ".pq": "parquet"},
    **dict.fromkeys((".xlsx", ".xlsm", ".xls", ".xlsb", ".ods"), "xlsx"),
    **{".mbox": "mbox", ".ris": "ris", ".nbib": "nbib", ".ciw": "ciw", ".bib": "bib"},
}
"""The format of a table, a mailbox or a file of references, by its file's suffix."""
TEXT_SUFFIXES = {
    **dict.fromkeys((".txt", ".text", ".rst"), "text"),
    **{".md": "markdown", ".markdown": "markdown"},
    **{".html": "html", ".htm": "html", ".xhtml": "html", ".pdf": "pdf"},
    **{".docx": "docx", ".docm": "docx", ".odt": "odt", ".eml": "eml"},
}
"""The format of a file that is one document by its suffix."""
TEXT_FORMATS = tuple(dict.fromkeys(TEXT_SUFFIXES.values()))
FORMATS = (*dict.fromkeys(SUFFIXES.values()), "lines", *TEXT_FORMATS)
"""All formats; no suffix stands for `lines`, one text on each."""
_DELIMITERS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|", "space": " "}


@dataclass(frozen=True)
class ReadOptions:
    """How to read a source. None means: find out.

    Args:
        text: Column of the text, or several whose texts are joined by a blank line.
        title: Column of the title; "" for none.
        id: Column of the key; "" for none (the build then takes a hash of the text).
        language: Column of each text's language; "" for none.
        leave_out: Columns that do not become metadata.
        delimiter: One character between the cells of a CSV file, or a name such as "tab".
        encoding: Encoding of text files, by any name that Python knows.
        encoding_hint: That of text files that are not UTF-8, where `encoding` is None and they are valid in it.
        format: One of `FORMATS`, whatever the file's name; "lines" is one text per line.
        sheet: Name of the worksheet; the one with the most rows otherwise.
        max_chars: Longer texts are skipped.
        type: Types of columns that become metadata, by name; the others are found out. A type is text, integer, real,
            boolean, date or list; or "real:," for 1.234,50, or a date with its format, such as "date:%d/%m/%Y". Values
            that do not fit are left out and counted.
        type_hint: The same for columns that `type` does not name, where the source has them.
        form_hint: How numbers and dates in a column are written, "real:," or "date:%d/%m/%Y", if all of them are.
        id_hint: The id column where `id` is None and the source has this one; "" for a column of unique codes.
        leave_out_hint: Columns that do not become metadata where the source has them. No role is found for them, and
            `type` overrides this.

    Raises:
        UsageError: A value that is not valid for any source.
    """

    text: str | tuple[str, ...] | None = None
    title: str | None = None
    id: str | None = None
    language: str | None = None
    leave_out: tuple[str, ...] = ()
    delimiter: str | None = None
    encoding: str | None = None
    encoding_hint: str | None = None
    format: str | None = None
    sheet: str | None = None
    max_chars: int = 20_000_000
    type: Mapping[str, str] = field(default_factory=dict)
    type_hint: Mapping[str, str] = field(default_factory=dict)
    form_hint: Mapping[str, str] = field(default_factory=dict)
    id_hint: str | None = None
    leave_out_hint: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.format is not None and self.format not in FORMATS:
            said = f"unknown format {self.format!r}{did_you_mean(self.format, FORMATS)}: {', '.join(FORMATS)}"
            raise UsageError(said, code="unknown-option", field="format", value=self.format, alternatives=FORMATS)
        if self.max_chars < 1:
            said = f"{arg('max_chars')} is {self.max_chars}; it must be at least 1"
            raise UsageError(said, code="out-of-range", field="max_chars", value=self.max_chars)
        if self.text is not None and (not self.text or "" in self.texts):
            said = f"{arg('text')} is {self.text!r}; name at least one column"
            raise UsageError(said, code="empty", field="text", value=self.text)
        check_types(self.type)
        for name in _OF_COLUMNS:  # as readers give the names of columns
            object.__setattr__(self, name, _composed(getattr(self, name)))
        self._check_delimiter()
        self._check_encoding()

    @property
    def texts(self) -> tuple[str, ...]:
        """The text columns that were set, none if they are to be found."""
        return (self.text,) if isinstance(self.text, str) else tuple(self.text or ())

    @property
    def aside(self) -> frozenset[str]:
        """The columns of `leave_out_hint` that `type` does not name."""
        return frozenset(self.leave_out_hint) - self.type.keys()

    @property
    def separator(self) -> str | None:
        """The delimiter as one character."""
        return _DELIMITERS.get(self.delimiter.lower(), self.delimiter) if self.delimiter is not None else None

    def _check_delimiter(self) -> None:
        if self.separator is not None and (len(self.separator) != 1 or self.separator in '\r\n"\0'):
            names = ", ".join(name for name in _DELIMITERS if name != "\\t")
            said = f"delimiter {self.delimiter!r} must be one character (not a quote or a line end) or one of: {names}"
            raise UsageError(said, code="unknown-option", field="delimiter", value=self.delimiter)

    def _check_encoding(self) -> None:
        if self.encoding is None:
            return
        try:
            "".encode(codecs.lookup(self.encoding).name)  # LookupError also for bytes-to-bytes codecs such as hex
        except LookupError:
            common = ("utf-8", "utf-16", "latin-1", "cp1252", "cp1251", "shift_jis", "gb18030", "big5", "euc-kr")
            near = did_you_mean(self.encoding, common)
            said = f"unknown encoding {self.encoding!r}{near}: for example {', '.join(common)}"
            raise UsageError(
                said, code="unknown-option", field="encoding", value=self.encoding, alternatives=common
            ) from None


_OF_COLUMNS = (
    "text", "title", "id", "language", "leave_out", "type", "type_hint", "form_hint", "id_hint", "leave_out_hint",
)  # fmt: skip
"""The options that name columns."""


def _composed(names: Any) -> Any:
    if isinstance(names, Mapping):
        return {_composed(name): value for name, value in names.items()}
    if isinstance(names, (tuple, list)):
        return type(names)(map(_composed, names))
    return composed(names) if isinstance(names, str) else names


@dataclass(frozen=True, slots=True)
class Row:
    """One record before its columns have roles: values by column name, nested objects flattened."""

    origin: str
    values: Mapping[str, Any]


Item = Row | Document | Skipped


def row_of(origin: str, values: Mapping[Any, Any]) -> Row | Skipped:
    """A record as a row; skipped where it is nested too deeply or holds too much."""
    try:
        return Row(origin, flattened(values))
    except NestedError as error:
        return Skipped(origin, str(error))


@dataclass(slots=True)
class Meter:
    """How far one pass over a source has come, in the source's unit."""

    done: int = 0


class Source(ABC):
    """One file, folder, stream or Python object.

    `format` is the format of a table or a stream, "" for anything else.
    `total` is in `unit`, None where unknown; `items_total` counts the items, None where that takes a pass. A source
    that is there `once` gives its items a single time. In a `textual` one every cell is a string whose type has to be
    found. `note` says how it is read where that was found out, `nothing` what is wrong when there is no item.
    `encoding` is that of its text, "" if it has none or several.
    `columns` is set where the format fixes the roles. `heading` is the first row of a delimited file if it names the
    columns, () if it does not, and None in formats whose records have names. `begins` is the line or, in a
    worksheet, the row on which the table seems to begin, 0 if it is the first. `unread` counts the files of folders
    that are left out, by their kinds.
    """

    name: str
    format: str = ""
    total: int | None = None
    items_total: int | None = None
    unit: str = "bytes"
    once: bool = False
    textual: bool = False
    note: str = ""
    encoding: str = ""
    nothing: str = "holds no rows: give a source with content"
    columns: Columns | None = None
    heading: tuple[str, ...] | None = None
    begins: int = 0
    unread: Mapping[str, int] = MappingProxyType({})

    @property
    def above(self) -> str:
        """What to do about lines above the table."""
        unit = "row" if self.format == "xlsx" else "line"
        return f"the table seems to begin on {unit} {self.begins}: remove the {unit}s above it"

    @abstractmethod
    def items(self, meter: Meter) -> Iterator[Item]:
        """Start a pass; `meter` follows it."""


@dataclass(slots=True)
class Place:
    """Where a pass is, for messages: the origin of the latest item."""

    origin: str = ""

    def __str__(self) -> str:
        return f" after {self.origin}" if self.origin else ""


@contextmanager
def source_errors(name: str, place: Place) -> Iterator[None]:
    """Turn what goes wrong with the bytes of `name` into one line.

    Raises:
        SondeError: In place of errors of the operating system, of decompression and of decoding.
    """
    try:
        yield
    except UnicodeError as error:
        raise SondeError(f"{name} cannot be decoded{place} ({error}): set {arg('encoding')}") from error
    except OSError as error:
        if type(error).__module__ == "gzip":
            raise _damaged(name, place, error) from error
        raise SondeError(f"{name} cannot be read{place}: {error.strerror or error}") from error
    except (EOFError, zlib.error) as error:
        raise _damaged(name, place, error) from error
    except Exception as error:
        if type(error).__name__ != "ZstdError":  # its library is not loaded for the sake of an except clause
            raise
        raise _damaged(name, place, error) from error


def _damaged(name: str, place: Place, error: Exception) -> SondeError:
    reason = " ".join(str(error).split()).rstrip(".")
    return SondeError(f"{name} cannot be decompressed{place}: it is damaged or cut short ({reason}); get a new copy")
