"""Available filters: the fields of a collection with their ranges and choices, and the choices among hits."""

import json
import math
import reprlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...indexer.document import Value
from ...indexer.errors import UsageError, arg
from ...indexer.store.documents import list_item_counts, numbers_by_id, summary_of, value_counts
from ...indexer.store.fields import Field, load_value
from ...indexer.store.kinds import NAME_SUFFIX
from ...indexer.store.members import SEPARATOR, item_name_counts, lineages, names_above
from ...indexer.store.runs import Run, RunColumns, items_by_document, list_runs, run_columns
from ...indexer.store.view import View

FEW = 200
"""Maximum number of distinct values for a field to have choices."""
LISTED = 200
"""Maximum number of list items to offer as choices; the most frequent are used."""
NUMBERS = ("integer", "real")


@dataclass(frozen=True, slots=True)
class Facet:
    """One field that can be used as a filter.

    Attributes:
        name: The name used in filters: a metadata field, "label:RUN" and so on.
        type: "text", "integer", "real", "boolean", "date" or "list".
        documents: Number of documents that have a value; for a tag, that of all documents, which have true or false.
        low: The smallest number or the earliest date; None if the field has neither.
        high: The largest number or the latest date; None if the field has neither.
        choices: (value, documents) of a text, list or boolean field with few distinct values, most frequent first.
            Groups of a taxonomy come in the order of the tree, most frequent first among those of one group.
        paths: For the groups of a taxonomy, the path of each choice, such as "cards > lost"; only the name if several
            groups have it. Otherwise empty.
        run: Whether the field belongs to a run rather than to the metadata.
        same: The field of the run that this run is a part of, such as the topics of a level, if both have groups of the
            same names and sizes: views show only that one. Else empty.
    """

    name: str
    type: str
    documents: int
    low: Value = None
    high: Value = None
    choices: tuple[tuple[Value, int], ...] = ()
    run: bool = False
    same: str = ""
    paths: tuple[str, ...] = ()


def facets(view: View) -> list[Facet]:
    """Return the available filters: the metadata fields in order, then the columns of complete runs, newest first."""
    return [_field(view, field) for field in view.fields.values()] + list(_runs(view))


def choices_among(view: View, ids: Sequence[str], known: Iterable[Facet]) -> dict[str, list[tuple[Value, int]]]:
    """Count how often each choice of a facet occurs in the given documents, most frequent first.

    Args:
        view: The view that contains the documents.
        ids: Document ids.
        known: Facets of the collection; facets without choices, or without a value in the documents, are left out.

    Raises:
        UsageError: `known` contains something other than facets.
    """
    known = list(known) if isinstance(known, Iterable) else [known]
    if other := [each for each in known if not isinstance(each, Facet)]:
        said = f"{arg('known')} has {reprlib.repr(other[0])}: give facets, as `facets()` returns them"
        raise UsageError(said, code="wrong-type", field="known", value=other[0])
    docs = list(numbers_by_id(view.catalog, ids).values())
    wanted = [facet for facet in known if facet.choices]
    rows = view.catalog.metadata(docs)
    if any(facet.run for facet in wanted):
        said = RunColumns(view.catalog).of(docs)
        rows = {doc: {**rows.get(doc, {}), **said[doc]} for doc in docs}
        for column, names in _nested(view, docs, wanted):
            rows = {doc: row | {column: names.get(doc)} for doc, row in rows.items()}
    counted = {facet.name: Counter(_values(row.get(facet.name) for row in rows.values())) for facet in wanted}
    return {name: _ordered(found.items()) for name, found in counted.items() if found}


def _nested(view: View, docs: Sequence[int], wanted: Sequence[Facet]) -> Iterator[tuple[str, dict[int, list[str]]]]:
    """Yield the columns of groups that lie under others, with the names of all groups that each document is in."""
    runs = [run for run in list_runs(view.catalog, count=False) if run.complete]
    mains = run_columns(runs)
    for run in runs:
        column = f"{mains[run.number]}{NAME_SUFFIX}"
        if run.kind.nested and any(facet.run and facet.name == column for facet in wanted):
            above = names_above(view.catalog, run)
            found = items_by_document(view.catalog, run, docs)
            yield column, {doc: above.get(pairs[0][0], []) for doc, pairs in found.items()}


