"""Results as tables: one row for each document, group, finding or count, as a DataFrame and in notebooks."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from html import escape
from typing import TYPE_CHECKING, Any

from ..errors import MissingExtraError, unknown_option
from ..wording import counted

if TYPE_CHECKING:
    import pandas as pd

_NULLABLE = {"integer": "Int64", "boolean": "boolean"}
"""Types of pandas for values that would become floats or objects beside missing ones."""
ROWS_SHOWN = 20
LISTED, CHARACTERS = 5, 120
"""Items of a list, and characters of a cell, that a notebook shows."""


class Tabular:
    """A result that has `rows()`: JSON values under the stable names of `--json`."""

    __slots__ = ()

    if TYPE_CHECKING:

        def rows(self) -> list[dict[str, Any]]:
            """Return one row for each group, finding or count, as JSON values."""
            ...

    def to_pandas(self) -> "pd.DataFrame":
        """Return the rows as a DataFrame.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        return frame_of(self.rows(), ())


class Shown(Tabular):
    """A result that notebooks show as a short table, and consoles as one line."""

    __slots__ = ()

    _row = "group"
    """What one row is about."""

    def __repr__(self) -> str:
        parts = [repr(name) for name in (getattr(self, "name", None),) if name]
        parts.append(counted(len(self.rows()), self._row))
        if isinstance(documents := getattr(self, "documents", None), int):
            parts.append(counted(documents, "document"))
        return f"{type(self).__name__}({', '.join(parts)})"

    def _repr_html_(self) -> str:
        """Return the first rows as an HTML table, every text escaped."""
        rows = self.rows()
        names = list(dict.fromkeys(name for row in rows for name in row))
        head = "".join(f"<th>{escape(name)}</th>" for name in names)
        body = "".join(
            f"<tr>{''.join(f'<td>{escape(_shown(row.get(name)))}</td>' for name in names)}</tr>"
            for row in rows[:ROWS_SHOWN]
        )
        more = f"<p>… and {len(rows) - ROWS_SHOWN:,} more: to_pandas() has all</p>" if len(rows) > ROWS_SHOWN else ""
        notes = "".join(f"<p>{escape(note)}</p>" for note in getattr(self, "notes", ()))
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>" if rows else ""
        return without_mathematics(f"<p>{escape(repr(self))}</p>{notes}{table}{more}")


def without_mathematics(html: str) -> str:
    """Return HTML in which a notebook draws no formulas: texts of documents may have dollar signs."""
    return f'<div class="tex2jax_ignore mathjax_ignore">{html}</div>'


def _shown(value: Any) -> str:
    """Return a cell as text; of a list, its first items, and of an item with several parts, the first."""
    if isinstance(value, (list, tuple)):
        firsts = [_first(each) for each in value[:LISTED]]
        return ", ".join(firsts) + (", …" if len(value) > LISTED else "")
    if isinstance(value, float):
        return f"{value:.4g}"
    text = "" if value is None else str(value)
    return text if len(text) <= CHARACTERS else f"{text[: CHARACTERS - 1]}…"


def _first(item: Any) -> str:
    if isinstance(item, Mapping):
        item = list(item.values())
    return _shown(item[0] if isinstance(item, (list, tuple)) and item else item)


def only_columns(frame: "pd.DataFrame", columns: Sequence[str] | None) -> "pd.DataFrame":
    """Return some columns of a DataFrame of documents, in the order given; all if None.

    Raises:
        UsageError: A column does not exist. Without a row, any column is taken, because none shows which there are.
    """
    if columns is None:
        return frame
    for name in columns if len(frame) else ():
        if name not in frame.columns:
            raise unknown_option("columns", name, frame.columns)
    return frame.reindex(columns=list(columns))


def frame_of(rows: Iterable[dict[str, Any]], columns: Sequence[str] = ("id", "title", "text")) -> "pd.DataFrame":
    """Return rows as a DataFrame, which has `columns` if there is no row.

    Integers and booleans keep their type where values are missing: such a column has the type Int64 or boolean. Times
    are datetime64 in UTC, and so are dates that stand among times, which Python cannot compare with each other.

    Raises:
        MissingExtraError: pandas is not installed.
    """
    try:
        import pandas as pd
    except ImportError:
        raise MissingExtraError("pandas", "pandas", "to_pandas()") from None
    found = list(rows)
    frame = pd.DataFrame(found, columns=None if found else list(columns))
    for name in frame.columns[frame.isna().any() | (frame.dtypes == "object")]:
        values = [row.get(name) for row in found]
        timed = any(isinstance(value, datetime) for value in values)
        kind = "datetime64[us]" if timed else _NULLABLE.get(pd.api.types.infer_dtype(values, skipna=True))
        if kind:
            frame[name] = pd.Series(values, dtype=kind)
    return frame
