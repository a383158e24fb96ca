"""Add texts to a collection, a new one or an existing one."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import streamlit as st

from .....indexer.encoder import DEFAULT_MODEL, Encoder
from .....indexer.encoder.models import STATIC_MODEL
from .....indexer.errors import SondeError
from .....indexer.ingest import BuildSettings, Estimate
from .....indexer.readers import ReadOptions
from ....api.functions import canonical_name, encoder_for, estimate_source, is_local, present, size
from ...page import escape_markdown, failure
from ...workspace import SUFFIX, Workspace
from .columns import choose_columns, role_words, stamps
from .health import model_missing

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
            "Where from", [UPLOAD, PATH], default=UPLOAD, required=True, key=f"{key}-from", label_visibility="collapsed"
        )
    return _named(key) if how == PATH else _sent(shelf, key)


def forget_source(key: str) -> None:
    """Start over: no files are chosen. They stay on the disk for the job that reads them."""
    st.session_state.pop(f"{key}-kept", None)
    st.session_state[f"{key}-time"] = st.session_state.get(f"{key}-time", 0) + 1


def _sent(shelf: Workspace, key: str) -> list[Path]:
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


DEFAULT, STATIC, OTHER = f"{DEFAULT_MODEL} (the default)", "static (fast, for drafts)", "another"
ADD = "Add texts"


def show_making(shelf: Workspace) -> None:
    """Make a collection."""
    st.subheader("New collection", anchor=False)
    paths = choose_source(shelf, "new")
    if not paths:
        return
    found, options = choose_columns(paths, "new")
    name, model, language = _settings(shelf, paths)
    if options is None or name is None or model is None:
        return
    settings = BuildSettings(model=None if model == DEFAULT_MODEL else model, device=shelf.settings.device)
    place = st.empty()
    extra = ["--model", model] if settings.model else []
    extra += ["--language", language] if language else []
    _start(
        shelf,
        name,
        paths,
        [*role_words(options), *extra],
        "new",
        f"Create {name}",
        f"Index {found.count:,} {'files' if found.fixed else 'rows'}",
    )
    with place:
        _expect(paths, options, settings, found.count)


def show_adding(shelf: Workspace, name: str) -> None:
    """Add texts to a collection, or bring it in step with its files."""
    busy = shelf.jobs.running(name)
    if busy:
        st.info(escape_markdown(f"{busy.title} is running. Texts can be added when it has ended."))
        return
    if model_missing(shelf.open(name)):
        return
    paths = choose_source(shelf, "add")
    if not paths:
        st.caption("Rows whose id is known replace those documents; what has not changed is not embedded again.")
        return
    _, options = choose_columns(paths, "add")
    if options is None:
        return
    sync = st.checkbox("Sync: delete the documents that are not in these files", key="add-sync")
    if sync:
        st.warning("The collection will then hold what these files hold, and nothing else.")
    most = sync and st.checkbox("Also if more than half of the documents are deleted", key="add-delete-most")
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


def _settings(shelf: Workspace, paths: Sequence[Path]) -> tuple[str | None, str | None, str]:
    cells = st.columns([2, 2, 1])
    suggestion = paths[0].name.split(".")[0] or "texts"
    given = cells[0].text_input("Name", suggestion, key="new-name", autocomplete="off").strip().removesuffix(SUFFIX)
    choice = cells[1].selectbox("Model", [DEFAULT, STATIC, OTHER], key="new-model")
    language = (
        cells[2].text_input("Language", key="new-language", placeholder="detected", help="en, de, pt-BR …").strip()
    )
    chosen = _other(shelf) if choice == OTHER else DEFAULT_MODEL if choice == DEFAULT else STATIC_MODEL
    return _name(shelf, given), chosen, language


def _name(shelf: Workspace, given: str) -> str | None:
    try:
        path = shelf.path(given)
    except SondeError as error:
        st.error(failure(error))
        return None
    if not path.exists():
        return given
    cells = st.columns([4, 1], vertical_alignment="center")
    cells[0].warning(f"There is a collection {escape_markdown(given)} already: choose another name, or add to it.")
    if given in shelf.names():
        cells[1].button("Add to it", key="add-instead", on_click=_add_instead, args=(given,))
    return None


def _add_instead(name: str) -> None:
    """Take the files along to the other task."""
    st.session_state["collection"] = name
    st.session_state["do"] = ADD
    st.session_state["add-kept"] = st.session_state.pop("new-kept", [])


def _other(shelf: Workspace) -> str | None:
    what = "Name of a model, or its folder" if shelf.settings.local else "Name of a model"
    given = st.text_input(
        what, key="new-other", placeholder="intfloat/multilingual-e5-small", autocomplete="off"
    ).strip()
    if not given:
        return None
    if not shelf.settings.local and (given[0] in "./~" or Path(given).is_dir()):
        st.error("Folders can be named on the server's own machine alone: give the name of a model.")
        return None
    try:
        name = canonical_name(given)
    except SondeError as error:
        st.error(failure(error))
        return None
    if not is_local(name):
        st.info(f"{escape_markdown(name)} is not on this machine: the job will download it from the model hub.")
    return name


def _start(
    shelf: Workspace, name: str, paths: Sequence[Path], extra: list[str], key: str, title: str, label: str
) -> None:
    device = [] if shelf.settings.device == "auto" else ["--device", shelf.settings.device]
    command = ["index", *map(str, paths), "--to", str(shelf.path(name)), *extra, *device, "--json"]
    if st.button(escape_markdown(label), key=f"{key}-start", type="primary", icon=":material/play_arrow:"):
        shelf.jobs.start(title, name, command)
        forget_source(key)
        st.rerun()


def _expect(paths: Sequence[Path], options: ReadOptions, settings: BuildSettings, count: int) -> None:
    model = settings.model_name
    if not is_local(model):
        st.caption("What it will take is said by the job, once it has the model.")
        return
    try:
        found = _estimate(tuple(map(str, paths)), stamps(paths), options, model, settings.device, count)
    except SondeError as error:
        st.error(failure(error))
        return
    st.caption(escape_markdown(f"Expected, from a probe on this machine: {found.describe()}."))


@st.cache_data(show_spinner="Estimating from a short probe …", max_entries=50, ttl=3600)
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
