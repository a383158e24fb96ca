"""Downloads: documents with the columns that the visitor chooses, and the groups of a run as a table."""

import codecs
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import streamlit as st

from ...indexer.store.runs import Item, Run
from ...indexer.wording import counted
from ..api import Collection
from .page import sentences

QUOTED = "Cells that a spreadsheet would run as formulas start with an apostrophe. JSONL has the unchanged texts."
"""What a button says that downloads a CSV file."""
FILLED = "Columns in which none of these documents has a value are left out. A second sheet names them."
"""What a button says that downloads all columns for Excel."""
QUOTED_TABLE = "Cells that a spreadsheet would run as formulas start with an apostrophe."


def show_export(collection: Collection, run: Run, item: Item, key: str) -> None:
    """Offer the documents of an item, with their metadata and what all runs say of them, as a file."""
    size = item.data.get("size", 0)
    if not size:
        return

    columns = choose_export_columns(collection, key)

    def content(suffix: str) -> bytes:
        ids = [member.id for member in collection.members(run.name, item.number, kind=run.kind, k=size)]
        docs = np.array(sorted(collection.numbers(ids).values()))
        return written(suffix, lambda path: collection.export_numbered(docs, path, columns=columns, filled=True))

    with st.container(horizontal=True):
        for suffix, name in ((".xlsx", "Excel"), (".csv", "CSV"), (".jsonl", "JSONL")):
            st.download_button(
                f"Download {counted(size, 'document')} as {name}", lambda suffix=suffix: content(suffix),
                f"{run.name}-{item.name}{suffix}", key=f"{key}_export{suffix}", on_click="ignore",
                icon=":material/download:", help=help_of_export(suffix, columns),
            )  # fmt: skip


def help_of_export(suffix: str, columns: list[str] | None) -> str | None:
    """Return what a button says that downloads documents with these columns, all if None."""
    return QUOTED if suffix == ".csv" else FILLED if suffix == ".xlsx" and columns is None else None


ALL_COLUMNS = "All columns"


def choose_export_columns(collection: Collection, key: str, known: list[str] | None = None) -> list[str] | None:
    """Let the columns of a download be chosen, and return them; None for all, which also an empty choice means.

    Those of an export of documents can be chosen, unless `known` names others.
    """
    with st.expander("Columns of the download"):
        chosen = st.multiselect(
            "Columns", known or collection.export_columns(), key=f"{key}_columns", placeholder=ALL_COLUMNS,
            help="Without a choice, the file has all columns.",
        )  # fmt: skip
    return chosen or None


def written(suffix: str, write: Callable[[Path], object]) -> bytes:
    """Return the content of a file of this suffix as `write` writes it; Excel opens a CSV file with the right letters.

    Excel takes a CSV file for the system's old encoding, unless it begins with a byte order mark.
    """
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"export{suffix}"
        write(path)
        return for_spreadsheets(path.read_bytes(), suffix)


def for_spreadsheets(content: bytes, suffix: str) -> bytes:
    """Return the content of a file for download: with a byte order mark if it is CSV."""
    return codecs.BOM_UTF8 + content if suffix == ".csv" else content


TABLE = "One row for each group: number, name, terms, documents, share, and three texts."


def show_groups_download(collection: Collection, run: Run, key: str) -> None:
    """Offer the groups of a run as a table for a report."""
    with st.popover("Table of groups", icon=":material/table_view:"), sentences():
        st.caption(TABLE)
        for suffix, name in ((".xlsx", "Excel"), (".csv", "CSV")):
            st.download_button(
                f"Download as {name}",
                lambda suffix=suffix: written(
                    suffix, lambda path: collection.export_groups(path, run.name, str(run.kind))
                ),
                f"{run.name}-{run.kind.items}{suffix}", key=f"{key}_table{suffix}", on_click="ignore",
                icon=":material/download:", help=QUOTED_TABLE if suffix == ".csv" else None,
            )  # fmt: skip
