"""How hits are shown: the metadata beside them, and tables as CSV, JSON lines, a DataFrame, and HTML for notebooks."""

import csv
import io
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from html import escape
from typing import TYPE_CHECKING, Any

from ...indexer.document import Value
from ...indexer.store.fields import distinct_names, json_value, stored_text
from ...indexer.store.tabular import Formulas, frame_of, without_mathematics
from .results import Hit, Results

if TYPE_CHECKING:
    import pandas as pd

FILE_DETAILS = frozenset({"bytes", "modified"})
"""Fields of files that differ between all of them and tell a reader nothing."""
LENGTH = 80

BEFORE = ("rank", "id", "title", "relevance", "score", "dense", "lexical", "rerank", "passage", "text")
PAGED = frozenset({"extension", "pages"})
"""Fields of files with pages: their hits have the column `page` too."""

LEFT = 'style="text-align: left"'
"""Of columns of texts: Jupyter aligns what is in a table to the right."""


def hit_columns(fields: Collection[str]) -> list[str]:
    """Return the columns of a table of hits whose documents have these metadata fields."""
    own = _own(set(fields) >= PAGED)
    return [*own, *distinct_names(fields, own).values()]


def to_jsonl(results: Results, columns: Sequence[str] | None = None) -> bytes:
    """Return one JSON object per line, in the format of `sonde search --json`; of some `columns`, just their values."""
    if columns is None:
        rows = [hit.to_dict() for hit in results]
    else:
        rows = [{name: json_value(cells.get(name)) for name in columns} for cells in _named_cells(results)]
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def to_csv(results: Results, columns: Sequence[str] | None = None) -> bytes:
    """Return rows with rank, id, title, relevance, score and its parts, passage, text, then the metadata in columns.

    If a text has pages, the column `page` follows the text. A metadata column whose name clashes with one of these
    columns becomes `metadata.NAME`. A cell that a spreadsheet would run as a formula gets an apostrophe in front.

    Args:
        results: The hits.
        columns: The columns to write, in this order, see `hit_columns`; all if None.
    """
    quote = Formulas().cell
    chosen = _all_columns(results) if columns is None else list(columns)
    stream = io.StringIO()
    table = csv.writer(stream, lineterminator="\n")
    rows: list[list[Any]] = [chosen]
    for cells in _named_cells(results):
        texts = {name: f"{cells[name]:.6f}" if isinstance(cells[name], float) else cells[name] for name in BEFORE}
        texts |= {name: _cell(value) for name, value in cells.items() if name not in texts}
        rows.append([texts.get(name, "") for name in chosen])
    table.writerows([quote(cell) for cell in row] for row in rows)
    return stream.getvalue().encode()


def to_pandas(results: Results) -> "pd.DataFrame":
    """Return the same columns as a DataFrame, with the metadata as it was indexed.

    Raises:
        MissingExtraError: pandas is not installed.
    """
    return frame_of(_named_cells(results), _all_columns(results))


def to_html(results: Results) -> str:
    """Return notes and hits as HTML, every text escaped: rank, relevance, title or id, and the excerpt."""
    rows = "".join(
        f"<tr><td>{hit.rank}</td><td>{hit.relevance_shown}{' weak' if hit.weak else ''}</td>"
        f"<td {LEFT}>{escape(hit.title or hit.id)}{_copies(hit)}</td><td {LEFT}>{escape(hit.shown)}</td></tr>"
        for hit in results
    )
    notes = "".join(f"<p>{escape(note)}</p>" for note in results.notes)
    head = f"<tr><th>rank</th><th>relevance</th><th {LEFT}>document</th><th {LEFT}>excerpt</th></tr>"
    table = f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>"
    return without_mathematics(f"<p>{escape(results.query)}</p>{notes}{table}")


def _own(paged: bool) -> tuple[str, ...]:
    return (*BEFORE, "page") if paged else BEFORE


def _all_columns(results: Results) -> list[str]:
    return [*_own(any(hit.page for hit in results)), *_names(results).values()]


def _names(results: Results) -> dict[str, str]:
    """Return the column of each metadata field."""
    fields = list(dict.fromkeys(name for hit in results for name in hit.metadata))
    return distinct_names(fields, _own(any(hit.page for hit in results)))


def _named_cells(results: Results) -> Iterator[dict[str, Any]]:
    """Yield the values of each hit by column, the metadata as it was indexed."""
    names = _names(results)
    for hit in results:
        scores = (hit.relevance, hit.score, hit.scores.dense, hit.scores.lexical, hit.scores.rerank)
        own = (hit.rank, hit.id, hit.title, *scores, hit.passage.text, hit.text)
        cells = dict(zip(BEFORE, own, strict=True)) | ({"page": hit.page} if hit.page else {})
        yield cells | {names[name]: hit.metadata.get(name) for name in names}


def _copies(hit: Hit) -> str:
    return f" and {len(hit.copies):,} more" if hit.copies else ""


def _cell(value: Any) -> str:
    return "" if value is None else stored_text(value)


def telling_fields(hits: Sequence[Hit]) -> list[str]:
    """Return the metadata fields in which the hits differ, in the collection's order; for a single hit, all it has.

    Fields that repeat the id are left out, and so are the size and time of files, and lists of objects.
    """
    names = dict.fromkeys(name for hit in hits for name in hit.metadata)
    return [name for name in names if name not in FILE_DETAILS and _tells(hits, name)]


def _tells(hits: Sequence[Hit], name: str) -> bool:
    values = [hit.metadata.get(name) for hit in hits]
    if any(_nested(value) for value in values):
        return False
    if all(value == hit.id for hit, value in zip(hits, values, strict=True)):
        return False
    return len(hits) == 1 or len({repr(value) for value in values}) > 1


def _nested(value: Value) -> bool:
    """Whether a value is a list of objects, which is stored as JSON and says little in a line."""
    return isinstance(value, list) and any(isinstance(item, str) and item.startswith("{") for item in value)


def shown_metadata(metadata: Mapping[str, Value], names: Iterable[str]) -> list[tuple[str, str]]:
    """Return the given fields with short values, without empty ones: times to the minute, numbers to six digits."""
    values = ((name, metadata.get(name)) for name in names)
    return [(name, _short(value)) for name, value in values if value not in (None, "", [])]


def _short(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"  # as filters spell them
    if isinstance(value, float):
        return f"{value:,.6g}"
    if isinstance(value, int):
        return f"{value:,}" if abs(value) >= 10_000 else str(value)
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M").removesuffix(" 00:00")
    if isinstance(value, date):
        return value.isoformat()
    text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return text if len(text) <= LENGTH else text[:LENGTH] + " …"
