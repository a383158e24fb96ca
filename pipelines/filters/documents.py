"""Which documents pass a filter, and what a filter can ask of the runs that a collection keeps."""

import numpy as np

from ...indexer.catalog import Catalog
from ...indexer.collection import Collection
from ...indexer.run_columns import NAMED, run_columns
from ...indexer.runs import NAME_SUFFIX, list_runs
from .compile import CompiledFilter, compile_filter
from .fields import Operand

_OF = "FROM run_documents r WHERE r.run = {0} AND r.doc = d.doc"
_NAMES = (
    "FROM run_documents r JOIN run_items i ON i.run = r.run AND i.item = r.item WHERE r.run = {0} AND r.doc = d.doc"
)
NUMBER = f"(SELECT r.item {_OF} LIMIT 1)"
NAME = f"(SELECT i.name {_NAMES} ORDER BY r.score DESC, r.item LIMIT 1)"
ALL_NAMES = f"(SELECT json_group_array(i.name) {_NAMES})"
TAGGED = f"EXISTS (SELECT 1 {_OF})"


def check_filter(collection: Collection, where: str | None) -> None:
    """Compile a filter without running it, so that a mistake is found before anything slow begins.

    Raises:
        UsageError: The filter is not valid: its syntax, a name, an operator or a value.
    """
    if where is not None:
        with collection.view() as view:
            _compiled(view.catalog, where)


def documents_where(catalog: Catalog, where: str) -> np.ndarray:
    """Return int64 numbers of the documents that pass a filter over metadata and runs, ascending.

    Raises:
        UsageError: The filter cannot be right: its syntax, a name, an operator or a value.
    """
    compiled = _compiled(catalog, where)
    return catalog.documents_where(compiled.sql, compiled.parameters)


def _compiled(catalog: Catalog, where: str) -> CompiledFilter:
    return compile_filter(where, catalog.fields(), run_operands(catalog) if ":" in where else None)


def run_operands(catalog: Catalog) -> dict[str, Operand]:
    """Return what a filter can ask of runs, by the names of their columns in an export.

    `"cluster:RUN"` and `"topic:RUN"` are numbers, `"cluster:RUN name"` and `"topic:RUN name"` texts; `"label:RUN"` and
    `"correction:RUN"` are names, or lists of names where a text may have several; `"tag:NAME"` is true or false.
    """
    runs = [run for run in list_runs(catalog, count=False) if run.complete and run.kind != "map"]
    columns = run_columns(runs)
    found: dict[str, Operand] = {}
    for run in runs:
        number, column = run.number, columns[run.number]
        if run.kind == "tag":
            found[column] = Operand(TAGGED.format(number), "boolean", column)
        elif run.kind in NAMED:
            several = bool(run.parameters.get("multi_label"))
            sql, type = (ALL_NAMES, "list") if several else (NAME, "text")
            found[column] = Operand(sql.format(number), type, column)
        else:
            found[column] = Operand(NUMBER.format(number), "integer", column)
            named = f"{column}{NAME_SUFFIX}"
            found[named] = Operand(NAME.format(number), "text", named)
    return found
