"""What a collection remembers of its sources' columns, so that the next file is read as the first was; and its ids."""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from ..document import Document, composed
from ..errors import Message, SondeError, UsageError, arg, is_unicode
from ..progress import Notify
from ..readers import Reading, ReadOptions, read_source
from ..readers.coercion import known_types
from ..readers.column_finder import AS_BEFORE, CODES, OWN, UNFIT
from ..readers.columns import id_rank
from ..readers.encoding import is_legacy
from ..readers.reading import Part
from ..store.catalog import ID_COLUMN, Catalog
from ..store.documents import texts_by_id
from ..store.runs import columns_of_runs
from ..store.writing import GIVEN_TYPES, Identity, digest
from ..wording import counted, on_one_line, shown_id
from .index import is_new

FORMS, ENCODING = "forms", "encoding"
"""Properties of a catalog: how numbers and dates of columns are written, and the encoding that the user gave."""
_LARGE = 64_000_000
"""Bytes of a file up to which a column with the name of an id is checked, too, before the run."""
_SAMPLE = 200
"""Documents that are looked for in the collection if their ids are in another column than its own."""
_EXPORTED = "id"
"""The column of an export that has the ids."""
_SHOWN = 3
"""Repeated ids that the message names."""


@dataclass(frozen=True)
class KnownColumns:
    """What is known of the columns of a collection's sources.

    Attributes:
        new: Whether the collection is yet to be made.
        id: The column of the ids, "" if hashes of the texts were chosen, None if it remembers neither.
        types: Types that the user gave to metadata columns, by name, with the formats of dates.
        forms: How numbers and dates in other columns are written, such as "real:," or "date:%d/%m/%Y".
        encoding: The encoding that the user gave, for later files that are not UTF-8.
        runs: Columns that runs of the collection add to an export, and that are no metadata.
        holds: Returns whether documents are those of the collection, under the same ids.
    """

    new: bool = False
    id: str | None = None
    types: Mapping[str, str] = field(default_factory=dict)
    forms: Mapping[str, str] = field(default_factory=dict)
    encoding: str | None = None
    runs: tuple[str, ...] = ()
    holds: Callable[[Sequence[Document]], bool] = lambda _: False

    def hinted(self, options: ReadOptions) -> ReadOptions:
        """Return options under which a source is read as earlier ones were, where nothing else is set."""
        if options.id is None and self.id == "":
            options = replace(options, id="")
        hint = "" if self.new else self.id
        types, forms = known_types(self.types), known_types(self.forms)
        encoding = self.encoding if is_legacy(self.encoding) else None
        options = replace(options, id_hint=hint, type_hint=types, form_hint=forms, leave_out_hint=self.runs)
        return replace(options, encoding_hint=encoding)

    def remember(self, catalog: Catalog) -> None:
        """Write into a catalog what it does not know; its id column is that of the first run.

        Of two first runs that began together, the one that waited finds the other one's.
        """
        if self.new and self.id is not None and catalog.get(ID_COLUMN) is None:
            catalog.set(ID_COLUMN, self.id)
        for name, found in ((GIVEN_TYPES, self.types), (FORMS, self.forms)):
            before = catalog.get(name, {})
            if before | found != before:
                catalog.set(name, before | found)
        if is_legacy(self.encoding) and catalog.get(ENCODING) != self.encoding:
            catalog.set(ENCODING, self.encoding)


def known_columns(folder: Path) -> KnownColumns:
    """Return what a collection in one piece remembers."""
    if is_new(folder):
        return KnownColumns(new=True)
    if not (folder / "catalog.db").is_file():
        return KnownColumns()
    try:
        with closing(Catalog.open(folder / "catalog.db")) as catalog:
            runs = columns_of_runs(catalog, catalog.fields())
            types, forms = catalog.get(GIVEN_TYPES, {}), catalog.get(FORMS, {})
            holds = partial(holds_some, [folder / "catalog.db"])
            return KnownColumns(False, catalog.get(ID_COLUMN), types, forms, catalog.get(ENCODING), runs, holds)
    except SondeError:  # the run itself says what is wrong with the collection, or brings it up to date
        return KnownColumns()


