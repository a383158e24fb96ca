"""The column of ids: found at the first index run, remembered, and refused where repeated values would drop rows."""

from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..document import Document
from ..errors import Message, SondeError, UsageError, arg
from ..progress import Notify
from ..readers import Reading, ReadOptions, read_source
from ..readers.column_finder import AS_BEFORE, CODES, OWN, UNFIT
from ..readers.columns import id_rank
from ..store.catalog import ID_COLUMN, Catalog
from ..store.writing import Identity
from ..wording import counted, on_one_line, shown_id
from .index import is_new

LARGE = 64_000_000
"""Bytes of a file up to which a column with the name of an id is checked, too, before the run."""
SHOWN = 3
"""Repeated ids that the message names."""


@dataclass(frozen=True)
class KnownIds:
    """Where a collection takes its ids from.

    Attributes:
        new: Whether the collection is yet to be made.
        column: The column that it remembers, "" if hashes of the texts were chosen, None if it remembers neither.
    """

    new: bool
    column: str | None = None


def read_with_ids(
    source: Any, known: KnownIds, options: ReadOptions, keep: str | None, notify: Notify
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
    hint = "" if known.new else known.column
    if options.id is None and known.column == "":
        options = replace(options, id="")
    reading = read_source(source, options=replace(options, id_hint=hint), notify=notify)
    column, reason = reading.columns.id, reading.columns.reasons.get("id", "")
    if options.id is None and column is None and hint and reading.columns.metadata:
        raise _without_ids(reading, hint)
    named = reason not in ("as set", CODES) and (reason != AS_BEFORE or id_rank(column or "") is not None)
    found = None if reason == OWN else options.id if options.id == "" else column
    if known.new and reason.endswith(UNFIT):
        found = ""  # a later table in which the column is in order would add every text again
    if column is None or (named and _is_large(source)):
        return reading, found
    lost = None if keep or reading.once else _lost(reading)
    if lost and reason == CODES:
        notify(f"{reading.name}: {column} looks like an id, but its values repeat after the first rows")
        return read_source(source, options=options, notify=notify), None
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


def _without_ids(reading: Reading, hint: str) -> UsageError:
    said = (
        f"{reading.name} has no column {on_one_line(hint)!r}, from which this collection takes its ids, so texts that "
        f"are there already would be added again: name the column with the ids ({arg('id')}), or take a hash of each "
        f"text ({arg('id', '')})"
    )
    return UsageError(said, code="not-found", field="id", value=hint, alternatives=list(reading.columns.metadata))


def _is_large(source: Any) -> bool:
    """Return whether reading a file a second time would take long."""
    return isinstance(source, str | Path) and (path := Path(source)).is_file() and path.stat().st_size > LARGE


def known_ids(folder: Path) -> KnownIds:
    """Return where a collection takes its ids from."""
    if is_new(folder):
        return KnownIds(new=True)
    if not (folder / "catalog.db").is_file():
        return KnownIds(new=False)
    try:
        with closing(Catalog.open(folder / "catalog.db")) as catalog:
            return KnownIds(False, catalog.get(ID_COLUMN))
    except SondeError:  # the run itself says what is wrong with the collection, or brings it up to date
        return KnownIds(new=False)


def _lost(reading: Reading) -> str:
    """Return which ids repeat with other content, "" if none does; reads the source once, or twice if ids repeat."""
    values, counts = np.unique(np.fromiter(map(hash, reading.ids()), np.int64), return_counts=True)
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
    first = ", ".join(map(shown_id, list(differ)[:SHOWN])) + (", …" if len(differ) > SHOWN else "")
    would = f"{counted(rows, 'row')} of {total:,} would replace another row with the same id"
    return f"{would}; the first repeated ids are {first}"
