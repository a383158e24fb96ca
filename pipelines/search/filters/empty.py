"""Why no document passes a filter: a value that its field never has, and the value that was probably meant."""

from collections.abc import Iterator
from difflib import get_close_matches

from sqlglot import exp

from ....indexer.errors import UsageError
from ....indexer.store.catalog import Catalog
from ....indexer.store.documents import frequent_texts
from ....indexer.store.kinds import PATH_SUFFIX
from ....indexer.store.members import SEPARATOR, item_name_counts, lineages
from ....indexer.store.runs import list_runs
from ....indexer.wording import on_one_line
from .compile import further_operands, literal, parse
from .conditions import Operands, Test, condition
from .sql import BUILT_IN, FieldNames, Operand, shown

MOST_VALUES = 1_000
"""Different values of a field that are compared with the one in the filter."""
VALUES_SHOWN = 8


def hint(catalog: Catalog, where: str) -> str:
    """Return what explains that no document passes a filter, to be put behind that sentence; "" if nothing does.

    Args:
        catalog: Of the collection.
        where: A valid filter.

    Example:
        ": card is never 'app': did you mean 'App'? values: App, Card"
    """
    operands, parsed = Operands(FieldNames(catalog.fields(), further_operands(catalog, where))), parse(where)
    if _compares_language(parsed, operands) and not len(catalog.documents_where("d.language IS NOT NULL", ())):
        usual = catalog.get("language")
        own = "no document has a language of its own, from a column `language` of its source"
        return f": {own}" + (f"; the language of the collection is {usual!r}" if usual else "")
    for operand, value in _texts(parsed, operands):
        found = condition(operand, Test("=", [value]))
        if not len(catalog.documents_where(found.sql, found.parameters)):
            return f": {operand.name} is never {shown(value)}{_instead(catalog, operand, value)}"
    return ""


def _compares_language(parsed: exp.Expr, operands: Operands) -> bool:
    compared = parsed.find_all(exp.EQ, exp.NEQ, exp.In, exp.Like, exp.ILike)
    names = {column.name.casefold(): column for node in compared for column in node.find_all(exp.Column)}
    return "language" in names and operands.field(names["language"]) == BUILT_IN["language"]


def _texts(parsed: exp.Expr, operands: Operands) -> Iterator[tuple[Operand, str]]:
    """Yield each text field, or list, of a filter with a text that it must be equal to."""
    for node in parsed.find_all(exp.EQ, exp.In):
        sides = [node.this, *(node.expressions if isinstance(node, exp.In) else [node.args["expression"]])]
        texts = [side.name for side in sides if isinstance(side, exp.Literal) and side.is_string]
        try:
            fields = [operands.field(side) for side in sides if isinstance(side, exp.Column)]
        except UsageError:  # such as NOT IN of a list that is no field
            continue
        if len(fields) == 1 and fields[0] and (fields[0].type in ("text", "list") or fields[0].named):
            yield from ((fields[0], text) for text in texts)


def _instead(catalog: Catalog, operand: Operand, value: str) -> str:
    """Return which value was probably meant, and the values that there are if they are few."""
    if operand == BUILT_IN["text"]:  # whole texts are too long to list or to compare
        return f": for a part of the text, write text ILIKE {literal(f'%{value}%')}"
    run = next((run for run in list_runs(catalog, count=False) if run.number == operand.run), None)
    paths = [SEPARATOR.join(names) for names in lineages(catalog, run).values()] if run else []
    if run is None:
        texts = frequent_texts(catalog, operand.sql, operand.type == "list", MOST_VALUES)
    else:  # a document is also in the groups above its own
        texts = [name for name, _ in sorted(item_name_counts(catalog, run), key=lambda pair: (-pair[1], pair[0]))]
    values = [" ".join(each.split()) for each in texts if each.strip()]
    known = paths if run and (SEPARATOR in value or operand.name.endswith(PATH_SUFFIX)) else values
    lowered = {each.casefold(): each for each in reversed([*known])}
    near = get_close_matches(value.strip().casefold(), lowered, 1)
    meant = f": did you mean {shown(lowered[near[0]])}?" if near else ""
    first = values[:VALUES_SHOWN]
    listed = ", ".join(map(shown if any("," in each for each in first) else on_one_line, first))
    few = "" if len(values) >= MOST_VALUES or not values else f" values: {listed}"
    more = ", …" if few and len(values) > VALUES_SHOWN else ""
    return f"{meant}{';' if few and not meant else ''}{few}{more}"
