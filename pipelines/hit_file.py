"""The hits of one query as a table for other programs: CSV or JSON lines."""

import csv
import io
import json
from typing import Any

from ..indexer.fields import as_text
from .results import Hit, Results

BEFORE = ("rank", "id", "title", "score", "dense", "lexical", "rerank", "passage", "text")


def to_jsonl(results: Results) -> bytes:
    """Return a JSON object a line, as `sonde search --json` prints them."""
    return "".join(json.dumps(hit.to_dict(), ensure_ascii=False) + "\n" for hit in results).encode()


def to_csv(results: Results) -> bytes:
    """Return rows with rank, id, title, score and its parts, passage, text, then the metadata in columns.

    A column of the metadata that is named like one of those before is called `metadata.NAME`.
    """
    names = list(dict.fromkeys(name for hit in results for name in hit.metadata))
    stream = io.StringIO()
    table = csv.writer(stream, lineterminator="\n")
    table.writerow([*BEFORE, *(f"metadata.{name}" if name in BEFORE else name for name in names)])
    table.writerows([*_cells(hit), *(_cell(hit.metadata.get(name)) for name in names)] for hit in results)
    return stream.getvalue().encode()


def _cells(hit: Hit) -> list[Any]:
    scores = (hit.score, hit.scores.dense, hit.scores.lexical, hit.scores.rerank)
    return [hit.rank, hit.id, hit.title, *(None if one is None else f"{one:.6f}" for one in scores),
            hit.passage.text, hit.text]  # fmt: skip


def _cell(value: Any) -> str:
    return "" if value is None else as_text(value)
