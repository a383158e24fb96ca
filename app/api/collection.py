"""`sonde.index`, `sonde.open`, and the `Collection` that they return."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from ...indexer.ann.devices import computing_on, search_device
from ...indexer.errors import SondeError, UsageError, arg
from ...indexer.progress import Noted, Notify, silent
from ...indexer.sharded import address_of, is_sharded, open_stored
from ...indexer.store.collection import StoredCollection
from .arguments import PROGRESS, checked, settings_from
from .checks import Checking
from .evaluate import Evaluating
from .exports import Exporting
from .groups import Grouping
from .labels import Labelling
from .looks import Looking
from .opened import check_device
from .options import BuildOptions
from .search import Searching
from .selections import Selecting
from .taxonomy import Editing
from .upkeep import Upkeep

if TYPE_CHECKING:
    from ...indexer.encoder import Encoder
    from ...indexer.ingest import BuildReport, BuildSettings, Estimate
    from ...indexer.readers import ReadOptions
    from ...indexer.sharded.build import Runner


class Collection(Searching, Grouping, Editing, Checking, Labelling, Evaluating, Upkeep, Exporting, Looking, Selecting):
    """A collection of texts that you can search, group, label, evaluate and maintain.

    Open one with `sonde.open` or create one with `sonde.index`. Several threads may share one object. Every call works
    on the latest committed state.

    Example:
        >>> texts = ["Apples are red.", "Bananas are yellow.", "Cars need fuel."]
        >>> fruit = sonde.index(texts, to=folder / "fruit.sonde")
        >>> len(fruit)
        3
    """

    report: "BuildReport | None" = None
    """What `sonde.index` did; set only on a collection that it returned."""


@checked
def open(path: str | Path, *, device: str = "auto") -> Collection:
    """Open an existing collection; its model is loaded by the first search that needs it.

    Args:
        path: The folder, `NAME.sonde`, or "s3://BUCKET/NAME.sonde".
        device: Where to encode queries, search, cluster and so on: "auto", "cpu", "cuda", "cuda:1" …

    Raises:
        UsageError: The machine has no such device.
        SondeError: No collection exists at `path`, or its format cannot be read.

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
    read: "ReadOptions | None" = None,
    settings: "BuildSettings | None" = None,
    encoder: "Encoder | None" = None,
    shards: int | None = None,
    on: str | None = None,
    progress: Notify = silent,
    **options: Unpack[BuildOptions],
) -> Collection:
    """Update the collection at `to` from a source, or create it if it does not exist.

    Args:
        source: A path, or a list of `Path` (CSV, TSV, JSON, JSONL, Parquet, XLSX, a mailbox, each also .gz or .zst;
            text, Markdown, HTML, PDF, Word, OpenDocument and mail files or folders of them), or Python data: strings,
            dictionaries, a DataFrame, an Arrow table, a dataset.
        to: The collection's folder, `NAME.sonde`, or "s3://BUCKET/NAME.sonde" for a collection in shards.
        text: Column or columns with the text. If None, it is detected by name and content, like `title` and `id`.
        title: Column with the title.
        id: Column with the document's id. Without one, a hash of the text identifies a document.
        read: Settings of the reader. Use it instead of `text`, `title` and `id` to set more options.
        settings: Base settings of the build; each option overrides the field of the same name.
        encoder: A bi-encoder of your own.
        shards: Divide a new collection into this many shards; see docs/scale.md. An existing one keeps its shards.
        on: Where the shards are built: "ray" starts Ray on this machine, "ray://HOST:PORT" uses a running cluster. If
            None, they are built one after the other in this process.
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
    from ...indexer.ingest import BuildSettings, index_source
    from ...indexer.readers import ReadOptions
    from ...indexer.readers.unread import unread_lines
    from ...indexer.sharded.bucket import Bucket
    from ...indexer.sharded.build import index_sharded

    _refuse_address(to)
    address = address_of(to)
    columns = (text,) if isinstance(text, str) else tuple(text) if text else None
    _check_reading(options, read, {"text": text, "title": title, "id": id})
    reading = read or ReadOptions(text=columns, title=title, id=id)
    building = settings_from(BuildSettings, settings, options, "index", ("text", "title", "id", "read", *PROGRESS))
    check_device(building.device)
    sharded = shards is not None or is_sharded(Path(to))
    if address:
        to = Bucket(address).begin()
        shards = shards or (None if is_sharded(to) else 1)
    runner, noted = _runner(on, sharded), Noted(progress)
    with computing_on(building.device):
        if sharded:
            report = index_sharded(
                source, Path(to), shards, reading, building, encoder=encoder, runner=runner, notify=noted
            )
        else:
            report = index_source(source, Path(to), reading, building, encoder=encoder, notify=noted)
    stored = open_stored(to, encoder=encoder, device=building.device) if sharded else None
    collection = Collection(stored or StoredCollection(Path(to), encoder, building.device))
    collection.report = replace(report, notes=(*noted.notes, *unread_lines(report.unread_files)))
    return collection


@checked
def estimate(
    source: Any,
    to: str | Path,
    *,
    read: "ReadOptions | None" = None,
    settings: "BuildSettings | None" = None,
    progress: Notify = silent,
    **options: Unpack[BuildOptions],
) -> "Estimate":
    """Estimate what `index` would need with the same arguments; nothing is written.

    Args:
        source: As for `index`.
        to: The collection's folder, `NAME.sonde`, which need not exist.
        read: Settings of the reader.
        settings: Base settings of the build; each option overrides the field of the same name.
        progress: Receives progress and messages.
        **options: Any field of `sonde.BuildSettings`.

    Raises:
        UsageError: No text column was found, or the settings contradict the collection.
        SondeError: The source cannot be read, or its size is unknown (standard input).
    """
    from ...indexer.ingest import BuildSettings, estimate_source
    from ...indexer.readers import ReadOptions
    from ...indexer.sharded.build import columns_of_shards, encoder_of_shards
    from ...indexer.sharded.layout import Sharding

    building = settings_from(BuildSettings, settings, options, "estimate", ("read", *PROGRESS))
    if address := address_of(to):
        raise SondeError(f"{address} is in an object store: to estimate, name a folder on this machine", code="sharded")
    encoder, known = None, None
    if is_sharded(Path(to)):
        encoder = encoder_of_shards(Path(to), building, progress)
        known = columns_of_shards(Path(to), Sharding.read(Path(to)))
    return estimate_source(
        source, Path(to), read or ReadOptions(), building, encoder=encoder, known=known, notify=progress
    )


def _refuse_address(to: str | Path) -> None:
    """Refuse what looks like an address, of which a path would make folders here, unless it names an object store."""
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/", str(to)) and not address_of(to):
        said = f"{arg('to')} is {str(to)!r}: give a folder on this machine, or s3://BUCKET/NAME.sonde"
        raise UsageError(said, code="wrong-type", field="to", value=str(to))


def _runner(on: str | None, sharded: bool) -> "Runner":
    """Return what runs the tasks of shards."""
    from ...indexer.sharded.build import in_turn

    if on is None:
        return in_turn
    if not sharded:
        raise UsageError(f"{arg('on')} needs {arg('shards')}: Ray builds only sharded collections", field="on")
    from ..ray.build import on_ray

    return on_ray(on)


def _check_reading(options: Mapping[str, object], read: "ReadOptions | None", columns: Mapping[str, object]) -> None:
    """Check that no setting of the reader is given twice or in the wrong place."""
    from ...indexer.readers import ReadOptions

    given = [name for name, value in columns.items() if value is not None]
    if read is not None and given:
        raise UsageError(f"{given[0]} and read both name columns: give read=sonde.ReadOptions({given[0]}=…) alone")
    if misplaced := next((each.name for each in fields(ReadOptions) if each.name in options), None):
        raise UsageError(f"{misplaced} is a setting of the reader: give read=sonde.ReadOptions({misplaced}=…)")


def index_device(device: str = "auto") -> str:
    """Return where the FAISS index is built: "cpu", or "cuda:0" and so on if FAISS finds that GPU."""
    check_device(device)
    return search_device(device)
