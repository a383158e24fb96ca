"""The fields that a filter can name, and what a name in it refers to."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from ...indexer.errors import UsageError
from ...indexer.fields import Field
from .fragment import shown

BUILT_IN = {"id": ("d.key", "text"), "title": ("d.title", "text"), "length": ("d.length", "integer")}
BUILT_IN |= {"language": ("d.language", "text")}
NAMES_SHOWN = 30
ARTICLES = {"integer": "an integer", "real": "a number", "boolean": "a boolean", "date": "a date", "list": "a list"}
ARTICLES |= {"text": "text"}


@dataclass(frozen=True, slots=True)
class Operand:
    """What a comparison reads: its SQL, its type, and how a message calls it."""

    sql: str
    type: str
    name: str


class FieldNames:
    """Finds fields by name; those of the metadata hide built-in ones, and those of runs, of the same name."""

    def __init__(self, fields: Mapping[str, Field], runs: Mapping[str, Operand] | None = None) -> None:
        own = {name: Operand(f"m.{_quoted(field.column)}", field.type, name) for name, field in fields.items()}
        self._operands = {name: Operand(sql, type, name) for name, (sql, type) in BUILT_IN.items()}
        self._operands |= {**(runs or {}), **own}
        self._own = own

    def find(self, name: str, quoted: bool) -> Operand:
        """Return the field of this name, in the same case or, if only one fits, in another.

        Raises:
            UsageError: No field has the name, or several have it in other cases.
        """
        if name in self._operands:
            return self._operands[name]
        for names in (self._own, self._operands):
            similar = [known for known in names if known.lower() == name.lower()]
            if len(similar) == 1:
                return names[similar[0]]
            if similar:
                raise UsageError(f"{name!r} can mean {_listed(similar)}: write the name as it is, in double quotes")
        raise UsageError(self._unknown(name, quoted))

    def _unknown(self, name: str, quoted: bool) -> str:
        by_lower = {known.lower(): known for known in self._operands}
        close = get_close_matches(name.lower(), by_lower, n=1)
        hint = "; a text takes single quotes" if quoted else ""
        hint = f" (did you mean {by_lower[close[0]]!r}?)" if close else hint
        return f"there is no field {shown(name)} to filter by{hint}; the fields are: {_listed(self._operands)}"


def _listed(names: Iterable[str]) -> str:
    names = list(names)
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    return ", ".join(names[:NAMES_SHOWN]) + more


def _quoted(column: str) -> str:
    doubled = column.replace('"', '""')
    return column if column.isidentifier() else f'"{doubled}"'
