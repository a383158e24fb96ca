"""The text and title inside a text, Markdown, HTML or PDF file."""

import io
import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from .encoding import detect_encoding

SUFFIXES = {".txt": "text", ".text": "text", ".rst": "text", ".md": "markdown", ".markdown": "markdown"}
SUFFIXES |= {".html": "html", ".htm": "html", ".xhtml": "html", ".pdf": "pdf"}

_FRONT_MATTER = re.compile(r"\A---[ \t]*\r?\n(.*?)\r?\n(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL)
_FRONT_TITLE = re.compile(r"^title:\s*(['\"]?)(.+?)\1\s*$", re.MULTILINE)
_CHARSET = re.compile(rb"""<meta[^>]{0,200}charset\s*=\s*["']?([\w:.-]+)""", re.IGNORECASE)
_TITLE_WITHIN = 50_000
_BLOCKS = (
    "p,div,li,br,tr,td,th,h1,h2,h3,h4,h5,h6,section,article,header,footer,blockquote,pre,dt,dd,hr,table,ul,ol,option"
)
_UNSEEN = ["script", "style", "noscript", "template", "head", "svg"]
_BREAK = "\x1e"

# pypdf reports each oddity of a file as a warning; a program that wants them can still listen.
logging.getLogger("pypdf").addHandler(logging.NullHandler())


class UnreadableError(Exception):
    """A file whose content cannot be had; the message is the reason."""


@dataclass(frozen=True)
class Content:
    """What a file holds. `title` is "" where the file itself has none."""

    text: str
    title: str = ""
    metadata: Mapping[str, int] = field(default_factory=dict)


def read_content(data: bytes, format: str, encoding: str | None) -> Content:
    """The content of a file.

    Args:
        data: The file's bytes.
        format: text, markdown, html or pdf.
        encoding: The encoding where the user declared it.

    Raises:
        UnreadableError: The file is broken, protected, or holds no text at all.
    """
    readers: dict[str, Callable[[bytes, str | None], Content]] = {"markdown": _markdown, "html": _html, "pdf": _pdf}
    content = readers.get(format, _plain)(data, encoding)
    if not content.text.strip():
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
    return Content(text, titled[2] if titled else _first_heading(text[front.end() :] if front else text))


def _first_heading(text: str) -> str:
    from markdown_it import MarkdownIt

    tokens = MarkdownIt().parse(text[:_TITLE_WITHIN])
    headed = (inline for opening, inline in pairwise(tokens) if opening.type == "heading_open")
    heading = next(headed, None)
    children = (heading.children or ()) if heading else ()
    return "".join(" " if child.type == "softbreak" else child.content for child in children).strip()


def _html(data: bytes, encoding: str | None) -> Content:
    from selectolax.lexbor import LexborHTMLParser

    tree = LexborHTMLParser(_decoded(data, encoding or _declared(data)))
    titled = tree.css_first("title")
    title = " ".join(titled.text().split()) if titled else ""
    tree.strip_tags(_UNSEEN)
    for node in tree.css(_BLOCKS):
        node.insert_before(_BREAK)
        node.insert_after(_BREAK)
    text = tree.root.text() if tree.root else ""
    lines = (" ".join(line.split()) for line in text.split(_BREAK))
    return Content("\n".join(line for line in lines if line), title)


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
    except UnreadableError:
        raise
    except Exception as error:  # a damaged PDF makes pypdf raise whatever its broken objects lead to
        raise UnreadableError(f"broken PDF: {' '.join(str(error).split()) or type(error).__name__}") from error
    text = "\n\n".join(page.strip() for page in pages if page.strip())
    if not text:
        raise UnreadableError(f"no text on its {len(pages)} pages: a scan needs text recognition (OCR) first")
    return Content(text, title.strip(), {"pages": len(pages)})
