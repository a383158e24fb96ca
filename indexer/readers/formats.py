"""The format of a file, by what the user says, its name and its first bytes, and the reader for it."""

import json
from collections.abc import Callable
from pathlib import Path

from ..errors import UsageError, arg
from .bytestream import COMPRESSED_SUFFIXES, ByteStream
from .columns import text_rank
from .delimited import Delimited, sample_lines, sniff_dialect
from .encoding import detect_encoding
from .json_files import JsonArray, JsonLines, PlainLines
from .mailbox import Mailbox
from .references import BibTeX, Tagged, TaggedTable, references_in
from .source import SUFFIXES, TEXT_FORMATS, TEXT_SUFFIXES, ReadOptions, Source
from .tables import Parquet, Workbook
from .text_files import TextStream
from .unread import ARCHIVES, instead_of

_READERS: dict[str, Callable[[ByteStream, ReadOptions, str], Source]] = {
    "csv": Delimited,
    "tsv": Delimited,
    "json": JsonArray,
    "jsonl": JsonLines,
    "parquet": Parquet,
    "xlsx": Workbook,
    "mbox": Mailbox,
    **dict.fromkeys(("ris", "nbib", "ciw", "cochrane"), Tagged),
    "tagged table": TaggedTable,
    "bib": BibTeX,
    "lines": PlainLines,
    **dict.fromkeys(TEXT_FORMATS, TextStream),
}
_ZIPPED = {
    **{b"xl/": "xlsx", b"opendocument.spreadsheet": "xlsx"},
    **{b"word/": "docx", b"opendocument.text": "odt"},
}
"""What the beginning of a ZIP archive holds if it is a document."""
_RTF = b"{\\rtf"
_TABULAR_SHARE = 0.95
_LINES_TRIED = 20


def format_by_name(path: Path) -> str | None:
    """The format that a file's suffix stands for, that of the file below a compression."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in COMPRESSED_SUFFIXES:
        suffixes.pop()
    return (SUFFIXES | TEXT_SUFFIXES).get(suffixes[-1]) if suffixes else None


def table_source(stream: ByteStream, options: ReadOptions) -> Source:
    """The reader for a file or stream whose rows are documents.

    Raises:
        UsageError: Neither name nor content tell the format.
    """
    format = options.format or _detected(stream)
    if format is None:
        _refuse_unread(stream)
        read = f"{', '.join(SUFFIXES | TEXT_SUFFIXES)} (also with .gz or .zst)"
        raise UsageError(
            f"cannot tell the format of {stream.name}: use one of the suffixes {read}; "
            f"or set {arg('format')}",
            code="unknown-format", field="format",
        )  # fmt: skip
    source = _READERS[format](stream, options, format)
    source.format = format
    return source


def _refuse_unread(stream: ByteStream) -> None:
    """Refuse a file of a common format that Sonde does not read.

    Raises:
        UsageError: It is one.
    """
    suffix = stream.path.suffix.lower() if stream.path else ""
    kind, advice = f"a {suffix} file", instead_of(suffix)
    if stream.sample.startswith(_RTF):
        kind, advice = "an RTF file", instead_of(".rtf")
    if advice is not None:
        said = f"{stream.name} is {kind}, which Sonde does not read: {advice}"
        raise UsageError(said, code="unknown-format", field="format")


def _detected(stream: ByteStream) -> str | None:
    named = format_by_name(stream.path) if stream.path else None
    if stream.sample.startswith(_RTF) and named not in TEXT_FORMATS:
        return None
    if stream.path and stream.path.suffix.lower() in ARCHIVES:
        return None
    if (binary := _binary_format(stream.sample)) is not None:
        return binary
    if named in (None, "text") and (references := references_in(stream.sample)):
        return references  # PubMed and Web of Science name their exports .txt
    if named in (None, "json", "jsonl"):
        named = _json_format(stream.sample, named) or named
    return named or (_text_format(stream) if stream.once else None)


def _binary_format(sample: bytes) -> str | None:
    if sample.startswith((b"PAR1", b"%PDF-")):
        return "parquet" if sample.startswith(b"PAR1") else "pdf"
    marks = _ZIPPED if sample.startswith(b"PK\x03\x04") else {}
    return next((format for mark, format in marks.items() if mark in sample), None)


def _json_format(sample: bytes, named: str | None) -> str | None:
    """JSONL is often called .json, and the other way round: whole values on lines of their own tell."""
    text = sample.decode(detect_encoding(sample), errors="replace").lstrip()
    first, *others = text.split("\n", _LINES_TRIED)[:_LINES_TRIED]
    rest = [line for line in others if line.strip()]
    if not text.startswith(("[", "{")) or (not rest and named == "jsonl" and text.startswith("{")):
        return None
    if rest and (_is_whole(first) or (named == "jsonl" and any(map(_is_whole, rest)))):
        return "jsonl"
    return "json"


def _is_whole(line: str) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _text_format(stream: ByteStream) -> str:
    """Of a stream without a name: CSV if its lines agree on the cells and its header names a text; lines otherwise."""
    lines = sample_lines(stream, detect_encoding(stream.sample))
    dialect = sniff_dialect(lines)
    header = next(dialect.reader(iter(lines)), [])
    tabular = dialect.share >= _TABULAR_SHARE and any(text_rank(cell) is not None for cell in header)
    return "csv" if tabular and all(len(cell) < 50 for cell in header) else "lines"
