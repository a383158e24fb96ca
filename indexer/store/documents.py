"""Documents in the catalog, read in bulk: numbers, ids, texts, languages, digests, and values of metadata columns."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Literal, NamedTuple
from unicodedata import normalize

import numpy as np

from ..document import Value
from ..errors import is_unicode
from .catalog import Catalog
from .fields import Field, check_text, load_value

SHORT = 40
"""Characters of a text that may be a date, at most."""


class DocumentText(NamedTuple):
    """A document without its metadata.

    Attributes:
        doc: Its number.
        id: Its id.
        title: Its title, whole; "" where it has none.
        text: Its text, or the beginning of it that was asked for.
        language: Its own language; None for that of the collection.
    """

    doc: int
    id: str
    title: str
    text: str
    language: str | None


def _typed(row: tuple[Any, ...]) -> DocumentText:
    check_text(*row)
    return DocumentText(*row)


def document_numbers(catalog: Catalog) -> np.ndarray:
    """Return int64 [n]: the numbers of all documents, ascending."""
    found = (doc for (doc,) in catalog.select("SELECT doc FROM documents"))
    return np.sort(np.fromiter(found, np.int64))


def document_contents(catalog: Catalog) -> Iterator[tuple[int, bytes]]:
    """Yield number and digest of title, text and language of every document, in the order of the numbers."""
    yield from catalog.ordered("SELECT doc, content FROM documents ORDER BY doc")


def document_ids(catalog: Catalog) -> Iterator[tuple[int, str]]:
    """Yield number and id of every document, in no particular order."""
    yield from catalog.select("SELECT doc, key FROM documents")


def ids_by_number(catalog: Catalog, docs: Sequence[int]) -> dict[int, str]:
    """Return the ids of documents by number; a number that no document has is left out."""
    return dict(catalog.select_in("SELECT doc, key FROM documents WHERE doc IN (?)", docs))


def numbers_by_id(catalog: Catalog, ids: Iterable[str]) -> dict[str, int]:
    """Return the numbers of documents by id, as it is given; an id that no document has is left out."""
    return {id: doc for id, (doc,) in _by_id(catalog, "doc", ids)}


def contents_by_id(catalog: Catalog, ids: Iterable[str]) -> dict[str, str]:
    """Return the hexadecimal digests of title, text and language by id; an id that no document has is left out."""
    return {id: content for id, (content,) in _by_id(catalog, "hex(content)", ids)}


def languages_by_id(catalog: Catalog, ids: Iterable[str]) -> dict[str, str | None]:
    """Return the documents' own languages by id, None for that of the collection; unknown ids are left out."""
    return {id: language for id, (language,) in _by_id(catalog, "language", ids)}


def document_texts(catalog: Catalog, length: int | None = None) -> Iterator[DocumentText]:
    """Yield every document in the order of the numbers, with the first `length` characters of its text, or all."""
    return map(_typed, catalog.ordered(f"SELECT {_columns(length)} FROM documents ORDER BY doc"))


def chosen_texts(catalog: Catalog, docs: Sequence[int], length: int | None = None) -> Iterator[DocumentText]:
    """Yield the documents of these numbers, with the first `length` characters of their texts, or all.

    A number that no document has is passed over. Ascending numbers give documents in the same order.
    """
    found = catalog.select_in(f"SELECT {_columns(length)} FROM documents WHERE doc IN (?)", docs)
    return map(_typed, found)


def texts_by_id(catalog: Catalog, ids: Iterable[str], length: int | None = None) -> dict[str, DocumentText]:
    """Return documents by id, with the first `length` characters of their texts, or all; unknown ids are left out."""
    return {id: _typed(row) for id, row in _by_id(catalog, _columns(length), ids)}


def text_lengths(catalog: Catalog) -> dict[int, int]:
    """Return how many characters each document's text has, by number."""
    return dict(catalog.select("SELECT doc, length(text) FROM documents"))


