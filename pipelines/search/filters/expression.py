"""The walk over a parsed filter: a few kinds of nodes are compiled, everything else is refused."""

from collections.abc import Callable, Sequence
from typing import cast

from sqlglot import exp

from ....indexer.errors import UsageError, give_type
from .conditions import SUPPORTED, Operands, Operator, Test, condition, only, unsupported
from .sql import ARTICLES, Fragment, Operand, any_of, compare_fields, join_fragments, shown

_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "!=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_MIRRORED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


class Expressions:
    """Compiles conditions; every method refuses a part of its node that it does not know."""

    def __init__(self, operands: Operands) -> None:
        self._operands = operands

    def condition(self, node: exp.Expr) -> Fragment:
        """Compile what is true, false or NULL.

        Raises:
            UsageError: It is no condition, or not one that filters have.
        """
        for kinds, compile_node in _NODES.items():
            if isinstance(node, kinds):
                return compile_node(self, node)
        operand = self._operands.field(node)
        if operand is None:
            raise unsupported(node)
        if operand.type != "boolean":
            raise _no_condition(operand, self._operands)
        return Fragment(operand.sql)

    def paren(self, node: exp.Expr) -> Fragment:
        """(…)."""
        inner = self.condition(only(node, "this").this)
        return Fragment(f"({inner.sql})", inner.parameters, inner.cost)

    def negation(self, node: exp.Expr) -> Fragment:
        """NOT …."""
        return self.condition(only(node, "this").this).negated()

    def connector(self, node: exp.Expr) -> Fragment:
        """… AND … AND …, without recursion, since such a chain may have thousands of links."""
        kind, pending, parts = type(node), [node], list[Fragment]()
        while pending:
            part = pending.pop()
            if type(part) is kind:
                pending += [only(part, "this", "expression").args["expression"], part.this]
            else:
                parts.append(self.condition(part))
        return join_fragments(parts, "AND") if kind is exp.And else any_of(parts)

    def boolean(self, node: exp.Expr) -> Fragment:
        """TRUE and FALSE."""
        return Fragment("1" if node.this else "0")

    def comparison(self, node: exp.Expr) -> Fragment:
        """A field and a value, in either order, or two fields."""
        operator = _COMPARISONS[type(only(node, "this", "expression"))]
        left, right = node.this, node.args["expression"]
        operand = self._operands.field(left)
        other = self._operands.other_side(operand, right, operator)
        if operand and other:
            return compare_fields(operand, operator, other)
        if operand is None:
            operand, right, operator = self._required(right, node), left, _MIRRORED[operator]
        return self._test(operand, operator, [right])

    def membership(self, node: exp.Expr) -> Fragment:
        """A field IN (values), or a value IN a list field."""
        only(node, "this", "expressions", "field")
        options = [node.args["field"]] if node.args.get("field") else node.expressions
        operand = self._operands.field(node.this)
        if operand is None:
            return self._contained(options[0] if len(options) == 1 else node, node.this, node)
        if not options:
            raise UsageError(f"IN needs at least one value: {operand.written} IN (…, …)")
        return self._test(operand, "IN", options)

    def contains(self, node: exp.Expr) -> Fragment:
        """CONTAINS(list, value)."""
        only(node, "this", "expression", "ensure_variant", "json_scope", "check_null")
        return self._contained(node.this, node.args["expression"], node)

    def between(self, node: exp.Expr) -> Fragment:
        """Both ends included."""
        operand = self._required(only(node, "this", "low", "high").this, node)
        return self._test(operand, "BETWEEN", [node.args["low"], node.args["high"]])

    def pattern(self, node: exp.Expr, escape: str | None = None) -> Fragment:
        """LIKE and ILIKE, for which sqlglot keeps the NOT inside the node."""
        operand = self._required(only(node, "this", "expression", "negate").this, node)
        operator: Operator = "LIKE" if isinstance(node, exp.Like) else "ILIKE"
        found = self._test(operand, operator, [node.args["expression"]], escape)
        return found.negated() if node.args.get("negate") else found

    def escape(self, node: exp.Expr) -> Fragment:
        """LIKE … ESCAPE '…'."""
        character = self._operands.value(only(node, "this", "expression").args["expression"])
        if not isinstance(node.this, (exp.Like, exp.ILike)):
            raise unsupported(node)
        if not isinstance(character, str) or len(character) != 1:
            raise UsageError(f"ESCAPE needs one character in single quotes, not {character!r}")
        return self.pattern(node.this, character)

    def identity(self, node: exp.Expr) -> Fragment:
        """IS NULL, IS TRUE, IS FALSE, which are never NULL themselves."""
        operand, right = self._required(only(node, "this", "expression").this, node), node.args["expression"]
        if isinstance(right, exp.Null):
            names = operand.type == "list" and not operand.column  # of a run: empty for a document that it lacks
            sql = f"nullif({operand.sql}, '[]')" if names else operand.sql
            return Fragment(f"{sql} IS NULL", cost=operand.cost)
        if isinstance(right, exp.Boolean) and operand.type == "boolean":
            return Fragment(f"{operand.sql} IS {int(right.this)}")
        raise UsageError(f"IS takes NULL, and for a boolean TRUE or FALSE, unlike in {shown(node.sql('sqlite'))}")

    def _required(self, side: exp.Expr, node: exp.Expr) -> Operand:
        operand = self._operands.field(side)
        if operand is None:
            raise UsageError(f"no field is compared in {shown(node.sql('sqlite'))}: {SUPPORTED}")
        return operand

    def _contained(self, container: exp.Expr, value: exp.Expr, node: exp.Expr) -> Fragment:
        operand = self._required(container, node)
        if operand.type != "list":
            says = f"{operand.name} is {ARTICLES[operand.type]}, not a list"
            way = f"write {operand.written} = …, or {operand.written} LIKE '%…%' for a part of a text"
            if operand.type == "text" and operand.column:
                way += f'; if its values are lists such as ["a", "b"], {give_type(operand.column, "list")}'
            raise UsageError(f"{says}: {way}")
        return self._test(operand, "=", [value])

    def _test(self, operand: Operand, operator: str, values: Sequence[exp.Expr], escape: str | None = None) -> Fragment:
        if operator == "!=":
            return self._test(operand, "=", values).negated()
        test = Test(cast("Operator", operator), [self._operands.value(value) for value in values], escape)
        self._operands.check_order(operand, test)
        return condition(operand, test)


def _no_condition(operand: Operand, operands: Operands) -> UsageError:
    """Return the error for a field that stands alone, as a boolean can."""
    value = "…" if operand.type in ("integer", "real") else "'…'"
    said = f"{operand.name} is {ARTICLES[operand.type]}, not true or false"
    way = f"compare it with a value, as in: {operand.written} = {value}"
    if operand.type == "text" and (advice := operands.boolean_advice(operand)):
        way += f"; or {advice}"
    return UsageError(f"{said}: {way}")


_NODES: dict[type[exp.Expr] | tuple[type[exp.Expr], ...], Callable[[Expressions, exp.Expr], Fragment]] = {
    exp.Paren: Expressions.paren,
    exp.Not: Expressions.negation,
    (exp.And, exp.Or): Expressions.connector,
    exp.Boolean: Expressions.boolean,
    tuple(_COMPARISONS): Expressions.comparison,
    exp.In: Expressions.membership,
    (exp.Contains, exp.ArrayContains): Expressions.contains,
    exp.Between: Expressions.between,
    (exp.Like, exp.ILike): Expressions.pattern,
    exp.Escape: Expressions.escape,
    exp.Is: Expressions.identity,
}
