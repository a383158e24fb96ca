"""Files of references, as databases of papers and reference managers export them: RIS, MEDLINE, Web of Science, BibTeX.

The first three have a line for each field, which begins with a tag. Each reference becomes a row with the same columns.
"""

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..document import Skipped
from ..errors import MissingExtraError
from .bytestream import ByteStream
from .encoding import decoded_lines, detect_encoding
from .source import Item, Meter, ReadOptions, Row, Source

# bibtexparser reports each broken entry as a warning too.
logging.getLogger("bibtexparser").addHandler(logging.NullHandler())

_LONGEST_LINE = 1 << 24
_MOST_LINES = 100_000
_LISTS = ("authors", "keywords", "subjects", "kind")
_DOI = re.compile(r"10\.\d{4,9}/\S+")
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
    """

    line: re.Pattern[str]
    begins: str
    of: Mapping[str, Sequence[str]]
    divided: Sequence[str] = ()


_FORMATS = {
    "ris": _Tags(
        re.compile(r"([A-Z][A-Z0-9])  -(?: (.*)|)$"),
        "TY",
        {
            "id": ("AN", "ID"), "title": ("TI", "T1", "CT"), "abstract": ("AB", "N2"), "authors": ("AU", "A1"),
            "year": ("PY", "Y1", "DA"), "journal": ("JF", "JO", "T2", "JA"), "volume": ("VL",), "issue": ("IS",),
            "first_page": ("SP",), "last_page": ("EP",), "doi": ("DO",), "keywords": ("KW",), "kind": ("TY",),
            "url": ("UR", "LK"), "database": ("DB", "DP"), "language": ("LA",), "issn": ("SN",), "notes": ("N1",),
        },
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
    ),
}  # fmt: skip
_BIBTEX = {
    "title": ("title",), "abstract": ("abstract",), "authors": ("author", "editor"), "year": ("year", "date"),
    "journal": ("journal", "journaltitle", "booktitle"), "volume": ("volume",), "issue": ("number", "issue"),
    "pages": ("pages",), "doi": ("doi",), "keywords": ("keywords",), "url": ("url",), "issn": ("issn",),
    "language": ("language", "langid"), "notes": ("note",),
}  # fmt: skip
BEGINNING = 500
_FIRST = {
    "nbib": re.compile(r"\s*PMID- \d+\s"),
    "ciw": re.compile(r"\s*FN (Clarivate|Thomson Reuters|ISI )"),
    "ris": re.compile(r"\s*TY  - [A-Z]+\s"),
}
"""How files begin that have a suffix of plain text."""


def references_in(sample: bytes) -> str | None:
    """Return the format of a file of references by its first bytes, None if it holds something else."""
    text = sample[:BEGINNING].decode("utf-8-sig", "replace")
    return next((format for format, first in _FIRST.items() if first.match(text)), None)


class Tagged(Source):
    """References with a line for each field."""

    nothing = "holds no reference"

    def __init__(self, stream: ByteStream, options: ReadOptions, format: str) -> None:
        self._stream = stream
        self._tags = _FORMATS[format]
        self.name = stream.name
        self.once = stream.once
        self.total = stream.size
        self.encoding = options.encoding or detect_encoding(stream.sample, options.encoding_hint)

    def items(self, meter: Meter) -> Iterator[Item]:
        """One row for each reference; "line 1" is where the first one begins."""
        with self._stream.open(meter) as file:
            for line, fields in self._references(file):
                yield _row(f"line {line}", self._columns(fields))

    def _references(self, file: Any) -> Iterator[tuple[int, dict[str, list[str]]]]:
        """Yield the line on which each reference begins, and its values by tag; a value can go on in the next line."""
        fields, begun, last = dict[str, list[str]](), 0, ""
        lines = decoded_lines(file, self.encoding)
        for number, line in enumerate(iter(lambda: lines.readline(_LONGEST_LINE), ""), start=1):
            text = line.strip("\r\n\ufeff")
            found = self._tags.line.match(text)
            if found and found[1] == self._tags.begins:
                if fields:
                    yield begun, fields
                fields, begun = {}, number
            if found and begun:
                last = found[1]
                fields.setdefault(last, []).append((found[2] or "").strip())
            elif text.strip() and last in fields and len(fields[last]) < _MOST_LINES:
                self._continue(fields[last], last, text.strip())
        if fields:
            yield begun, fields

    def _continue(self, values: list[str], tag: str, text: str) -> None:
        """Add a line to a value; in Web of Science, each line of the authors is one of them."""
        if self._tags is _FORMATS["ciw"] and tag in self._tags.of["authors"]:
            values.append(text)
        else:
            values[-1] = f"{values[-1]} {text}".strip()

    def _columns(self, fields: Mapping[str, Sequence[str]]) -> dict[str, Any]:
        values = {column: _first(fields, tags) for column, tags in self._tags.of.items()}
        row: dict[str, Any] = {name: found if name in _LISTS else " ".join(found) for name, found in values.items()}
        row["doi"] = " ".join(value for tag in self._tags.of["doi"] for value in fields.get(tag, ()))
        for name in self._tags.divided:
            row[name] = _divided("keywords", "; ".join(values[name]))
        if row.get("last_page"):
            row["first_page"] = f"{row['first_page']}-{row['last_page']}"
        row["pages"] = row.pop("first_page", "")
        row.pop("last_page", None)
        return row


class BibTeX(Source):
    """The entries of a BibTeX file, without LaTeX's commands."""

    nothing = "holds no entry, such as @article{key, title = {…}}"

    def __init__(self, stream: ByteStream, options: ReadOptions, format: str) -> None:
        self._stream = stream
        self.name = stream.name
        self.once = stream.once
        self.total = stream.size
        self.encoding = options.encoding or detect_encoding(stream.sample, options.encoding_hint)

    def items(self, meter: Meter) -> Iterator[Item]:
        """One row for each entry; "line 1" is where the first one begins. The whole file is in memory.

        Raises:
            MissingExtraError: bibtexparser is not installed.
        """
        try:
            from bibtexparser.entrypoint import parse_string
        except ImportError:
            raise MissingExtraError("bibtexparser", "formats", "reading BibTeX") from None
        with self._stream.open(meter) as file:
            library = parse_string(decoded_lines(file, self.encoding).read())
        for block in sorted((*library.entries, *library.failed_blocks), key=lambda each: each.start_line or 0):
            yield _item(f"line {(block.start_line or 0) + 1}", block)