def language_counts(catalog: Catalog) -> list[tuple[str | None, int]]:
    """Return languages with their numbers of documents, the commonest first, then by name.

    A document without a language of its own has that of the collection, which may be None.
    """
    found = summed(catalog.select("SELECT language, count(*) FROM documents GROUP BY language"))
    usual = catalog.get("language")
    counts = summed((usual if language is None else language, count) for language, count in found.items())
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0] or ""))


def summed(pairs: Iterable[tuple[Any, int]]) -> Counter[Any]:
    """Return the sum of the counts of each value: shards count apart."""
    found: Counter[Any] = Counter()
    for value, count in pairs:
        found[value] += count
    return found


LONGEST = 2**31 - 1
"""Above this, SQLite's `substr` gives an empty text."""


def _columns(length: int | None) -> str:
    text = "text" if length is None or length >= LONGEST else f"substr(text, 1, {int(length)})"
    return f"doc, key, title, {text}, language"


def _by_id(catalog: Catalog, columns: str, ids: Iterable[str]) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Yield each id that a document has with these columns: as it is given, else composed, else decomposed.

    Readers compose ids; a collection of an earlier version may hold decomposed ones.
    """
    sql = f"SELECT key, {columns} FROM documents WHERE key IN (?)"
    wanted = list(dict.fromkeys(filter(is_unicode, ids)))  # SQLite cannot hold the others, so no document has them
    missing = {id for id in wanted if not id.isascii()}
    for key, *row in catalog.select_in(sql, wanted):
        missing.discard(key)
        yield key, tuple(row)
    for form in _FORMS if missing else ():
        others: dict[str, list[str]] = {}
        for id in missing:
            others.setdefault(normalize(form, id), []).append(id)
        for key, *row in catalog.select_in(sql, list(others)):
            missing.difference_update(others[key])
            yield from ((id, tuple(row)) for id in others[key])


_FORMS: tuple[Literal["NFC", "NFD"], ...] = ("NFC", "NFD")


class ColumnSummary(NamedTuple):
    """What a column holds.

    Attributes:
        documents: How many documents have a value.
        distinct: How many different values there are.
        low: The least stored value; None where there is none.
        high: The greatest stored value.
    """

    documents: int
    distinct: int
    low: Any
    high: Any


def column_values(catalog: Catalog, field: Field) -> dict[int, Any]:
    """Return a column as it is stored, by document number, None where a value is missing.

    `fields.load_value` turns a stored value into a Python value.
    """
    return dict(catalog.select(f"SELECT doc, {field.column} FROM metadata"))


def summary_of(catalog: Catalog, field: Field) -> ColumnSummary:
    """Return how many values a column has, how many of them differ, and the range they are in."""
    column = field.column
    sql = f"SELECT count({column}), count(DISTINCT {column}), min({column}), max({column}) FROM metadata"
    found = [ColumnSummary(*row) for row in catalog.select(sql)]
    if len(found) == 1:
        return found[0]
    distinct = {value for (value,) in catalog.select(f"SELECT DISTINCT {column} FROM metadata") if value is not None}
    ends = [end for each in found if each.documents for end in (each.low, each.high)]
    documents = sum(each.documents for each in found)
    return ColumnSummary(documents, len(distinct), min(ends, default=None), max(ends, default=None))


def value_counts(catalog: Catalog, field: Field) -> list[tuple[Value, int]]:
    """Return the values of a column with their numbers of documents, in no particular order."""
    sql = f"SELECT {field.column}, count(*) FROM metadata WHERE {field.column} IS NOT NULL GROUP BY 1"
    return [(load_value(value, field.type), count) for value, count in summed(catalog.select(sql)).items()]


def list_item_counts(catalog: Catalog, field: Field, most: int) -> list[tuple[Any, int]]:
    """Return up to `most` items of a column of lists with their numbers of documents, the commonest first."""
    sql = f"SELECT j.value, count(DISTINCT m.doc) FROM metadata m, json_each(m.{field.column}) j GROUP BY 1"
    return _commonest(catalog, sql, most)


def distinct_beginnings(catalog: Catalog, field: Field, length: int) -> int:
    """Return how many different beginnings of `length` characters the values of a column have, such as years."""
    sql = f"SELECT DISTINCT substr({field.column}, 1, {int(length)}) FROM metadata WHERE {field.column} IS NOT NULL"
    return len(set(catalog.select(sql)))


def holds_months(catalog: Catalog, field: Field) -> bool:
    """Whether a column of dates has several values and each is the first day of a month: it holds months."""
    sql = f"SELECT DISTINCT substr({field.column}, 9, 2) FROM metadata WHERE {field.column} IS NOT NULL"
    return set(catalog.select(sql)) == {("01",)} and distinct_beginnings(catalog, field, len("2026-04")) > 1


def any_item(column: str, types: str, condition: str) -> str:
    """Return SQL that is true where an item of a list passes a condition, and NULL where there is no list.

    Args:
        column: SQL of the list.
        types: SQL of the JSON types that the item may have, such as `('integer', 'real')`.
        condition: SQL over `item.value` and `item.type`.
    """
    items = f"SELECT 1 FROM json_each({column}) AS item WHERE item.type IN {types} AND {condition}"
    return f"CASE WHEN {column} IS NOT NULL THEN EXISTS ({items}) END"


def frequent_texts(catalog: Catalog, field: str, listed: bool, most: int) -> list[str]:
    """Return the texts that a field has, the most frequent first.

    Args:
        catalog: Of the collection.
        field: The SQL of the field, over `documents d` and `metadata m`.
        listed: Whether the field is a list, whose items count one by one.
        most: The most texts to return.
    """
    value, items = ("e.value", f", json_each({field}) e") if listed else (field, "")
    sql = (
        f"SELECT {value}, count(*) FROM documents d JOIN metadata m ON m.doc = d.doc{items} "
        f"WHERE typeof({value}) = 'text' GROUP BY 1"
    )
    return [text for text, _ in _commonest(catalog, sql, most)]


def unusual_texts(catalog: Catalog, field: str, most: int) -> list[str]:
    """Return different short texts of a metadata field that hold a digit and do not begin with a month such as 2024-05.

    Args:
        catalog: Of the collection.
        field: The SQL of the field, over `metadata m`.
        most: The most texts to return.
    """
    sql = (  # the first condition leaves out all dates of ISO's form, so that a million of them take 0.2 s
        f"SELECT DISTINCT {field} FROM metadata m WHERE {field} NOT GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]*' "
        f"AND typeof({field}) = 'text' AND length({field}) <= {SHORT} AND {field} GLOB '*[0-9]*' LIMIT {int(most)}"
    )
    return [text for (text,) in islice(catalog.select(sql), most)]


def _commonest(catalog: Catalog, sql: str, most: int) -> list[tuple[Any, int]]:
    """Return up to `most` of the values that a statement counts, the commonest first, then by value."""
    if len(catalog.each) == 1:
        return list(catalog.select(f"{sql} ORDER BY 2 DESC, 1 LIMIT {int(most)}"))
    found = summed(catalog.select(sql)).items()
    return sorted(found, key=lambda pair: (-pair[1], _sorted_by(pair[0])))[:most]


def _sorted_by(value: Any) -> tuple[int, Any]:
    """Return what values are sorted by, as in SQLite: nothing, then numbers, then texts."""
    return (0, 0) if value is None else (1 + isinstance(value, str), value)


def filled_fields(catalog: Catalog, names: Sequence[str]) -> dict[str, int]:
    """Return how many documents have a value in each of these fields."""
    fields = catalog.fields()
    if not names:
        return {}
    counts = ", ".join(f"count({fields[name].column})" for name in names)
    return dict(zip(names, catalog.connection.execute(f"SELECT {counts} FROM metadata").fetchone(), strict=True))
