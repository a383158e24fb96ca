"""What a file of text, Markdown or HTML holds, and what the reader of every format returns."""

import io
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from ..document import Value
from .encoding import detect_encoding

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


class UnreadableError(Exception):
    """A file whose content is not available; the message is the reason."""


@dataclass(frozen=True)
class Content:
    """What a file holds. `title` is "" where the file itself has none."""

    text: str
    title: str = ""
    metadata: Mapping[str, Value] = field(default_factory=dict)


def plain(data: bytes, encoding: str | None) -> Content:
    """The text of a file without a format."""
    return Content(decoded(data, encoding))


def decoded(data: bytes, encoding: str | None) -> str:
    """Bytes as text, by an encoding or the one that they seem to have; invalid ones become surrogates."""
    # A lone carriage return or "\r\n" is a line end here as everywhere in Python's text files.
    raw = io.BytesIO(data)
    return io.TextIOWrapper(raw, encoding or detect_encoding(data), errors="surrogateescape").read()


def markdown(data: bytes, encoding: str | None) -> Content:
    """The text as it is written; its title is that of the front matter or the first heading."""
    text = decoded(data, encoding)
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


def html(data: bytes, encoding: str | None) -> Content:
    """What a page shows, a line for each block, and the title in its head."""
    from selectolax.lexbor import LexborHTMLParser

    page = decoded(data, encoding or declared_encoding(data))
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


def declared_encoding(data: bytes) -> str | None:
    """The encoding that a page names in its head, if Python knows it and no byte order mark outranks it."""
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
