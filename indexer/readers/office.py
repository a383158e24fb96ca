"""What PDF, Word and OpenDocument files hold."""

import io
import logging
import re
import zipfile
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from xml.sax.expatreader import ExpatParser
from xml.sax.handler import ContentHandler, feature_namespaces

from ..document import PAGE_BREAK
from ..wording import counted
from .content import Content, UnreadableError

if TYPE_CHECKING:
    from pypdf import DocumentInformation

_LIGATURES = str.maketrans({"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st"})
"""Signs with which PDF files print two or three letters; nobody types them in a filter."""
BLANK_PAGES = "pages_without_text"
"""The field of PDF files in which some pages have no text, such as scanned ones: their number."""
COMMENTS = "unread_comments"
"""The field of Word and OpenDocument files with comments in the margin, which are not read: their number."""

_OLE = b"\xd0\xcf\x11\xe0"
"""How Word files of before 2007 begin, and those with a password."""
_MAIN = re.compile(r"word/document\d*\.xml|content\.xml")
_MARGINS = re.compile(r"word/(header|footer)\d*\.xml|styles\.xml")
"""Parts with the headers and footers of pages; styles.xml has no other paragraphs."""
_LONGEST_PART = 1 << 28
_PARAGRAPHS = {"p", "h"}
_MIXED = {"urn:oasis:names:tc:opendocument:xmlns:text:1.0"}
"""The names whose elements have text between other elements."""
_LINE_END = "\x1e"
_SIGNS = {"tab": "\t", "s": " ", "br": _LINE_END, "cr": _LINE_END, "line-break": _LINE_END, "noBreakHyphen": "-"}
_LEFT_OUT = {
    *("pPr", "rPr", "Fallback", "moveFrom", "del"),  # the tabs of a style; what is there a second time, or deleted
    *("tracked-changes", "annotation", "note-citation", "title", "desc"),
}
"""Elements whose content is not read."""
_COMMENTS = {"annotation", "comment"}

# pypdf reports each oddity of a file as a warning; a program that wants them can still listen.
logging.getLogger("pypdf").addHandler(logging.NullHandler())


def pdf(data: bytes) -> Content:
    """The pages of a PDF, with page breaks between them, also around a page without text."""
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
    pages = [page.strip().translate(_LIGATURES).replace(PAGE_BREAK, " ") for page in pages]
    blank = sum(not page for page in pages)
    if blank == len(pages):
        raise UnreadableError(
            f"no text on {counted(len(pages), 'page')}: if it is a scan, run text recognition (OCR) first"
        )
    text = f"{PAGE_BREAK}\n\n".join(pages)  # a blank line ends a sentence
    return Content(text, title.strip(), created | {"pages": len(pages)} | ({BLANK_PAGES: blank} if blank else {}))


def _created(information: "DocumentInformation | None") -> dict[str, datetime]:
    try:
        return _dated(information.creation_date if information else None)
    except Exception:  # pypdf raises what its parsing of the date meets
        return {}


def _dated(made: datetime | None) -> dict[str, datetime]:
    """Return when a file says that it was made, in UTC; its author's program may have written anything there."""
    if made is None or not 1980 <= made.year <= 2100:
        return {}
    return {"created": made.astimezone(UTC) if made.tzinfo else made.replace(tzinfo=UTC)}


def docx(data: bytes) -> Content:
    """The paragraphs of a Word document, then its footnotes, endnotes, headers and footers, without deleted text."""
    return _zipped(data, ("word/footnotes.xml", "word/endnotes.xml"), "docProps/core.xml")


def odt(data: bytes) -> Content:
    """The paragraphs of an OpenDocument text, with its notes, then headers and footers, without deleted text."""
    return _zipped(data, (), "meta.xml")


