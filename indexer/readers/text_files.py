"""Files that are one document each, alone or in folders."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from ..document import Document, Skipped, is_blank
from ..errors import SondeError
from .bytestream import COMPRESSED_SUFFIXES, ByteStream, not_compressed
from .child import TextReaders
from .columns import Columns
from .content import Content, UnreadableError, declared_encoding, html, markdown, plain
from .encoding import detect_encoding
from .folders import files_to_read
from .message import MAIL_FIELDS, message
from .office import BLANK_PAGES, COMMENTS, docx, odt, pdf
from .source import TEXT_SUFFIXES, Meter, Place, ReadOptions, Source, source_errors
from .unread import counted_kinds, what_to_do

_TEXTUAL: Mapping[str, Callable[[bytes, str | None], Content]] = {"markdown": markdown, "html": html}
_BINARY: Mapping[str, Callable[[bytes], Content]] = {"pdf": pdf, "docx": docx, "odt": odt, "eml": message}


def read_content(data: bytes, format: str, encoding: str | None, hint: str | None = None) -> Content:
    """The content of a file.

    Args:
        data: The file's bytes.
        format: One of `TEXT_FORMATS`.
        encoding: The encoding where the user declared it.
        hint: That of a file which neither is UTF-8 nor names another one.

    Raises:
        UnreadableError: The file is broken, protected, or holds no text at all.
    """
    if format in _BINARY:
        content = _BINARY[format](data)
    else:
        if encoding is None and hint and not (format == "html" and declared_encoding(data)):
            encoding = detect_encoding(data, hint)
        content = _TEXTUAL.get(format, plain)(data, encoding)
    if is_blank(content.text):
        raise UnreadableError("no text in it" if data else "the file is empty")
    return content


_METADATA = {
    "path": "text",
    "folder": "text",
    "extension": "text",
    "bytes": "integer",
    "modified": "date",
}
_OF_FORMAT: Mapping[str, Mapping[str, str]] = {
    "pdf": {"created": "date", "pages": "integer", BLANK_PAGES: "integer"},
    "docx": {"created": "date", COMMENTS: "integer"},
    "odt": {"created": "date", COMMENTS: "integer"},
    "eml": MAIL_FIELDS,
}
_LONGEST_BINARY = 1 << 29
_LONGEST_TEXT = 1 << 27


class TextFiles(Source):
    """Documents whose key is the file's path relative to the folder that holds them all."""

    def __init__(self, name: str, paths: Sequence[Path], options: ReadOptions) -> None:
        self.name = name
        self.encoding = options.encoding or ""
        self._options = options
        self._base = _base(paths)
        self._files, self.unread = files_to_read(paths, options.format)
        if not self._files:
            raise SondeError(_nothing_to_read(name, self.unread))
        self._sizes = [_size(file) for file in self._files]
        self.total = sum(self._sizes)
        self.items_total = len(self._files)
        formats = dict.fromkeys(_format(file, options.format) for file in self._files)
        self.columns = _columns(len(self._files), formats, self.unread)

    def items(self, meter: Meter) -> Iterator[Document | Skipped]:
        """Each file in turn."""
        keyed = [(Path(os.path.relpath(file, self._base)).as_posix(), file) for file in self._files]
        with closing(TextReaders(keyed, self._options)) as readers:
            for size, item in zip(self._sizes, readers.items(), strict=True):
                meter.done += size
                yield item


def read_text_file(key: str, file: Path, options: ReadOptions) -> Document | Skipped:
    """A file as a document, or why it is none."""
    format = _format(file, options.format)
    try:
        with source_errors(key, Place()):
            with ByteStream(key, file).open(Meter()) as stream:
                data = not_compressed(key, _bounded(stream, format, options))
                status = file.stat()
            content = read_content(data, format, options.encoding, options.encoding_hint)
    except (UnreadableError, SondeError) as error:
        return Skipped(key, str(error), key if _size(file) else None)  # an empty file has been read
    return _document(key, format, content, status)


class TextStream(Source):
    """A whole stream, such as standard input, as one document without a key."""

    def __init__(self, stream: ByteStream, options: ReadOptions, format: str) -> None:
        self._stream = stream
        self._options = options
        self._format = format
        self.name = stream.name
        self.once = stream.once
        self.total = stream.size
        self.columns = Columns(("content",), reasons={"text": f"the whole {format}"})

    def items(self, meter: Meter) -> Iterator[Document | Skipped]:
        """The one document.

        Raises:
            SondeError: The stream is broken or holds no text.
        """
        try:
            with self._stream.open(meter) as file:
                data = not_compressed(self.name, _bounded(file, self._format, self._options))
            content = read_content(data, self._format, self._options.encoding, self._options.encoding_hint)
        except UnreadableError as error:
            raise SondeError(f"{self.name} cannot be read: {error}") from error
        yield Document(content.text, content.title, metadata=content.metadata, origin=self.name)


def _bounded(file: BinaryIO, format: str, options: ReadOptions) -> bytes:
    """All bytes of a file.

    Raises:
        UnreadableError: There are more than a text of the allowed length needs, or than fit into memory.
    """
    most = _LONGEST_BINARY if format in _BINARY else max(_LONGEST_TEXT, 4 * options.max_chars)
    data = bytearray()
    while part := file.read(1 << 20):  # in parts, because a single `read` takes the memory of all that it may return
        data += part
        if len(data) > most:
            raise UnreadableError(f"the file has more than {most:,} bytes")
    return bytes(data)


def _document(key: str, format: str, content: Content, status: os.stat_result) -> Document:
    path = Path(key)
    metadata = {
        "path": key,
        "folder": path.parent.as_posix(),
        "extension": path.suffix.lstrip(".").lower() or None,
        "bytes": status.st_size,
        "modified": datetime.fromtimestamp(status.st_mtime, UTC),
        **content.metadata,
    }
    stem = path.with_suffix("") if path.suffix.lower() in COMPRESSED_SUFFIXES else path
    title = content.title or ("" if format == "eml" else stem.stem)  # a message may have no subject
    return Document(content.text, title, key, metadata, origin=key)


def _base(paths: Sequence[Path]) -> Path:
    folders = [path.absolute() if path.is_dir() else path.absolute().parent for path in paths]
    return Path(os.path.commonpath(folders))


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0


def _format(file: Path, format: str | None) -> str:
    plain = file.with_suffix("") if file.suffix.lower() in COMPRESSED_SUFFIXES else file
    return format or TEXT_SUFFIXES.get(plain.suffix.lower(), "text")


def _columns(files: int, formats: Iterable[str], unread: Mapping[str, int]) -> Columns:
    left = f"; left out: {counted_kinds(unread)}" if unread else ""
    number = f"{files:,} file{'s' if files != 1 else ''}"
    fields = dict(_METADATA)
    for format in formats:
        fields |= _OF_FORMAT.get(format, {})
    reasons = {"text": f"of {number}{left}", "title": "heading, subject, property or file name", "id": "relative"}
    return Columns(("content",), "title", "path", None, fields, reasons)


def _nothing_to_read(name: str, unread: Mapping[str, int]) -> str:
    holds = f"; it holds {counted_kinds(unread)}" if unread else ""
    return f"{name} has no readable file ({', '.join(TEXT_SUFFIXES)}){holds}: {what_to_do(unread)}"
