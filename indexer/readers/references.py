"""Files of references, as databases of papers and reference managers export them: RIS, MEDLINE, BibTeX and so on.

Most have a line for each field, which begins with a tag. Each reference becomes a document, whose fields have the same
names whatever the format.
"""

import csv
import logging
import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from ..document import Document, Skipped, Value
from ..errors import MissingExtraError, SondeError
from ..languages import normalise
from .bytestream import ByteStream
from .columns import Columns
from .encoding import decoded_lines, detect_encoding
from .source import Item, Meter, ReadOptions, Source

# Both report each oddity of an entry as a warning too.
for _library in ("bibtexparser", "pylatexenc"):
    logging.getLogger(_library).setLevel(logging.CRITICAL)

_LONGEST_LINE = 1 << 24
_MOST_LINES = 100_000
_LISTS = ("authors", "keywords", "subjects", "kind")
DOI = re.compile(r"10\.\d{4,9}/\S+")
_NO_ABSTRACT = re.compile(r"\[?no abstract available\.?\]?", re.IGNORECASE)
_YEAR = re.compile(r"\b(1[5-9]|20|21)\d\d\b")
_BETWEEN = {"authors": re.compile(r"\s*;\s*|\s+and\s+"), "keywords": re.compile(r"\s*[;,]\s*")}
"""What is between several values in one field of BibTeX or Web of Science."""


@dataclass(frozen=True)
class _Tags:
    """A format with a line for each field.

    Attributes:
        line: Matches the first line of a field: its tag and the value.
        begins: The tag that begins a reference.
        of: The tags of each column, the best first.
        divided: Columns whose value is a list in one field.
        by_line: Columns in which the next line without a tag is the next item.
    """

    line: re.Pattern[str]
    begins: str
    of: Mapping[str, Sequence[str]]
    divided: Sequence[str] = ()
    by_line: Sequence[str] = ()


_FORMATS = {
    "ris": _Tags(
        re.compile(r"([A-Z][A-Z0-9])  -(?: (.*)|)$"),
        "TY",
        {
            "id": ("AN",), "title": ("TI", "T1", "CT"), "abstract": ("AB", "N2"), "authors": ("AU", "A1"),
            "year": ("PY", "Y1", "DA"), "journal": ("JF", "JO", "T2", "JA"), "volume": ("VL",), "issue": ("IS",),
            "first_page": ("SP",), "last_page": ("EP",), "doi": ("DO",), "keywords": ("KW",), "kind": ("TY",),
            "url": ("UR", "LK"), "database": ("DB", "DP"), "language": ("LA",), "issn": ("SN",), "notes": ("N1",),
        },
        by_line=("authors", "keywords"),  # EndNote's RIS
    ),
    "nbib": _Tags(
        re.compile(r"(?=.{4}-)([A-Z]{2,4}) *-(?: (.*)|)$"),
        "PMID",
        {
            "id": ("PMID",), "title": ("TI", "BTI"), "abstract": ("AB",), "authors": ("FAU", "AU"), "year": ("DP",),
            "journal": ("JT", "TA"), "volume": ("VI",), "issue": ("IP",), "first_page": ("PG",), "doi": ("LID", "AID"),
            "keywords": ("OT",), "subjects": ("MH",), "kind": ("PT",), "language": ("LA",), "issn": ("IS",),
        },
    ),
    "ciw": _Tags(
        re.compile(r"([A-Z][A-Z0-9])(?: (.*)|)$"),
        "PT",
        {
            "id": ("UT",), "title": ("TI",), "abstract": ("AB",), "authors": ("AF", "AU"), "year": ("PY",),
            "journal": ("SO",), "volume": ("VL",), "issue": ("IS",), "first_page": ("BP",), "last_page": ("EP",),
            "doi": ("DI",), "keywords": ("DE",), "subjects": ("ID",), "kind": ("DT",), "language": ("LA",),
            "issn": ("SN",),
        },
        ("keywords", "subjects", "kind"),
        ("authors",),
    ),
    "cochrane": _Tags(
        re.compile(r"([A-Z]{2,3}):(?: (.*)|)$"),
        "ID",
        {
            "id": ("ID",), "title": ("TI",), "abstract": ("AB",), "authors": ("AU",), "year": ("YR",),
            "journal": ("SO",), "volume": ("VL",), "issue": ("NO",), "first_page": ("PG",), "doi": ("DOI",),
            "keywords": ("KY",), "kind": ("PT",), "url": ("US",),
        },
        ("keywords", "kind"),
    ),
}  # fmt: skip
_RECORD = re.compile(r"Record #\d+ of \d+")
"""The line above each reference of the Cochrane Library."""
_BIBTEX = {
    "title": ("title",), "abstract": ("abstract",), "authors": ("author", "editor"), "year": ("year", "date"),
    "journal": ("journal", "journaltitle", "booktitle"), "volume": ("volume",), "issue": ("number", "issue"),
    "pages": ("pages",), "doi": ("doi",), "keywords": ("keywords",), "url": ("url",), "issn": ("issn",),
    "language": ("language", "langid"), "notes": ("note",),
}  # fmt: skip
_FIELDS: Mapping[str, str] = {
    **dict.fromkeys(_LISTS, "list"), "year": "integer",
    **dict.fromkeys(("journal", "volume", "issue", "pages", "doi", "url", "database", "language", "issn"), "text"),
    **dict.fromkeys(("notes", "source"), "text"),
}  # fmt: skip
"""The fields of references, with their types."""
BEGINNING = 500
_FIRST = {
    "nbib": re.compile(r"\s*PMID- \d+\s"),
    "ciw": re.compile(r"\s*FN (Clarivate|Thomson Reuters|ISI )"),
    "ris": re.compile(r"\s*TY  - [A-Z]+\s"),
    "cochrane": re.compile(r"\s*Record #1 of \d+\s"),
    "tagged table": re.compile(r"PT\tAU\t"),
}
"""How files begin that have a suffix of plain text."""
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")


