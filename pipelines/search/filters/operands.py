"""What stands on the sides of a comparison: a field, a function of a field, or a literal."""

from collections.abc import Callable

from sqlglot import exp

from ....indexer.errors import UsageError
from .conditions import Value, number
from .sql import ARTICLES, FieldNames, Operand, shown

SUPPORTED = (
    "a filter takes fields compared with values by =, !=, <, <=, >, >=, IN, BETWEEN, LIKE, ILIKE and IS NULL, "
    "joined by AND, OR, NOT and parentheses, and the functions LOWER, UPPER, LENGTH and CONTAINS"
)
_DATES = (exp.DType.DATE, exp.DType.TIMESTAMP, exp.DType.DATETIME)


def only(node: exp.Expr, *known: str) -> exp.Expr:
    """Return the node if it has no parts but these, so that no syntax is silently left out.

    Raises:
        UsageError: It has others.
    """
    if any(value for part, value in node.args.items() if part not in known):
        raise unsupported(node)
    return node


def unsupported(node: exp.Expr) -> UsageError:
    """Return the error for syntax that filters do not have."""
    return UsageError(f"{shown(node.sql('sqlite'))} is not supported: {SUPPORTED}")


class Operands:
    """Reads nodes as fields or as values, and remembers the fields that were read."""

    def __init__(self, names: FieldNames) -> None:
        self._names = names
        self.used: dict[str, None] = {}

    def field(self, node: exp.Expr) -> Operand | None:
        """Return the field, or the function of a field, that a node is; None if it is anything else.

        Raises:
            UsageError: There is no such field, or the function does not take its type.
        """
        if isinstance(node, exp.Paren):
            return self.field(only(node, "this").this)
        if isinstance(node, (exp.Column, exp.Dot)):
            return self._named(node)
        for kinds, apply in _FUNCTIONS.items():
            if isinstance(node, kinds):
                argument = self.field(only(node, "this").this)
                return apply(argument) if argument else None
        return None

    def value(self, node: exp.Expr) -> Value:
        """Return the value of a literal.

        Raises:
            UsageError: The node is no literal.
        """
        if isinstance(node, exp.Paren):
            return self.value(only(node, "this").this)
        if isinstance(node, exp.Boolean):
            return bool(node.this)
        if isinstance(node, exp.Literal):
            return node.name if node.is_string else number(node.name)
        if isinstance(node, exp.Neg) and not isinstance(node.this, exp.Neg):
            return self._negative(node)
        if isinstance(node, exp.Null):
            raise UsageError("a comparison with NULL is never true: write IS NULL or IS NOT NULL")
        if isinstance(node, exp.Cast) and node.to.this in _DATES and isinstance(node.this, exp.Literal):
            return only(node, "this", "to").this.name
        raise unsupported(node)

    def _named(self, node: exp.Column | exp.Dot) -> Operand:
        only(node, "this", "table", "db", "catalog", "expression")
        parts = node.parts
        if not all(isinstance(part, exp.Identifier) for part in parts):
            raise unsupported(node)
        # A name with dots need not be quoted: nested JSON makes such names.
        name = ".".join(part.name for part in parts)
        operand = self._names.find(name, quoted=all(part.args.get("quoted") for part in parts))
        self.used[operand.name] = None
        return operand

    def _negative(self, node: exp.Neg) -> Value:
        value = self.value(only(node, "this").this)
        if isinstance(value, (bool, str)):
            raise unsupported(node)
        return -value


def _letters(function: str) -> Callable[[Operand], Operand]:
    def apply(argument: Operand) -> Operand:
        if argument.type != "text":
            raise UsageError(f"{argument.name} is {ARTICLES[argument.type]}, and {function} needs text")
        return Operand(f"{function}({argument.sql})", "text", f"{function}({argument.name})")

    return apply


def _length(argument: Operand) -> Operand:
    functions = {"text": "length", "list": "json_array_length"}
    if argument.type not in functions:
        raise UsageError(f"{argument.name} is {ARTICLES[argument.type]}, and LENGTH needs text or a list")
    return Operand(f"{functions[argument.type]}({argument.sql})", "integer", f"LENGTH({argument.name})")


_FUNCTIONS: dict[type[exp.Expr] | tuple[type[exp.Expr], ...], Callable[[Operand], Operand]] = {
    exp.Lower: _letters("LOWER"),
    exp.Upper: _letters("UPPER"),
    (exp.Length, exp.ArraySize): _length,
}
