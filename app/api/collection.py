"""`sonde.index`, `sonde.open`, and the `Collection` that they return."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal

from ...indexer.ann.library import has_gpu
from ...indexer.encoder import Encoder
from ...indexer.errors import UsageError
from ...indexer.ingest import BuildReport, BuildSettings, Estimate, estimate_source, index_source
from ...indexer.progress import Notify, silent
from ...indexer.readers import ReadOptions
from ...indexer.store.collection import StoredCollection
from .arguments import PROGRESS, checked, settings_from
from .evaluate import Evaluating
from .groups import Grouping
from .labels import Labelling
from .looks import Looking
from .search import Searching
from .selections import Selecting
from .upkeep import Upkeep


class Collection(Searching, Grouping, Labelling, Evaluating, Upkeep, Looking, Selecting):
    """A collection of texts that can be searched, grouped, labelled, evaluated and looked after.

    Open one with `sonde.open` or make one with `sonde.index`. One object may be used from several threads; every
    call works on the newest committed state.

    Example:
        >>> texts = ["Apples are red.", "Bananas are yellow.", "Cars need fuel."]
        >>> fruit = sonde.index(texts, to=folder / "fruit.sonde")
        >>> len(fruit)
        3
    """

    report: BuildReport | None = None
    """What `sonde.index` did, on the collection that it returned."""


@checked
def open(path: str | Path, *, device: str = "auto") -> Collection:
    """Open an existing collection; its model is loaded when a search first needs it.

    Args:
        path: The folder, `NAME.sonde`.
        device: Where to encode queries: "auto", "cpu", "cuda", "cuda:1" …

    Raises:
        SondeError: There is no collection at `path`, or its format cannot be read.

    Example:
        >>> sonde.open(folder / "fruit.sonde").search("petrol", k=1)[0].text
        'Cars need fuel.'
    """
    return Collection.open(path, device=device)


@checked
def index(
    source: Any,
    to: str | Path,
    *,
    text: str | Sequence[str] | None = None,
    title: str | None = None,
    id: str | None = None,
    read: ReadOptions | None = None,
    settings: BuildSettings | None = None,
    encoder: Encoder | None = None,
    progress: Notify = silent,
    **options: Any,
) -> Collection:
    """Bring the collection at `to` up to date with a source; make it if it does not exist.

    Args:
        source: A path or several (CSV, TSV, JSON, JSONL, Parquet, XLSX, each also .gz or .zst; text, Markdown, HTML
            and PDF files or folders of them), or Python data: strings, dictionaries, a DataFrame, an Arrow table, a
            dataset.
        to: The collection's folder, `NAME.sonde`.
        text: Column, or columns, of the text; found by name and content where None, like `title` and `id`.
        title: Column of the title.
        id: Column of the document's id; without one, a hash of the text identifies a document.
        read: Further settings of the reader, in place of `text`, `title` and `id`.
        settings: Settings of the build to start from; an option overrides its field.
        encoder: A bi-encoder of your own.
        progress: Receives progress and messages.
        **options: Any field of `sonde.BuildSettings`: `model`, `device`, `dtype`, `sync` …

    Raises:
        UsageError: No text column was found, or the settings contradict the collection.
        SondeError: The source cannot be read, another process is writing, or the disk is full.

    Example:
        >>> tickets = [{"id": 1, "text": "My parcel is late", "stars": 2}, {"id": 2, "text": "Great!", "stars": 5}]
        >>> happy = sonde.index(tickets, to=folder / "tickets.sonde")
        >>> happy.search("delivery", k=1, where="stars <= 2")[0].id
        '1'
    """
    columns = (text,) if isinstance(text, str) else tuple(text) if text else None
    _check_reading(options, read, {"text": text, "title": title, "id": id})
    reading = read or ReadOptions(text=columns, title=title, id=id)
    building = settings_from(BuildSettings, settings, options, "index", ("text", "title", "id", "read", *PROGRESS))
    report = index_source(source, Path(to), reading, building, encoder=encoder, notify=progress)
    collection = Collection(StoredCollection(Path(to), encoder))
    collection.report = report
    return collection


@checked
def estimate(
    source: Any,
    to: str | Path,
    *,
    read: ReadOptions | None = None,
    settings: BuildSettings | None = None,
    progress: Notify = silent,
    **options: Any,
) -> Estimate:
    """Return what `index` would take with the same arguments; nothing is written.

    Args:
        source: As for `index`.
        to: The collection's folder, `NAME.sonde`, which need not exist.
        read: Settings of the reader.
        settings: Settings of the build to start from; an option overrides its field.
        progress: Receives progress and messages.
        **options: Any field of `sonde.BuildSettings`.

    Raises:
        UsageError: No text column was found, or the settings contradict the collection.
        SondeError: The source cannot be read, or does not tell its size (standard input).
    """
    building = settings_from(BuildSettings, settings, options, "estimate", ("read", *PROGRESS))
    return estimate_source(source, Path(to), read or ReadOptions(), building, notify=progress)


def _check_reading(options: Mapping[str, Any], read: ReadOptions | None, columns: Mapping[str, Any]) -> None:
    """Refuse settings of the reader that are given twice, or where they do not belong."""
    given = [name for name, value in columns.items() if value is not None]
    if read is not None and given:
        raise UsageError(f"{given[0]} and read both name columns: give read=sonde.ReadOptions({given[0]}=…) alone")
    if misplaced := next((each.name for each in fields(ReadOptions) if each.name in options), None):
        raise UsageError(f"{misplaced} is a setting of the reader: give read=sonde.ReadOptions({misplaced}=…)")


def index_device(device: str = "auto") -> Literal["cpu", "cuda"]:
    """Return where the FAISS index is built: "cuda" unless `device` is "cpu" or FAISS finds no GPU, else "cpu"."""
    return "cuda" if device != "cpu" and has_gpu() else "cpu"