def references_in(sample: bytes) -> str | None:
    """Return the format of a file of references by its first bytes, None if it holds something else."""
    beginning = sample[:BEGINNING]
    text = beginning.decode("utf-16" if beginning.startswith(_UTF_16) else "utf-8-sig", "replace")
    return next((format for format, first in _FIRST.items() if first.match(text)), None)


class _References(Source):
    """What the formats have in common: the roles of the fields, which are known."""

    def __init__(self, stream: ByteStream, options: ReadOptions, format: str) -> None:
        self._stream = stream
        self._format = format
        self._hashed = options.id == ""
        self.name = stream.name
        self.once = stream.once
        self.total = stream.size
        self.encoding = options.encoding or detect_encoding(stream.sample, options.encoding_hint)
        reasons = {"text": "of the references", "title": "of the references", "id": "of the database"}
        self.columns = Columns(("abstract",), "title", None if self._hashed else "id", None, _FIELDS, reasons)

    def items(self, meter: Meter) -> Iterator[Item]:
        """One document for each reference; "line 1" is where the first one begins.

        Raises:
            SondeError: There is none.
            MissingExtraError: A library is not installed.
        """
        found = False
        with self._stream.open(meter) as file:
            for origin, values in self._references(file):
                found = True
                yield values if isinstance(values, Skipped) else self._document(origin, values)
        if not found:
            raise SondeError(f"{self.name} {self.nothing}")

    @abstractmethod
    def _references(self, file: Any) -> Iterator[tuple[str, dict[str, Any] | Skipped]]: ...

    def _document(self, origin: str, values: dict[str, Any]) -> Document | Skipped:
        """Return a reference whose year, DOI and language are in one form whatever the database."""
        text = "" if _NO_ABSTRACT.fullmatch(values["abstract"]) else values["abstract"]
        if not (values["title"] or text):
            return Skipped(origin, "it has neither title nor abstract")
        year, doi = _YEAR.search(values["year"]), DOI.search(values["doi"])
        language = normalise(values.get("language"))
        values |= {"year": int(year[0]) if year else None, "doi": doi[0].lower() if doi else None}
        values |= {"language": language or values.get("language"), "source": Path(self.name).name}
        metadata: dict[str, Value] = {name: values[name] for name in _FIELDS if values.get(name)}
        key = None if self._hashed else values.get("id") or None
        return Document(text, values["title"], key, metadata, language, origin)


class Tagged(_References):
    """References with a line for each field."""

    nothing = "holds no reference"

    def _references(self, file: Any) -> Iterator[tuple[str, dict[str, Any] | Skipped]]:
        """Yield the values of each reference; a value can go on in the next line."""
        tags, fields, begun, last = _FORMATS[self._format], dict[str, list[str]](), 0, ""
        lines = decoded_lines(file, self.encoding)
        for number, line in enumerate(iter(lambda: lines.readline(_LONGEST_LINE), ""), start=1):
            text = line.strip("\r\n\ufeff")
            found = tags.line.match(text)
            if found and found[1] == tags.begins:
                if fields:
                    yield f"line {begun}", _columns(tags, fields)
                fields, begun = {}, number
            if found and begun:
                last = found[1]
                fields.setdefault(last, []).append((found[2] or "").strip())
            elif text.strip() and last in fields and len(fields[last]) < _MOST_LINES and not _RECORD.fullmatch(text):
                _continue(tags, fields[last], last, text.strip())
        if fields:
            yield f"line {begun}", _columns(tags, fields)