def _zipped(data: bytes, parts: tuple[str, ...], about: str) -> Content:
    if data.startswith(_OLE):
        raise UnreadableError("it is protected by a password, or has an older format: save it again, without one")
    paragraphs, margins, remarks, properties = _Paragraphs(), _Paragraphs(), _Paragraphs(), _Properties()
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = archive.namelist()
            main = next((name for name in names if _MAIN.fullmatch(name)), "")
            for part in (main, *parts):
                if part in names:
                    _parse(archive, part, paragraphs)
            for part in filter(_MARGINS.fullmatch, names):
                _parse(archive, part, margins)
            if "word/comments.xml" in names:
                _parse(archive, "word/comments.xml", remarks)
            if about in names:
                _parse(archive, about, properties)
    except UnreadableError:
        raise
    except Exception as error:  # a damaged file makes zipfile and expat raise what its bytes lead to
        reason = " ".join(str(error).split()) or type(error).__name__
        raise UnreadableError(f"it is damaged, or protected by a password ({reason})") from error
    if not main:
        raise UnreadableError("it is damaged, or of another kind: it has no part with the text")
    lines = [*paragraphs.lines, *dict.fromkeys(margins.lines)]  # the first page may have the same header as the others
    comments = paragraphs.comments + remarks.comments
    found = _dated(properties.created()) | ({COMMENTS: comments} if comments else {})
    return Content("\n".join(lines), properties.of("title"), found)


def _parse(archive: zipfile.ZipFile, part: str, handler: ContentHandler) -> None:
    parser = ExpatParser()
    parser.setFeature(feature_namespaces, True)
    parser.setContentHandler(handler)
    with archive.open(part) as file:
        left = _LONGEST_PART
        while data := file.read(1 << 16):
            if (left := left - len(data)) < 0:  # a few bytes can unpack to terabytes
                raise UnreadableError(f"its {part} has more than {_LONGEST_PART:,} bytes")
            parser.feed(data)
    parser.close()


class _Paragraphs(ContentHandler):
    """Collects the lines of parts of a Word document (ECMA-376) or of an OpenDocument text.

    Elements are known by their local names. In the former, text stands in elements `t`; in the latter, a paragraph
    has it among its elements.
    """

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.comments = 0
        self._open: list[list[str]] = []  # several, since a note or a box of text lies within a paragraph
        self._within: list[tuple[str | None, str]] = []
        self._unseen = 0

    def startElementNS(self, name: tuple[str | None, str], qname: str | None, attrs: object) -> None:  # noqa: N802
        """Begin a paragraph, or take the sign that an element stands for."""
        self._within.append(name)
        self._unseen += name[1] in _LEFT_OUT
        self.comments += name[1] in _COMMENTS
        if name[1] in _PARAGRAPHS:
            self._open.append([])
        elif name[1] in _SIGNS:
            self._take(_SIGNS[name[1]])

    def endElementNS(self, name: tuple[str | None, str], qname: str | None) -> None:  # noqa: N802
        """End a paragraph."""
        self._within.pop()
        self._unseen -= name[1] in _LEFT_OUT
        if name[1] in _PARAGRAPHS:
            lines = "".join(self._open.pop()).split(_LINE_END)
            self.lines += filter(None, (" ".join(line.split()) for line in lines))

    def characters(self, content: str) -> None:
        """Take text."""
        space, local = self._within[-1]
        if local == "t" or space in _MIXED:
            self._take(content)

    def _take(self, text: str) -> None:
        if self._open and not self._unseen:
            self._open[-1].append(text)


class _Properties(ContentHandler):
    """Collects what a document says about itself: the texts of elements by their local names."""

    def __init__(self) -> None:
        super().__init__()
        self._said: dict[str, str] = {}
        self._name = ""

    def startElementNS(self, name: tuple[str | None, str], qname: str | None, attrs: object) -> None:  # noqa: N802
        """Remember the element."""
        self._name = name[1]

    def characters(self, content: str) -> None:
        """Take text."""
        self._said[self._name] = self._said.get(self._name, "") + content

    def of(self, name: str) -> str:
        """Return the text of an element, "" if there is none."""
        return self._said.get(name, "").strip()

    def created(self) -> datetime | None:
        """Return when the document was made."""
        try:
            return datetime.fromisoformat(self.of("created") or self.of("creation-date"))
        except ValueError:
            return None
