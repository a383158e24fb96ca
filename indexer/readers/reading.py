"""One pass over one or several sources: rows become documents, or reasons why not."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from ..document import Document, Skipped, Value, composed, composed_value, is_blank
from ..errors import SondeError, UsageError, arg
from ..wording import counted
from .coercion import Coerced, Misfits
from .column_finder import Roles, document_columns, find_columns
from .column_types import ColumnType
from .columns import Columns, merged
from .encoding import broken_byte, is_undecoded
from .source import Item, Meter, Place, ReadOptions, Row, Source, source_errors
from .values import LISTS, NestedError, cell_text, id_text, natural, weight


class DocumentMaker:
    """Turns what a source yields into what the build takes."""

    def __init__(self, roles: Roles, max_chars: int, leave_out: Collection[str] = (), encoding: str = "") -> None:
        columns = roles.columns
        self._columns = columns
        self._types = roles.types
        self.misfits: dict[str, Misfits] = {}
        self.values = Counter[str]()
        self._max_chars = max_chars
        self._encoding = encoding
        self._taken = {*columns.text, columns.title, columns.id, *leave_out} - {"", None}

    def make(self, item: Item) -> Document | Skipped:
        """A `Document` for a row that can be one; anything that cannot be stored or searched is `Skipped`."""
        if isinstance(item, Skipped):
            return item
        try:
            document = with_composed_names(item) if isinstance(item, Document) else self._document(item)
        except NestedError as error:
            return Skipped(item.origin, str(error))
        reason = self._fault(document)
        return Skipped(document.origin, reason) if reason else document

    def key(self, item: Item) -> str | None:
        """Return the id of a row as it is written, not composed; None if it has none or cannot be read."""
        if isinstance(item, Row):
            try:
                return self._string(item.values, self._columns.id) or None
            except NestedError:
                return None
        return item.key if isinstance(item, Document) else None

    def _key(self, values: Mapping[str, object]) -> str | None:
        text = self._string(values, self._columns.id)
        return composed(text) if text else None

    def _document(self, row: Row) -> Document:
        columns, values = self._columns, row.values
        texts = [_prose(natural(values.get(name))) for name in columns.text]
        return Document(
            text="\n\n".join(text for text in texts if text.strip()),
            title=self._string(values, columns.title) or "",
            key=self._key(values),
            metadata=self._metadata(row),
            language=self._string(values, columns.language),
            origin=row.origin,
        )

    def _string(self, values: Mapping[str, object], name: str | None) -> str | None:
        text = id_text(values.get(name)) if name is not None else ""
        return text if text.strip() else None

    def _metadata(self, row: Row) -> dict[str, Value]:
        metadata = {}
        for name, raw in row.values.items():
            if name not in self._taken:
                kind: ColumnType | None = self._types.get(name)
                value = composed_value(kind.value(raw) if kind else natural(raw))
                metadata[name] = self._fitting(name, kind, value, row.origin) if isinstance(kind, Coerced) else value
        return metadata

    def _fitting(self, name: str, kind: Coerced, value: Value, origin: str) -> Value:
        """Return the value, None if it does not fit the type that the column was given; count both."""
        self.values[name] += value is not None
        if kind.fits(value):
            return value
        self.misfits.setdefault(name, Misfits(kind.form, cell_text(value), origin)).count += 1
        return None

    def _fault(self, document: Document) -> str | None:
        if is_blank(document.text) and is_blank(document.title):
            return "no text and no title: " + ("only white space" if document.text else "empty")
        return string_fault(_strings(document), self._max_chars, self._encoding)


def with_composed_names(document: Document) -> Document:
    """Return a document with its id and metadata composed, as every collection holds them; its text stays as it is."""
    metadata = {composed(name): composed_value(value) for name, value in document.metadata.items()}
    return replace(document, key=document.key and composed(document.key), metadata=metadata)


def string_fault(strings: Iterable[tuple[str, str]], max_chars: int, encoding: str = "") -> str | None:
    """Return what is wrong with the first string that cannot be stored, each given with its name; None if all can.

    For `encoding`, see `broken_byte`.
    """
    strings = list(strings)
    together = "".join([text for _, text in strings])
    if len(together) <= max_chars and "\0" not in together and not broken_byte(together):
        return None
    for name, text in strings:
        if len(text) > max_chars:
            return f"the {name} has {len(text):,} characters, more than the limit of {max_chars:,}"
        if "\0" in text:
            return f"the {name} contains a NUL byte at character {text.index(chr(0)) + 1}"
        if broken := broken_byte(text, encoding):
            return f"{broken} of the {name}"
    return None


def _prose(value: Value) -> str:
    return "\n".join(map(cell_text, value)) if isinstance(value, list) else cell_text(value)


def _strings(document: Document) -> Iterator[tuple[str, str]]:
    yield "text", document.text
    yield "title", document.title
    yield "id", document.key or ""
    yield "language", document.language or ""
    yield from metadata_strings(document.metadata)


def metadata_strings(metadata: Mapping[str, Value]) -> Iterator[tuple[str, str]]:
    """Yield the strings in metadata, names and values, each with what a message calls it."""
    for name, value in metadata.items():
        yield "name of a column", name
        for part in value if isinstance(value, list) else (value,):
            if isinstance(part, str):
                yield f"column {name!r}", part


_SAMPLE_ROWS = 1000
_SAMPLE_CHARS = 50_000_000
_BROKEN_SHARE = 0.9
_UNDECODED_SHARE = 0.05
"""Rows with bytes that are no text in an encoding that the user gave, above which it is taken for a mistake: bytes that
are text in a wrong encoding are far more, and would be stored as other characters."""
_ENCODINGS = "cp1252, cp1256, euc-jp, gb18030 or big5"
_Step = tuple[tuple[int, int], Document | Skipped]


@dataclass(frozen=True)
class ReadProgress:
    """How far a reading has come, in rows or in bytes as stored (so compressed ones); `total` is None where unknown."""

    done: int
    total: int | None
    unit: str

    @property
    def fraction(self) -> float | None:
        """0 to 1, None where the total is unknown."""
        return min(1.0, self.done / self.total) if self.total else None


class Part:
    """One source with the roles of its columns, decided on its first rows."""

    def __init__(self, source: Source, options: ReadOptions) -> None:
        self.source = source
        pass_ = self._items()
        sample = list(_sampled(pass_)) if source.columns is None else []
        self._rest = chain(sample, pass_) if source.once else None
        items = [item for _, item in sample]
        roles = self._roles(items, options)
        self.columns = roles.columns
        self.types = roles.types
        self.names = dict.fromkeys(name for item in items if isinstance(item, Row) for name in item.values)
        self.aside = roles.aside
        self._maker = DocumentMaker(roles, options.max_chars, {*options.leave_out, *options.aside}, source.encoding)

    def documents(self) -> Iterator[tuple[int, Document | Skipped]]:
        """Each document or skipped row with how far the source had come."""
        self._maker.misfits.clear()
        self._maker.values.clear()
        for done, item in self._rest if self._rest is not None else self._items():
            yield done, self._maker.make(item)

    def ids(self) -> Iterator[str | None]:
        """Each row's id as it is written, that of a row which will be skipped too; quicker than its document."""
        return (self._maker.key(item) for _, item in self._items())

    @property
    def misfits(self) -> Mapping[str, Misfits]:
        """The columns with values that do not fit the types that they were given, in the latest pass."""
        for name, found in self._maker.misfits.items():
            found.total = self._maker.values[name]
        return self._maker.misfits

    def _roles(self, items: Sequence[Item], options: ReadOptions) -> Roles:
        if self.source.columns is not None:
            return Roles(self.source.columns, {})
        check_sample(self.source, items, options)
        rows = [item for item in items if isinstance(item, Row)]
        if not rows:
            return Roles(document_columns([item for item in items if isinstance(item, Document)]), {})
        try:
            return find_columns(rows, options, self.source.textual, self.source.note)
        except SondeError as error:
            error.prefix(self.source.name)
            if self.source.begins:
                error.suffix(self.source.above)
            raise

    def _items(self) -> Iterator[tuple[int, Item]]:
        meter, place = Meter(), Place()
        with source_errors(self.source.name, place):
            for item in self.source.items(meter):
                place.origin = item.origin
                yield meter.done, item