def _field(view: View, field: Field) -> Facet:
    counted, distinct, low, high = summary_of(view.catalog, field)
    if field.type in NUMBERS:
        ends = (low, high) if all(end is not None and math.isfinite(end) for end in (low, high)) else (None, None)
        return Facet(field.name, field.type, counted, *ends)
    if field.type == "date":
        return Facet(field.name, field.type, counted, load_value(low, "date"), load_value(high, "date"))
    if field.type == "list":
        items = list_item_counts(view.catalog, field, LISTED)
        return Facet(field.name, field.type, counted, choices=tuple(items))
    if distinct > FEW:
        return Facet(field.name, field.type, counted)
    return Facet(field.name, field.type, counted, choices=tuple(_ordered(value_counts(view.catalog, field))))


def _runs(view: View) -> Iterable[Facet]:
    columns = RunColumns(view.catalog)
    types = columns.types
    total = view.catalog.counts()[0]
    found_of: dict[tuple[str, str], tuple[Run, Facet]] = {}
    for run in list_runs(view.catalog):
        column = columns.names.get(run.number, "")
        name = f"{column}{NAME_SUFFIX}" if f"{column}{NAME_SUFFIX}" in types else column
        if not run.complete or name not in types:
            continue
        if types[name] == "boolean":
            found: list[tuple[Any, int]] = [(True, run.documents), (False, total - run.documents)]
        else:
            found = item_name_counts(view.catalog, run)
        kind = {"texts": "list"}.get(types[name], types[name])
        choices, paths = _ordered(found)[:LISTED], ()
        if run.kind.nested:
            choices, paths = _in_tree(choices, lineages(view.catalog, run).values())
        having = total if types[name] == "boolean" else run.documents  # each document has a tag or has it not
        facet = Facet(name, kind, having, choices=tuple(choices), run=True, paths=paths)
        found_of[run.kind, run.name] = run, facet
    newest = sorted(found_of.values(), key=lambda pair: -found_of.get(_main(pair[0]), pair)[0].number)
    for run, facet in newest:
        _, whole = found_of.get(_main(run), (run, None))
        same = run.kind.part and whole and (whole.documents, whole.choices) == (facet.documents, facet.choices)
        yield replace(facet, same=whole.name) if whole and same else facet


def _main(run: Run) -> tuple[str, str]:
    """Return the kind and name of the run that a run follows, or its own."""
    return run.kind.follows or run.kind, run.name


def _in_tree(
    choices: list[tuple[Any, int]], every: Iterable[tuple[str, ...]]
) -> tuple[list[tuple[Any, int]], tuple[str, ...]]:
    """Return choices in the order of the tree, with the path of each."""
    counts = dict(choices)
    known: dict[str, list[tuple[str, ...]]] = {}
    for lineage in every:
        known.setdefault(lineage[-1], []).append(lineage)
    found = {name: each[0] if len(each) == 1 else (name,) for name, each in known.items()}

    def place(name: str) -> list[tuple[int, str]]:
        return [(-counts.get(each, 0), each) for each in found[name]]

    names = sorted(counts, key=place)
    return [(name, counts[name]) for name in names], tuple(SEPARATOR.join(found[name]) for name in names)


def _values(cells: Iterable[Any]) -> Iterable[Any]:
    for cell in cells:
        if isinstance(cell, (list, tuple)):
            yield from {json.dumps(item) if isinstance(item, (dict, list)) else item for item in cell}
        elif cell is not None:
            yield cell


def _ordered(found: Iterable[tuple[Any, int]]) -> list[tuple[Any, int]]:
    """Return values with their counts, most frequent first, then by name."""
    return sorted((pair for pair in found if pair[1]), key=lambda pair: (-pair[1], str(pair[0])))