def holds_some(catalogs: Iterable[Path], documents: Sequence[Document]) -> bool:
    """Return whether documents are those of a collection: at least half of the ids that it knows have the same texts.

    Row numbers may be ids of the collection, too, but of other texts.
    """
    texts = {each.key or digest(each.title, each.text).hex(): (each.title, each.text) for each in documents}
    ids = list(filter(is_unicode, texts))
    known: dict[str, bool] = {}
    for path in filter(Path.is_file, catalogs):
        with closing(Catalog.open(path)) as catalog:
            found = texts_by_id(catalog, ids)
        known |= {id: (each.title, each.text) == texts[id] for id, each in found.items()}
    return sum(known.values()) >= max(1, len(known) / 2)


def read_with_ids(
    source: Any, known: KnownColumns, options: ReadOptions, keep: str | None, notify: Notify
) -> tuple[Reading, str | None]:
    """Open a source; return it with the id column that a new collection must remember, "" for hashes that were chosen.

    The column is chosen when the collection is made, and a later run uses the same one, so that the ids of a collection
    never change. Rows of a table without it are refused, since they would be documents beside those that are there.

    Args:
        source: As for `index_source`.
        known: What the collection remembers.
        options: How to read the source.
        keep: "last" if repeated ids are allowed.
        notify: Receives notes for the user.

    Raises:
        UsageError: Values of the id column repeat, so that rows would be lost, and `keep` is None. A column that is
            named like an id is not checked in files above 64 MB. Or the source has no such column as the collection.
    """
    own_choice, options = options.id, known.hinted(options)
    hint = options.id_hint
    reading = read_source(source, options=options, notify=notify)
    if options.id == "" and own_choice is None and _has_own_ids(reading, known, source, options):
        options = replace(options, id=_EXPORTED)
        reading = read_source(source, options=options, notify=notify)
    column, reason = reading.columns.id, reading.columns.reasons.get("id", "")
    if options.id is None and hint:
        _refuse_other_ids(reading, hint, known)
    named = reason not in ("as set", CODES) and (reason != AS_BEFORE or id_rank(column or "") is not None)
    found = None if reason == OWN else options.id if options.id == "" else column
    if reading.parts[0].source.columns is not None and reason != "as set":
        found = None  # a file of texts has no column of ids, and its path is that of an export
    elif known.new and options.id is None and _has_no_ids(reading):
        found = ""  # a later table in which the column is there, and in order, would add every text again
    if column is None or (named and _is_large(source)):
        return reading, found
    lost = None if keep or reading.once else _lost(reading)
    if lost and reason == CODES:
        notify(f"{reading.name}: {column} looks like an id, but its values repeat after the first rows")
        return read_source(source, options=replace(options, id_hint=None), notify=notify), None
    if lost:
        what = f"the id column {on_one_line(column)!r} has repeated values, so"
        other = f"choose another column with {arg('id')} ({arg('id', '')} for a hash of the text)"
        if reason == OWN:
            what, other = "documents have repeated ids, so", "give each document an id of its own"
        raise UsageError(
            f"{reading.name}: {what} {lost}: {other}, or keep the last row of each id with "
            f"{arg('keep', 'last')}",
            code="repeated-ids", field="id", value=column,
        )  # fmt: skip
    if reason == CODES:
        notify(
            Message(
                f"id: the column {column!r}, because its values are all different; "
                f"choose another with {arg('id')}, or a hash of the text with {arg('id', '')}"
            )
        )
    return reading, found


def _has_no_ids(reading: Reading) -> bool:
    """Return whether hashes are the ids of all tables; a list of texts alone says nothing of later tables."""
    columns = reading.columns
    told = columns.reasons.get("id", "").endswith(UNFIT) or columns.metadata or columns.title
    return bool(told) and all(part.columns.id is None for part in reading.parts)


