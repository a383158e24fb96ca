"""Add texts to a collection, a new one or an existing one."""

from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import streamlit as st

from ....indexer.encoder import DEFAULT_MODEL, Encoder
from ....indexer.encoder.models import STATIC_MODEL
from ....indexer.errors import SondeError
from ....indexer.ingest import BuildSettings, Estimate
from ....indexer.readers import Preview, ReadOptions
from ...api.functions import canonical_name, encoder_for, estimate_source, is_local, present, remembered_ids, size
from ..jobs.job import Chain
from ..jobs.panel import NO_NAME
from ..page import BEGUN, MADE, escape_markdown, failure, go_to
from ..workspace import SUFFIX, Workspace
from .columns import choose_columns, counted_rows, readable, role_words, stamps
from .overview import model_missing

UPLOAD, PATH = "Upload", "A path on this machine"


def choose_source(shelf: Workspace, key: str) -> list[Path]:
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
            "Source", [UPLOAD, PATH], default=UPLOAD, required=True, key=f"{key}-from", label_visibility="collapsed"
        )
    return _named(key) if how == PATH else _sent(shelf, key)


def forget_source(key: str) -> None:
    """Start over: no files are chosen. They stay on the disk for the job that reads them."""
    st.session_state.pop(f"{key}-kept", None)
    st.session_state[f"{key}-time"] = st.session_state.get(f"{key}-time", 0) + 1