def _item(origin: str, block: Any) -> Item:
    """Return an entry of a BibTeX file; if its key comes twice, it is decided elsewhere which one stays."""
    entry = getattr(block, "ignore_error_block", None) or block
    if hasattr(entry, "entry_type"):
        fields = {field.key.lower(): [_plain(str(field.value))] for field in entry.fields}
        return _row(origin, _of_entry(entry.key, entry.entry_type, fields))
    error = getattr(block, "error", None)
    reason = " ".join(str(getattr(error, "abort_reason", error)).split())
    return Skipped(origin, f"broken BibTeX: {reason}")


def _of_entry(key: str, kind: str, fields: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    values = {column: " ".join(_first(fields, names)) for column, names in _BIBTEX.items()}
    lists = {name: _divided(name, values[name]) for name in ("authors", "keywords")}
    return {"id": key, **values, **lists, "kind": [kind]}


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


def _row(origin: str, values: dict[str, Any]) -> Item:
    """Return a reference as a row, whose year and DOI are in one form whatever the database."""
    if not (values["title"] or values["abstract"]):
        return Skipped(origin, "it has neither title nor abstract")
    year, doi = _YEAR.search(values["year"]), _DOI.search(values["doi"])
    values |= {"year": int(year[0]) if year else None, "doi": doi[0].lower() if doi else None}
    return Row(origin, {name: value for name, value in values.items() if value})