def _refuse_other_ids(reading: Reading, hint: str, known: KnownColumns) -> None:
    """Refuse a table without the column of the collection's ids, unless it has texts of the collection under their ids.

    An export has them in the column `id`. Of several files, one without ids may have been read before.

    Raises:
        UsageError: Texts that are there already would be added a second time.
    """
    for part in reading.parts:
        columns, reason = part.columns, part.columns.reasons.get("id")
        if part.source.columns is not None or reason in (OWN, AS_BEFORE):
            continue  # texts, documents, or the column itself
        if columns.id is None and not columns.metadata and not columns.title:
            continue  # texts alone
        if not known.holds(_first(reading, part)):
            raise _without_ids(part, hint, several=len(reading.parts) > 1)


def _has_own_ids(reading: Reading, known: KnownColumns, source: Any, options: ReadOptions) -> bool:
    """Return whether the table is an export of a collection whose ids are hashes: its column `id` has them."""
    if known.new or reading.once or _EXPORTED not in reading.columns.metadata or len(reading.parts) > 1:
        return False
    exported = read_source(source, options=replace(options, id=_EXPORTED))
    return known.holds(exported.head(_SAMPLE))


def _first(reading: Reading, part: Part) -> list[Document]:
    if len(reading.parts) == 1:
        return reading.head(_SAMPLE)
    found = () if part.source.once else (each for _, each in part.documents() if isinstance(each, Document))
    return list(islice(found, _SAMPLE))


def _without_ids(part: Part, hint: str, several: bool) -> UsageError:
    said = (
        f"{part.source.name} has no column {on_one_line(hint)!r}, from which this collection takes its ids, so texts "
        f"that are there already would be added again: name the column with the ids ({arg('id')} COLUMN"
        f"{', for this file alone' if several else ''}); or, if all its texts are new, take a hash of each as its id "
        f"({arg('id', '')})"
    )
    others = [name for name in (part.columns.id, *part.columns.metadata) if name]
    return UsageError(said, code="not-found", field="id", value=hint, alternatives=others)


def _is_large(source: Any) -> bool:
    """Return whether reading a file a second time would take long."""
    return isinstance(source, str | Path) and (path := Path(source)).is_file() and path.stat().st_size > _LARGE


def _lost(reading: Reading) -> str:
    """Return which ids repeat with other content, "" if none does; reads the source once, or twice if ids repeat."""
    ids = (hash(composed(id)) for id in reading.ids())
    values, counts = np.unique(np.fromiter(ids, np.int64), return_counts=True)
    repeated = set(values[counts > 1].tolist())
    if not repeated:
        return ""
    seen: dict[str, list[bytes]] = {}
    total = 0
    for each in reading:
        if not isinstance(each, Document) or each.key is None:
            continue
        total += 1
        if hash(each.key) in repeated:
            identity = Identity.of(each)
            seen.setdefault(each.key, []).append(identity.content + identity.extra)
    differ = {key: found for key, found in seen.items() if len(set(found)) > 1}
    rows = sum(len(found) - 1 for found in differ.values())
    if not rows:
        return ""
    first = ", ".join(map(shown_id, list(differ)[:_SHOWN])) + (", …" if len(differ) > _SHOWN else "")
    would = f"{counted(rows, 'row')} of {total:,} would replace another row with the same id"
    return f"{would}; the first repeated ids are {first}{_other_forms(reading, differ)}"


def _other_forms(reading: Reading, repeated: Container[str]) -> str:
    """Return what to add about repeated ids that occur in two Unicode forms; "" if none do."""
    forms: dict[str, set[str]] = {}
    for id in reading.ids():
        if not id.isascii() and (key := composed(id)) in repeated:
            forms.setdefault(key, set()).add(id)
    found = [key for key, written in forms.items() if len(written) > 1]
    if not found:
        return ""
    said = "occur in two Unicode forms that look the same (the accent is part of the letter, or a separate character)"
    return f"; ids such as {shown_id(found[0])} {said}, so these are the same id"
