"""Pieces of SQL that carry their bound parameters with them."""

from collections.abc import Sequence
from dataclasses import dataclass

SHOWN = 60


@dataclass(frozen=True, slots=True)
class Fragment:
    """A SQL expression and the values of its question marks, in order."""

    sql: str
    parameters: tuple[str | int | float, ...] = ()

    def negated(self) -> "Fragment":
        """Return NOT of this; what is NULL stays NULL."""
        return Fragment(f"NOT ({self.sql})", self.parameters)


def joined(parts: Sequence[Fragment], operator: str) -> Fragment:
    """Join conditions by AND or OR as a balanced tree, because SQLite limits the depth of an expression to 1,000."""
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    left, right = joined(parts[:middle], operator), joined(parts[middle:], operator)
    return Fragment(f"({left.sql} {operator} {right.sql})", left.parameters + right.parameters)


def shown(text: str) -> str:
    """Quote a text for a message, cut to one short line."""
    return repr(text if len(text) <= SHOWN else text[: SHOWN - 1] + "…")