def _sent(shelf: Workspace, key: str) -> list[Path]:
    files: Any = st.file_uploader(
        "Files: CSV, TSV, JSON, JSONL, Parquet, XLSX, references, text, Markdown, HTML, PDF, Word, mail; .gz, .zst",
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


DEFAULT, STATIC, OTHER = f"{DEFAULT_MODEL} (the default)", "static (fast, for drafts)", "another"
ADD = "Add texts"
OVERVIEWS = 50_000
"""Rows up to which a map and topics are offered with a new collection: beyond it, they take many minutes."""
FURTHER = "Runs in the background after indexing. Meanwhile, you can search and label."


def show_making(shelf: Workspace) -> None:
    """Make a collection."""
    paths = choose_source(shelf, "new")
    if not paths:
        return
    first = st.container()  # above the columns, which most visitors need not change
    found, options = choose_columns(paths, "new")
    with first:
        fields, button = st.columns([5, 2], vertical_alignment="bottom")
        with fields:
            name, model, language = _settings(shelf, paths)
        if options is None or name is None or model is None:
            return
        settings = BuildSettings(model=None if model == DEFAULT_MODEL else model, device=shelf.settings.device)
        extra = ["--model", model] if settings.model else []
        extra += ["--language", language] if language else []
        with button:
            words = [*role_words(options), *extra]
            few = found.count <= OVERVIEWS
            further = few and st.checkbox("Also make a map and topics", value=True, key="new-further", help=FURTHER)
            label = f"Index {counted_rows(found)}"
            _start(shelf, name, paths, words, "new", f"Create {name}", label, further=further)
        _expect(paths, options, settings, readable(found))


def show_adding(shelf: Workspace, name: str) -> None:
    """Add texts to a collection, or sync it with its files."""
    busy = shelf.jobs.running(name)
    if busy:
        st.info(escape_markdown(f"{busy.title} is running. You can add texts when it has ended."))
        return
    if model_missing(shelf.open(name)):
        return
    paths = choose_source(shelf, "add")
    if not paths:
        st.caption("A row with a known id replaces that document. Unchanged texts are not embedded again.")
        return
    found, options = choose_columns(paths, "add", remembered_ids(shelf.path(name)))
    options = options and _with_meant_text(shelf, name, found, options)
    if options is None:
        return
    sync = st.checkbox("Sync: delete documents that are not in these files", key="add-sync")
    if sync:
        st.warning("Afterwards, the collection contains only what is in these files.")
    most = sync and st.checkbox(
        "Allow this even if it deletes most documents, or those of another source", key="add-delete-most"
    )
    extra = ["--sync", "--delete-most"] if most else ["--sync"] if sync else []
    _start(
        shelf,
        name,
        paths,
        [*role_words(options), *extra],
        "add",
        f"{'Sync' if sync else 'Add to'} {name}",
        "Sync" if sync else "Add",
    )


def _with_meant_text(shelf: Workspace, name: str, found: Preview, options: ReadOptions) -> ReadOptions | None:
    """Ask before a column that is metadata of the collection replaces its texts; None until the visitor agrees."""
    texts = options.texts or tuple(found.columns.text if found.columns and not found.fixed else ())
    known = shelf.open(name).fields()
    others = escape_markdown(", ".join(column for column in texts if column in known))
    if not others:
        return options
    st.warning(
        f"In this collection, {others} is metadata, not the text. If you go on, it replaces the text of each document "
        "in the file. Choose another Text column, or a file with the texts."
    )
    return (
        replace(options, text=texts) if st.checkbox(f"Replace the texts with {others}", key="add-text-meant") else None
    )


def _settings(shelf: Workspace, paths: Sequence[Path]) -> tuple[str | None, str | None, str]:
    cells = st.columns([2, 2, 1])
    suggestion = paths[0].name.split(".")[0] or "texts"
    given = cells[0].text_input("Name", suggestion, key="new-name", autocomplete="off").strip().removesuffix(SUFFIX)
    choice = cells[1].selectbox("Model", [DEFAULT, STATIC, OTHER], key="new-model")
    language = (
        cells[2].text_input("Language", key="new-language", placeholder="detected", help="en, de, pt-BR …").strip()
    )
    chosen = (
        other_model(shelf, "new-other") if choice == OTHER else DEFAULT_MODEL if choice == DEFAULT else STATIC_MODEL
    )
    return _name(shelf, given), chosen, language


def _name(shelf: Workspace, given: str) -> str | None:
    if not given:
        st.warning(NO_NAME)
        return None
    try:
        path = shelf.path(given)
    except SondeError as error:
        st.error(failure(error))
        return None
    if not path.exists():
        return given
    cells = st.columns([4, 1], vertical_alignment="center")
    cells[0].warning(
        f"The collection {escape_markdown(given)} already exists. Choose another name, or add the texts to it."
    )
    if given in shelf.names():
        cells[1].button("Add to it", key="add-instead", on_click=_add_instead, args=(given,))
    return None


def _add_instead(name: str) -> None:
    """Take the files along to the other task."""
    st.session_state["collection"] = name
    st.session_state["do"] = ADD
    st.session_state["add-kept"] = st.session_state.pop("new-kept", [])


def other_model(shelf: Workspace, key: str) -> str | None:
    """Let the name of a model be typed, and return it; None as long as there is none that can be used."""
    what = "Name of a model, or its folder" if shelf.settings.local else "Name of a model"
    given = st.text_input(what, key=key, placeholder="intfloat/multilingual-e5-small", autocomplete="off").strip()
    if not given:
        return None
    if not shelf.settings.local and (given[0] in "./~" or Path(given).is_dir()):
        st.error("You can give a folder only on the server's own machine. Give the name of a model.")
        return None
    try:
        name = canonical_name(given)
    except SondeError as error:
        st.error(failure(error))
        return None
    if not is_local(name):
        st.info(f"{escape_markdown(name)} is not on this machine. The job will download it from the model hub.")
    return name


def _start(
    shelf: Workspace, name: str, paths: Sequence[Path], extra: list[str], key: str, title: str, label: str,
    *, further: bool = False,
) -> None:  # fmt: skip
    command = ["index", *map(str, paths), "--to", str(shelf.path(name)), *extra, *job_device(shelf), "--json"]
    if st.button(
        escape_markdown(label), key=f"{key}-start", type="primary", icon=":material/play_arrow:", width="stretch"
    ):
        shelf.jobs.start(title, name, command, overviews(shelf, name) if further else ())
        st.session_state.pop(BEGUN, None)
        st.session_state[MADE] = name
        forget_source(key)
        st.session_state.pop("do", None)  # the task is done, and another visit begins with "About"
        go_to("data")


def job_device(shelf: Workspace) -> list[str]:
    """Return the option that gives a job the device of the web UI."""
    return [] if shelf.settings.device == "auto" else ["--device", shelf.settings.device]


def overviews(shelf: Workspace, name: str) -> Chain:
    """Return the jobs that make a map and topics of a new collection, as far as their libraries are installed."""
    path, device = str(shelf.path(name)), job_device(shelf)
    wanted = (("Map", "map", "umap"), ("Topics", "topics", "evoc"))
    return tuple((title, (word, path, *device)) for title, word, library in wanted if find_spec(library))


def _expect(paths: Sequence[Path], options: ReadOptions, settings: BuildSettings, count: int) -> None:
    model = settings.model_name
    if not is_local(model):
        st.caption("The job shows how long it takes once it has the model.")
        return
    try:
        found = _estimate(tuple(map(str, paths)), stamps(paths), options, model, settings.device, count)
    except SondeError as error:
        st.error(failure(error))
        return
    if not found.passages:
        st.error("The first rows contain no text. Choose another text column below, or another file.")
        return
    st.caption(escape_markdown(f"Estimate, from a test on this machine: {found.describe()}."))


@st.cache_data(show_spinner="Estimating from a short test …", max_entries=50, ttl=3600)
def _estimate(
    paths: tuple[str, ...],
    stamp: tuple[tuple[int, float], ...],
    options: ReadOptions,
    model: str,
    device: str,
    documents: int,
) -> Estimate:
    del stamp  # part of the key
    nowhere = Path(paths[0]).with_name(".not-there.sonde")
    return estimate_source(
        [Path(path) for path in paths], nowhere, options, BuildSettings(model=model, device=device),
        encoder=_encoder(model, device), documents=documents,
    )  # fmt: skip


@st.cache_resource(show_spinner=False, max_entries=2)
def _encoder(model: str, device: str) -> Encoder:
    return encoder_for(Path("/nowhere/new.sonde"), BuildSettings(model=model, device=device))
