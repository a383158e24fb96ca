"""Text, Markdown, HTML and PDF files, alone or in folders: each is one document."""

import io
import logging
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from ..document import Document, Skipped, is_blank
from ..errors import SondeError
from ..wording import counted
from .bytestream import COMPRESSED_SUFFIXES, ByteStream, not_compressed
from .child import TextReaders
from .columns import Columns
from .encoding import detect_encoding
from .folders import files_to_read
from .source import TEXT_SUFFIXES, Meter, Place, ReadOptions, Source, source_errors
from .unread import counted_kinds, what_to_do

if TYPE_CHECKING:
    from pypdf import DocumentInformation

_FRONT_MATTER = re.compile(r"\A---[ \t]*\r?\n(.*?)\r?\n(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL)
_FRONT_TITLE = re.compile(r"^title:\s*+(\S.*)$", re.MULTILINE)
_CHARSET = re.compile(rb"""<meta[^>]{0,200}charset\s*=\s*["']?([\w:.-]+)""", re.IGNORECASE)
_TITLE_WITHIN = 50_000
_BLOCKS = (
    "p,div,li,br,tr,td,th,h1,h2,h3,h4,h5,h6,section,article,header,footer,blockquote,pre,dt,dd,hr,table,ul,ol,option"
)
_TAG = re.compile(r"<(/?)([a-zA-Z][^\s/<>]*+)([^<>]*+)>")
_RAW = {"script", "style", "textarea", "title", "xmp"}
_UNCLOSED = {
    *("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr", "param"),
    *("p", "li", "dt", "dd", "tr", "td", "th", "thead", "tbody", "tfoot", "option", "optgroup", "colgroup"),
    *("rt", "rp", "html", "head", "body"),
}
"""Tags that hold nothing, and those that the next one of their kind closes."""
_DEEPEST = 2_000
_UNSEEN = ["script", "style", "noscript", "template", "head", "svg"]
_BREAK = "\x1e"
_LIGATURES = str.maketrans({"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st"})
"""Signs with which PDF files print two or three letters; nobody types them in a filter."""
BLANK_PAGES = "pages_without_text"
"""The field of PDF files in which some pages have no text, such as scanned ones: their number."""

# pypdf reports each oddity of a file as a warning; a program that wants them can still listen.
logging.getLogger("pypdf").addHandler(logging.NullHandler())


class UnreadableError(Exception):
    """A file whose content is not available; the message is the reason."""


@dataclass(frozen=True)
class Content:
    """What a file holds. `title` is "" where the file itself has none."""

    text: str
    title: str = ""
    metadata: Mapping[str, int | datetime] = field(default_factory=dict)


def read_content(data: bytes, format: str, encoding: str | None, hint: str | None = None) -> Content:
    """The content of a file.

    Args:
        data: The file's bytes.
        format: text, markdown, html or pdf.
        encoding: The encoding where the user declared it.
        hint: That of a file which neither is UTF-8 nor names another one.

    Raises:
        UnreadableError: The file is broken, protected, or holds no text at all.
    """
    readers: dict[str, Callable[[bytes, str | None], Content]] = {"markdown": _markdown, "html": _html, "pdf": _pdf}
    if encoding is None and hint and format != "pdf" and not (format == "html" and _declared(data)):
        encoding = detect_encoding(data, hint)
    content = readers.get(format, _plain)(data, encoding)
    if is_blank(content.text):
        raise UnreadableError("no text in it" if data else "the file is empty")
    return content


def _plain(data: bytes, encoding: str | None) -> Content:
    return Content(_decoded(data, encoding))


def _decoded(data: bytes, encoding: str | None) -> str:
    # A lone carriage return or "\r\n" is a line end here as everywhere in Python's text files.
    raw = io.BytesIO(data)
    return io.TextIOWrapper(raw, encoding or detect_encoding(data), errors="surrogateescape").read()


def _markdown(data: bytes, encoding: str | None) -> Content:
    text = _decoded(data, encoding)
    front = _FRONT_MATTER.match(text)
    titled = _FRONT_TITLE.search(front[1]) if front else None
    return Content(text, _unquoted(titled[1]) if titled else _first_heading(text[front.end() :] if front else text))


def _unquoted(value: str) -> str:
    value = value.strip()
    return value[1:-1] if len(value) > 2 and value[0] in "'\"" and value[0] == value[-1] else value


def _first_heading(text: str) -> str:
    from markdown_it import MarkdownIt

    tokens = MarkdownIt().parse(text[:_TITLE_WITHIN])
    headed = (inline for opening, inline in pairwise(tokens) if opening.type == "heading_open")
    heading = next(headed, None)
    children = (heading.children or ()) if heading else ()
    return "".join(" " if child.type == "softbreak" else child.content for child in children).strip()


def _html(data: bytes, encoding: str | None) -> Content:
    from selectolax.lexbor import LexborHTMLParser

    page = _decoded(data, encoding or _declared(data))
    if _nested_deeply(page):
        raise UnreadableError(f"its tags are nested more than {_DEEPEST:,} levels deep")
    tree = LexborHTMLParser(page)
    titled = tree.css_first("title")
    title = " ".join(titled.text().split()) if titled else ""
    tree.strip_tags(_UNSEEN)
    for node in tree.css(_BLOCKS):
        node.insert_before(_BREAK)
        node.insert_after(_BREAK)
    text = tree.root.text() if tree.root else ""
    lines = (" ".join(line.split()) for line in text.split(_BREAK))
    return Content("\n".join(line for line in lines if line), title)


def _nested_deeply(page: str) -> bool:
    """Whether tags are nested so deeply that the parser, which looks at all open ones at each tag, would not end."""
    level = after = 0
    for tag in _TAG.finditer(page) if page.count("<") > _DEEPEST else ():
        name = tag[2].lower()
        if tag.start() < after or name in _UNCLOSED or tag[3].endswith("/"):
            continue
        if tag[1]:
            level = max(level - 1, 0)
        elif name in _RAW:
            end = re.compile(f"</{name}", re.IGNORECASE).search(page, tag.end())
            after = end.end() if end else len(page)
        elif (level := level + 1) > _DEEPEST:
            return True
    return False


def _declared(data: bytes) -> str | None:
    """The encoding that the page names in its head, if Python knows it and no byte order mark outranks it."""
    named = _CHARSET.search(data[:4096])
    marked = data.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"))
    if named is None or marked:
        return None
    name = named[1].decode()
    try:
        "".encode(name)
    except LookupError:
        return None
    return None if name.lower().startswith("utf") else name


def _pdf(data: bytes, encoding: str | None) -> Content:
    import pypdf

    try:
        reader = pypdf.PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            raise UnreadableError("the PDF is protected by a password")
        pages = [page.extract_text() for page in reader.pages]
        title = str((reader.metadata and reader.metadata.title) or "")
        created = _created(reader.metadata)
    except UnreadableError:
        raise
    except Exception as error:  # a damaged PDF makes pypdf raise whatever its broken objects lead to
        raise UnreadableError(f"broken PDF: {' '.join(str(error).split()) or type(error).__name__}") from error
    written = [page.strip().translate(_LIGATURES) for page in pages if page.strip()]
    if not written:
        raise UnreadableError(
            f"no text on {counted(len(pages), 'page')}: if it is a scan, run text recognition (OCR) first"
        )
    blank = {BLANK_PAGES: len(pages) - len(written)} if len(written) < len(pages) else {}
    return Content("\n\n".join(written), title.strip(), created | {"pages": len(pages), **blank})


def _created(information: "DocumentInformation | None") -> dict[str, datetime]:
    """Return when a PDF says that it was made, in UTC; its author's program may have written anything there."""
    try:
        made = information.creation_date if information else None
    except Exception:  # pypdf raises what its parsing of the date meets
        return {}
    if made is None or not 1980 <= made.year <= 2100:
        return {}
    return {"created": made.astimezone(UTC) if made.tzinfo else made.replace(tzinfo=UTC)}


_METADATA = {
    "path": "text",
    "folder": "text",
    "extension": "text",
    "bytes": "integer",
    "modified": "date",
    "created": "date",
    "pages": "integer",
    BLANK_PAGES: "integer",
}
_LONGEST_PDF = 1 << 29
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
        self.columns = _columns(len(self._files), self.unread)

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
        return Skipped(key, str(error))
    return _document(key, content, status)


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
    most = _LONGEST_PDF if format == "pdf" else max(_LONGEST_TEXT, 4 * options.max_chars)
    data = bytearray()
    while part := file.read(1 << 20):  # in parts, because a single `read` takes the memory of all that it may return
        data += part
        if len(data) > most:
            raise UnreadableError(f"the file has more than {most:,} bytes")
    return bytes(data)


def _document(key: str, content: Content, status: os.stat_result) -> Document:
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
    return Document(content.text, content.title or stem.stem, key, metadata, origin=key)


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


def _columns(files: int, unread: Mapping[str, int]) -> Columns:
    left = f"; left out: {counted_kinds(unread)}" if unread else ""
    number = f"{files:,} file{'s' if files != 1 else ''}"
    reasons = {"text": f"of {number}{left}", "title": "heading, HTML title, PDF title or file name", "id": "relative"}
    return Columns(("content",), "title", "path", None, _METADATA, reasons)


def _nothing_to_read(name: str, unread: Mapping[str, int]) -> str:
    holds = f"; it holds {counted_kinds(unread)}" if unread else ""
    return f"{name} has no readable file ({', '.join(TEXT_SUFFIXES)}){holds}: {what_to_do(unread)}"
