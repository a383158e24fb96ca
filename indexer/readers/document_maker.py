"""A row and the roles of its columns make a document, or a reason why not."""

from collections.abc import Collection, Iterator, Mapping

from ..document import Document, Skipped, Value
from .celltypes import ColumnType
from .column_finder import Roles
from .encoding import broken_byte
from .natives import as_text, natural
from .source import Item, Row


class DocumentMaker:
    """Turns what a source yields into what the build takes."""

    def __init__(self, roles: Roles, max_chars: int, leave_out: Collection[str] = ()) -> None:
        columns = roles.columns
        self._columns = columns
        self._types = roles.types
        self._max_chars = max_chars
        self._taken = {*columns.text, columns.title, columns.id, columns.language, *leave_out}

    def make(self, item: Item) -> Document | Skipped:
        """A `Document` for a row that can be one; anything that cannot be stored or searched is `Skipped`."""
        if isinstance(item, Skipped):
            return item
        document = item if isinstance(item, Document) else self._document(item)
        reason = self._fault(document)
        return Skipped(document.origin, reason) if reason else document

    def _document(self, row: Row) -> Document:
        columns, values = self._columns, row.values
        texts = [_prose(natural(values.get(name))) for name in columns.text]
        return Document(
            text="\n\n".join(text for text in texts if text.strip()),
            title=self._string(values, columns.title) or "",
            key=self._string(values, columns.id),
            metadata=self._metadata(values),
            language=self._string(values, columns.language),
            origin=row.origin,
        )

    def _string(self, values: Mapping[str, object], name: str | None) -> str | None:
        value = natural(values.get(name)) if name is not None else None
        text = as_text(int(value) if isinstance(value, float) and value.is_integer() else value)
        return text if text.strip() else None

    def _metadata(self, values: Mapping[str, object]) -> dict[str, Value]:
        metadata = {}
        for name, raw in values.items():
            if name not in self._taken:
                kind: ColumnType | None = self._types.get(name)
                metadata[name] = kind.value(raw) if kind else natural(raw)
        return metadata

    def _fault(self, document: Document) -> str | None:
        if not document.text.strip() and not document.title.strip():
            return "no text and no title: " + ("only white space" if document.text else "empty")
        for name, text in _strings(document):
            if len(text) > self._max_chars:
                return f"the {name} has {len(text):,} characters, more than the limit of {self._max_chars:,}"
            if "\0" in text:
                return f"the {name} contains a NUL byte at character {text.index(chr(0)) + 1}"
            if broken := broken_byte(text):
                return f"{broken} of the {name}"
        return None


def _prose(value: Value) -> str:
    return "\n".join(map(as_text, value)) if isinstance(value, list) else as_text(value)


def _strings(document: Document) -> Iterator[tuple[str, str]]:
    yield "text", document.text
    yield "title", document.title
    yield "id", document.key or ""
    yield "language", document.language or ""
    for name, value in document.metadata.items():
        yield "name of a column", name
        for part in value if isinstance(value, list) else (value,):
            if isinstance(part, str):
                yield f"column {name!r}", part