class Reading:
    """Documents of one or several sources, streamed; made by `read`.

    Iterating gives each `Document` or `Skipped` in the source's order, and can be repeated unless the source is
    standard input, a pipe or a generator.
    """

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = parts
        self._at = (0, 0)
        self._started = False
        self._ahead: list[_Step] = []
        # Only where it is used: it refers to this object, and so keeps its reader process until a garbage collection.
        self._running = self._walk() if self.once else iter(())

    @property
    def name(self) -> str:
        """What is read, for messages."""
        more = len(self._parts) - 1
        return self._parts[0].source.name + (f" and {more} more" if more else "")

    @property
    def parts(self) -> Sequence[Part]:
        """The sources, in their order."""
        return self._parts

    @property
    def once(self) -> bool:
        """Whether a single pass is all there is."""
        return any(part.source.once for part in self._parts)

    @property
    def columns(self) -> Columns:
        """The role and type of every column."""
        return merged([(part.source.name, part.columns) for part in self._parts])

    def __iter__(self) -> Iterator[Document | Skipped]:
        """Start a pass.

        Raises:
            SondeError: The source can be read only once and has been; or, while iterating, its data breaks off.
        """
        if not self.once:
            return self._followed(self._walk())
        if self._started:
            raise SondeError(f"{self.name} can be read only once: save it as a file, or look at it first with head(n)")
        self._started = True
        ahead, self._ahead = self._ahead, []
        return self._followed(chain(ahead, self._running))

    def head(self, n: int) -> list[Document]:
        """The first `n` documents. A later pass still gives all of them; `progress` says how far these reached.

        Raises:
            SondeError: The source can be read only once and is being read already.
        """
        if self.once and self._started:
            raise SondeError(f"{self.name} is already being read: call head(n) first")
        found: list[Document] = []
        items = self._followed(self._peeked() if self.once else self._walk())
        while len(found) < n and (item := next(items, None)) is not None:
            found += [item] if isinstance(item, Document) else []
        return found

    def ids(self) -> Iterator[str]:
        """Start a pass over the ids alone, as they are written; not for a single pass.

        Those of rows that cannot be used are among them. A document has its id composed.
        """
        return (key for part in self._parts for key in part.ids() if key is not None)

    @property
    def given_types(self) -> dict[str, str]:
        """The types that columns were given, with the formats of dates that were found."""
        types = (item for part in self._parts for item in part.types.items())
        return {name: kind.form for name, kind in types if isinstance(kind, Coerced)}

    @property
    def forms(self) -> dict[str, str]:
        """How numbers and dates in the other columns are written, where that is not plain."""
        types = (item for part in self._parts for item in part.types.items())
        return {name: kind.form for name, kind in types if kind.form and not isinstance(kind, Coerced)}

    @property
    def aside(self) -> tuple[str, ...]:
        """The columns of `leave_out_hint` that are left out of the metadata."""
        return tuple(dict.fromkeys(name for part in self._parts for name in part.aside))

    @property
    def unread_files(self) -> dict[str, int]:
        """How many files of folders are left out, by their kinds."""
        return {kind: count for part in self._parts for kind, count in part.source.unread.items()}

    def misfits(self) -> Iterator[tuple[str, str, Misfits]]:
        """Give the source and the column of values that did not fit a type that the column was given, and these."""
        for part in self._parts:
            for name, found in part.misfits.items():
                yield part.source.name, name, found

    def progress(self) -> ReadProgress:
        """How far the latest pass, or `head`, has come."""
        index, done = self._at
        sources = [part.source for part in self._parts]
        totals = [source.total for source in sources]
        before = sum(total or 0 for total in totals[:index])
        known = [total for total in totals if total is not None]
        return ReadProgress(before + done, sum(known) if len(known) == len(totals) else None, sources[0].unit)

    def _walk(self) -> Iterator[_Step]:
        for index, part in enumerate(self._parts):
            table = part.source.name if len(self._parts) > 1 and part.source.columns is None else ""
            for done, item in part.documents():
                if table and isinstance(item, Skipped):
                    item = replace(item, origin=f"{table}, {item.origin}")
                yield (index, done), item

    def _peeked(self) -> Iterator[_Step]:
        yield from list(self._ahead)
        for step in self._running:
            self._ahead.append(step)
            yield step

    def _followed(self, steps: Iterable[_Step]) -> Iterator[Document | Skipped]:
        for at, item in steps:
            self._at = at
            yield item


