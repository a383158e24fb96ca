"""Which documents pass a filter, and what a filter can ask of the runs that a collection keeps."""

import json

import numpy as np

from ...indexer.catalog import Catalog
from ...indexer.run_columns import NAMED
from .compile import compile_filter
from .fields import Operand

_OF = "FROM run_documents r WHERE r.run = {0} AND r.doc = d.doc"
_NAMES = (
    "FROM run_documents r JOIN run_items i ON i.run = r.run AND i.item = r.item WHERE r.run = {0} AND r.doc = d.doc"
)
NUMBER = f"(SELECT r.item {_OF} LIMIT 1)"
NAME = f"(SELECT i.name {_NAMES} ORDER BY r.score DESC, r.item LIMIT 1)"
ALL_NAMES = f"(SELECT json_group_array(i.name) {_NAMES})"
TAGGED = f"EXISTS (SELECT 1 {_OF})"


def documents_where(catalog: Catalog, where: str) -> np.ndarray:
    """Return int64 numbers of the documents that pass a filter over metadata and runs, ascending.

    Raises:
        UsageError: The filter cannot be right: its syntax, a name, an operator or a value.
    """
    runs = run_operands(catalog) if ":" in where else None
    compiled = compile_filter(where, catalog.fields(), runs)
    return catalog.documents_where(compiled.sql, compiled.parameters)


def run_operands(catalog: Catalog) -> dict[str, Operand]:
    """Return what a filter can ask of runs, by the names of their columns in an export.

    `"cluster:RUN"` and `"topic:RUN"` are numbers, `"cluster:RUN name"` and `"topic:RUN name"` texts; `"label:RUN"` and
    `"correction:RUN"` are names, or lists of names where a text may have several; `"tag:NAME"` is true or false.
    """
    sql = "SELECT run, kind, name, parameters FROM runs WHERE complete AND kind != 'map' ORDER BY run"
    found: dict[str, Operand] = {}
    for run, kind, name, parameters in catalog.connection.execute(sql).fetchall():
        column = f"{kind}:{name}"
        if kind == "tag":
            found[column] = Operand(TAGGED.format(run), "boolean", column)
        elif kind in NAMED:
            several = json.loads(parameters).get("multi_label")
            found[column] = Operand((ALL_NAMES if several else NAME).format(run), "list" if several else "text", column)
        else:
            found[column] = Operand(NUMBER.format(run), "integer", column)
            found[f"{column} name"] = Operand(NAME.format(run), "text", f"{column} name")
    return found
