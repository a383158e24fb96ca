"""The hits of a search as tables: CSV, JSON lines, a DataFrame, and HTML for notebooks."""

import csv
import io
import json
from html import escape
from typing import TYPE_CHECKING, Any

from ...indexer.store.export import frame_of
from ...indexer.store.fields import distinct_names, stored_text
from ...indexer.store.spreadsheets import Formulas
from ...indexer.store.tabular import without_mathematics
from .results import Hit, Results

if TYPE_CHECKING:
    import pandas as pd

BEFORE = ("rank", "id", "title", "relevance", "score", "dense", "lexical", "rerank", "passage", "text")


def to_jsonl(results: Results) -> bytes:
    """Return one JSON object per line, in the format of `sonde search --json`."""
    return "".join(json.dumps(hit.to_dict(), ensure_ascii=False) + "\n" for hit in results).encode()


def to_csv(results: Results) -> bytes:
    """Return rows with rank, id, title, relevance, score and its parts, passage, text, then the metadata in columns.

    A metadata column whose name clashes with one of these columns becomes `metadata.NAME`. A cell that a spreadsheet
    would run as a formula gets an apostrophe in front.
    """
    quote = Formulas().cell
    names = _names(results)
    stream = io.StringIO()
    table = csv.writer(stream, lineterminator="\n")
    rows: list[list[Any]] = [[*BEFORE, *names.values()]]
    for hit in results:
        scores = (f"{one:.6f}" if isinstance(one, float) else one for one in _cells(hit))
        rows.append([*scores, *(_cell(hit.metadata.get(name)) for name in names)])
    table.writerows([quote(cell) for cell in row] for row in rows)
    return stream.getvalue().encode()


def to_pandas(results: Results) -> "pd.DataFrame":
    """Return the same columns as a DataFrame, with the metadata as it was indexed.

    Raises:
        MissingExtraError: pandas is not installed.
    """
    names = _names(results)
    columns = (*BEFORE, *names.values())
    rows = ([*_cells(hit), *(hit.metadata.get(name) for name in names)] for hit in results)
    return frame_of((dict(zip(columns, row, strict=True)) for row in rows), columns)


LEFT = 'style="text-align: left"'
"""Of columns of texts: Jupyter aligns what is in a table to the right."""


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


def _names(results: Results) -> dict[str, str]:
    """Return the column of each metadata field."""
    return distinct_names(list(dict.fromkeys(name for hit in results for name in hit.metadata)), BEFORE)


def _cells(hit: Hit) -> list[Any]:
    scores = (hit.relevance, hit.score, hit.scores.dense, hit.scores.lexical, hit.scores.rerank)
    return [hit.rank, hit.id, hit.title, *scores, hit.passage.text, hit.text]


def _copies(hit: Hit) -> str:
    return f" and {len(hit.copies):,} more" if hit.copies else ""


def _cell(value: Any) -> str:
    return "" if value is None else stored_text(value)
