"""Which files: sent by the browser, or named where the server runs on the visitor's own machine."""

from pathlib import Path
from typing import Any

import streamlit as st

from .....indexer.build.estimate import size
from .....indexer.readers.read import present
from ...shelf import Shelf

UPLOAD, PATH = "Upload", "A path on this machine"


def choose_source(shelf: Shelf, key: str) -> list[Path]:
    """Return the files or folders that the visitor chose, an empty list as long as there are none.

    Raises:
        SondeError: A path does not exist.
    """
    kept = [path for path in st.session_state.get(f"{key}-kept", []) if path.exists()]
    if kept:
        return _kept(key, kept)
    how = UPLOAD
    if shelf.settings.local:
        how = st.segmented_control(
            "Where from", [UPLOAD, PATH], default=UPLOAD, required=True, key=f"{key}-from", label_visibility="collapsed"
        )
    return _named(key) if how == PATH else _sent(shelf, key)


def forget_source(key: str) -> None:
    """Start over: no files are chosen. They stay on the disk for the job that reads them."""
    st.session_state.pop(f"{key}-kept", None)
    st.session_state[f"{key}-time"] = st.session_state.get(f"{key}-time", 0) + 1


def _sent(shelf: Shelf, key: str) -> list[Path]:
    files: Any = st.file_uploader(
        "Files: CSV, TSV, JSON, JSONL, Parquet, XLSX, text, Markdown, HTML, PDF; also .gz and .zst",
        accept_multiple_files=True,
        key=f"{key}-files-{st.session_state.get(f'{key}-time', 0)}",
    )
    if files:
        st.session_state[f"{key}-kept"] = shelf.jobs.uploads.keep(files)
        st.rerun()  # without the uploader, which holds the files in memory as long as it is there
    return []


def _kept(key: str, paths: list[Path]) -> list[Path]:
    cells = st.columns([5, 1], vertical_alignment="center")
    with cells[0]:
        st.text(", ".join(f"{path.name} ({size(path.stat().st_size)})" for path in paths))
    if cells[1].button("Other files", key=f"{key}-again", icon=":material/upload_file:"):
        forget_source(key)
        st.rerun()
    return paths


def _named(key: str) -> list[Path]:
    given = st.text_input(
        "File or folder", key=f"{key}-path", placeholder="~/texts/reviews.csv", autocomplete="off"
    ).strip()
    return [present(Path(given).expanduser().absolute())] if given else []