def _sampled(items: Iterator[tuple[int, Item]]) -> Iterator[tuple[int, Item]]:
    chars = 0
    for count, (done, item) in enumerate(items, start=1):
        yield done, item
        values = item.values.values() if isinstance(item, Row) else ()
        chars += sum(len(value) if isinstance(value, str) else 8 * weight(value) for value in values if _sized(value))
        if count >= _SAMPLE_ROWS or chars >= _SAMPLE_CHARS:
            return


def _is_undecoded(row: Row) -> bool:
    return any(isinstance(text, str) and is_undecoded(text) for text in (*row.values, *row.values.values()))


def _sized(value: object) -> bool:
    return isinstance(value, (str, *LISTS))


def check_sample(source: Source, items: Sequence[Item], options: ReadOptions) -> None:
    """Refuse a source whose first rows are none, nearly all broken, or plainly not of the encoding that was given.

    Raises:
        UsageError: Too many rows hold bytes that are no text in this encoding, or in the one that was detected.
        SondeError: There are no rows, or nearly all are broken; the message quotes the first.
    """
    if not items:
        raise SondeError(f"{source.name} {source.nothing}")
    odd = [item.origin for item in items if source.encoding and isinstance(item, Row) and _is_undecoded(item)]
    share = f"{len(odd)} of the first {counted(len(items), 'row')} {'is' if len(odd) == 1 else 'are'}"
    if options.encoding and len(odd) > _UNDECODED_SHARE * len(items):
        said = f"{share} not valid {options.encoding}, the first is {odd[0]}"
        raise UsageError(
            f"{source.name}: {said}: leave out {arg('encoding')} to detect it",
            code="conflict", field="encoding", value=options.encoding,
        )  # fmt: skip
    if not options.encoding and len(odd) > _BROKEN_SHARE * len(items):
        said = f"{share} neither UTF-8 nor in an encoding that can be detected"
        raise UsageError(f"{source.name}: {said}: set {arg('encoding')}, such as {_ENCODINGS}", field="encoding")
    broken = [item for item in items if isinstance(item, Skipped)]
    if len(broken) > _BROKEN_SHARE * len(items):
        first = f"the first is {broken[0].origin}: {broken[0].reason}"
        advice = f". Check the file, or set {arg('format')}" if source.format else ""
        advice = f"; {source.above}" if source.begins else advice
        raise SondeError(f"{source.name}: {len(broken)} of the first {len(items)} rows cannot be read; {first}{advice}")