class TaggedTable(_References):
    """References of Web of Science in a table whose columns have tags as names."""

    nothing = "holds no reference"

    def _references(self, file: Any) -> Iterator[tuple[str, dict[str, Any] | Skipped]]:
        tags, lines = _FORMATS["ciw"], decoded_lines(file, self.encoding)
        names = lines.readline(_LONGEST_LINE).strip("\r\n\ufeff").split("\t")
        for number in count(2):
            if not (line := lines.readline(_LONGEST_LINE)):
                return
            cells = next(csv.reader([line.rstrip("\r\n")], delimiter="\t", quoting=csv.QUOTE_NONE), [])
            if any(cell.strip() for cell in cells):
                fields = {name: [cell.strip()] for name, cell in zip(names, cells, strict=False)}
                values = _columns(tags, fields)
                yield f"line {number}", values | {"authors": _divided("authors", "; ".join(values["authors"]))}


def _continue(tags: _Tags, values: list[str], tag: str, text: str) -> None:
    """Add a line without a tag to a value, or as the next one of a list."""
    if any(tag in tags.of[column] for column in tags.by_line):
        values.append(text)
    else:
        values[-1] = f"{values[-1]} {text}".strip()


def _columns(tags: _Tags, fields: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    values = {column: _first(fields, names) for column, names in tags.of.items()}
    row: dict[str, Any] = {name: found if name in _LISTS else " ".join(found) for name, found in values.items()}
    row["doi"] = " ".join(value for tag in tags.of["doi"] for value in fields.get(tag, ()))
    for name in tags.divided:
        row[name] = _divided("keywords", "; ".join(values[name]))
    pages = [page for page in (row.pop("first_page", ""), row.pop("last_page", "")) if page]
    return row | {"pages": "-".join(pages)}


class BibTeX(_References):
    """The entries of a BibTeX file, without LaTeX's commands."""

    nothing = "holds no entry, such as @article{key, title = {…}}"

    def _references(self, file: Any) -> Iterator[tuple[str, dict[str, Any] | Skipped]]:
        """Yield the values of each entry; the whole file is in memory."""
        try:
            from bibtexparser.entrypoint import parse_string
        except ImportError:
            raise MissingExtraError("bibtexparser", "formats", "reading BibTeX") from None
        library = parse_string(decoded_lines(file, self.encoding).read())
        for block in sorted((*library.entries, *library.failed_blocks), key=lambda each: each.start_line or 0):
            origin = f"line {(block.start_line or 0) + 1}"
            yield origin, _entry(origin, block)


def _entry(origin: str, block: Any) -> dict[str, Any] | Skipped:
    """Return the values of an entry; if its key comes twice, it is decided elsewhere which one stays."""
    entry = getattr(block, "ignore_error_block", None) or block
    if not hasattr(entry, "entry_type"):
        error = getattr(block, "error", None)
        reason = " ".join(str(getattr(error, "abort_reason", error)).split())
        return Skipped(origin, f"broken BibTeX: {reason.encode('utf-8', 'replace').decode()}")
    fields = {field.key.lower(): [_plain(str(field.value))] for field in entry.fields}
    values = {column: " ".join(_first(fields, names)) for column, names in _BIBTEX.items()}
    lists = {name: _divided(name, values[name]) for name in ("authors", "keywords")}
    lists["authors"] = [name for name in lists["authors"] if name != "others"]  # as in "Doe, J. and others"
    return {"id": entry.key, **values, **lists, "kind": [entry.entry_type]}


_LATEX = re.compile(r"[\\$]")
_BRACES = re.compile(r"(?<!\\)[{}]")
_URL = re.compile(r"\\url\{([^{}]*)\}")
_BARE = re.compile(r"(?<!\\)([&%#])")
"""Signs of LaTeX that people leave unmarked: a percent sign would begin a comment."""


def _plain(value: str) -> str:
    """Return a value of BibTeX as people read it."""
    value = value[1:-1] if value[:1] == value[-1:] == '"' else value
    if not _LATEX.search(value):
        return " ".join(_BRACES.sub("", value).split())
    from pylatexenc.latex2text import LatexNodes2Text

    value = _BARE.sub(r"\\\1", _URL.sub(r"\1", value))
    text = LatexNodes2Text(math_mode="text", strict_latex_spaces=True).latex_to_text(value)
    return " ".join(text.split())


def _first(fields: Mapping[str, Sequence[str]], tags: Sequence[str]) -> list[str]:
    """Return the values of the first of these tags that has some."""
    for tag in tags:
        if found := [value for value in fields.get(tag, ()) if value]:
            return found
    return []


def _divided(column: str, value: str) -> list[str]:
    return [part for part in _BETWEEN[column].split(value) if part]
