"""From a source, a path or Python data, to a collection: reading, saying what was found, estimating, building."""

import math
from collections import Counter
from collections.abc import Container, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..document import Document, Skipped
from ..encoder import Encoder, load_encoder
from ..encoder.precision import faster_precision
from ..errors import Message, SondeError, UsageError, arg, give_type
from ..progress import Notify, Progress, silent
from ..readers import Reading, ReadOptions
from ..readers.column_finder import OWN
from ..readers.formats import format_by_name
from ..readers.message import UNREAD_BODY
from ..readers.office import BLANK_PAGES, COMMENTS
from ..readers.read import source_paths
from ..store.catalog import Catalog
from ..store.collection import StoredCollection
from ..store.documents import filled_fields
from ..store.export import ORIGIN, SOURCES, is_origin
from ..store.late import is_wanted, uncovered
from ..wording import counted, listed, on_one_line
from .columns import KnownColumns, known_columns, read_with_ids
from .estimate import GLANCE_DOCUMENTS, LONG_RUN_SECONDS, PROBE_DOCUMENTS, SURVEY_SECONDS, Estimate, estimate, survey
from .index import encoder_for, index_documents
from .late import build_late
from .report import BuildReport, BuildSettings
from .sync import refuse_wrong_source

LANGUAGE_SAMPLE = 200
_UNREAD = {
    BLANK_PAGES: (
        "PDF file",
        "pages without text, which are not searched",
        "if they are scans, run text recognition (OCR) first",
    ),
    UNREAD_BODY: (
        "message",
        "no text that can be read",
        "only their subjects and file names are searched",
    ),
    COMMENTS: ("file", "comments in the margin, which are not read", "if you need them, save them as text"),
    "attachments": ("message", "attached files, which are not read", "save those that you want to search"),
}
"""Fields of files that are not read in whole: what a note says of them."""


def index_source(
    source: Any,
    folder: Path,
    options: ReadOptions = ReadOptions(),
    settings: BuildSettings = BuildSettings(),
    *,
    encoder: Encoder | None = None,
    notify: Notify = silent,
) -> BuildReport:
    """Read a source and bring the collection in `folder` up to date with it; see `index_documents`.

    Says which columns were found, and what a long run will take, before it starts.

    Raises:
        UsageError: No text column was found or it is metadata of the collection, ids repeat, or the settings contradict
            the collection.
        SondeError: The source cannot be read, another process is writing, or the disk is full.
    """
    if settings.rebuild:
        said = f"{folder} has no shards: leave out {arg('rebuild')}, and run `sonde repair` if it is damaged"
        raise UsageError(said, code="conflict", field="rebuild", value=True)
    known = known_columns(folder)
    reading, id_column = read_with_ids(source, known, options, settings.keep, notify)
    notify(Message(f"{reading.name}: {reading.columns.describe()}"))
    sample = reading.head(LANGUAGE_SAMPLE)
    say_aside(reading, folder, notify)
    say_points(reading, notify)
    others = _say_other_source(source, folder, notify)
    _say_other_text(reading, folder, notify)
    sources = [path for each in source_paths(source) or () if (path := origin_of(each, folder))]
    if settings.sync and not settings.delete_most and not reading.once:
        refuse_wrong_source(reading, folder, sources)
    encoder = encoder_for_source(reading, sample, folder, settings, encoder, notify)
    filled = _filled(reading, folder)
    with_progress = _Followed(reading, notify)
    columns = KnownColumns(known.new, id_column, reading.given_types, reading.forms, options.encoding)

    def remember(catalog: Catalog) -> None:
        columns.remember(catalog)
        if known.new and catalog.get(ORIGIN) is None and (origin := origin_of(source, folder)):
            catalog.set(ORIGIN, origin)

    report = index_documents(
        with_progress,
        folder,
        settings=settings,
        sample=sample,
        remember=remember,
        encoder=encoder,
        notify=with_progress.notify,
        sources=sources,
    )
    with_progress.say_hashed()
    report = replace(report, left_out=say_misfits(reading, notify), unread_files=reading.unread_files)
    if report.replaced and others:
        _say_same_names(report.replaced, source, notify)
    if report.replaced and not report.deleted:
        _say_emptied(reading, folder, filled, notify)
    if report.added or report.replaced:
        _say_unread(reading, folder, notify)
    _complete_late(folder, encoder, notify)
    return report


def encoder_for_source(
    reading: Reading, sample: list[Document], folder: Path, settings: BuildSettings, given: Encoder | None,
    notify: Notify,
) -> Encoder:  # fmt: skip
    """Return the bi-encoder of a run, in the precision that suits this processor, and say what a long run will take."""
    encoder = given or encoder_for(folder, settings, notify)
    if not folder.exists() and _looks_long(reading, sample, encoder):
        encoder = given or _in_the_best_precision(encoder, sample, settings, notify)
        expected = None if reading.once else _estimate(reading, encoder)
        if expected and expected.long:
            notify(f"estimate: {expected.describe()}")
    return encoder


def say_aside(reading: Reading, folder: Path, notify: Notify) -> None:
    """Say which columns are left out because runs of the collection have them, as in an export that is read again."""
    if reading.aside:
        names = listed([on_one_line(name) for name in reading.aside])
        said = f"note: {reading.name}: columns of runs of {folder} are left out of the metadata: {names}"
        notify(f"{said}. To keep such a column, rename it in the source")


def say_points(reading: Reading, notify: Notify) -> None:
    """Say which numbers are read with a decimal point although the point may separate thousands."""
    for name, value in {name: value for part in reading.parts for name, value in part.columns.points.items()}.items():
        more = math.floor(abs(float(value))) + 1
        said = f"{on_one_line(name)!r} is read with a decimal point, so {value} is less than {more:,}"
        notify(Message(f"note: {said}: if the points separate thousands, {give_type(name, 'real:,')}"))


def say_misfits(reading: Reading, notify: Notify) -> dict[str, int]:
    """Say which values were left out because they do not fit the types of their columns; count them by column."""
    counts = Counter[str]()
    for source, column, found in reading.misfits():
        notify(f"note: {source}: {found.describe(column)}")
        counts[column] += found.count
    return dict(counts)


def _say_unread(reading: Reading, folder: Path, notify: Notify) -> None:
    """Say in how many files there is something that is not read."""
    with suppress(SondeError), closing(Catalog.open(folder / "catalog.db")) as catalog:
        fields = catalog.fields()
        own = {
            UNREAD_BODY,
            BLANK_PAGES,
            COMMENTS,
        } & reading.columns.metadata.keys()  # a table may have attachments of its own
        wanted = [name for name in _UNREAD if name in fields and (name in own or UNREAD_BODY in own)]
        for name, count in filled_fields(catalog, wanted).items():
            nouns, said, advice = _UNREAD[name]
            has = "has" if count == 1 else "have"
            notify(f"note: {counted(count, nouns)} {has} {said} ({name} IS NOT NULL): {advice}")


def _filled(reading: Reading, folder: Path) -> dict[str, int]:
    """Return how many documents have a value in each field of a collection that the source has no values for."""
    path = folder / "catalog.db"
    if not path.is_file():
        return {}
    with suppress(SondeError), closing(Catalog.open(path)) as catalog:
        return filled_fields(catalog, [name for name in catalog.fields() if name not in reading.columns.metadata])
    return {}


def _say_emptied(reading: Reading, folder: Path, before: Mapping[str, int], notify: Notify) -> None:
    """Say which fields documents have lost because they were replaced by rows without these columns."""
    after = _filled(reading, folder)
    lost = {name: count - after.get(name, 0) for name, count in before.items() if after.get(name, 0) < count}
    if lost:
        names, most = ", ".join(map(on_one_line, lost)), counted(max(lost.values()), "document")
        notify(f"note: {reading.name} has no values for {names}, so {most} that it replaced lost theirs")


def _say_other_source(source: Any, folder: Path, notify: Notify) -> bool:
    """Say that documents come to those of another source, which is usual but may be a slip in the name.

    Returns whether it is a folder or mailbox that the collection has no documents of yet.
    """
    path, here = folder / "catalog.db", origin_of(source, folder)
    if here is None or not path.is_file():
        return False
    with suppress(SondeError), closing(Catalog.open(path)) as catalog:  # the run says what is wrong with a collection
        origin, documents = catalog.get(ORIGIN), catalog.counts()[0]
        if documents and isinstance(origin, str) and not is_origin(folder, origin, Path(source)):
            notify(f"{folder} has {counted(documents, 'document')}; it was made from {origin}")
            own = Path(source).is_dir() or format_by_name(Path(source)) == "mbox"
            return own and here not in catalog.get(SOURCES, [])
    return False


def _say_same_names(replaced: int, source: Any, notify: Notify) -> None:
    has = "has" if replaced == 1 else "have"
    if Path(source).is_dir():
        said = f"{counted(replaced, 'file')} of {source} {has} the path of a document from another folder"
        way = "index both folders in one run"
    else:
        said = f"{counted(replaced, 'message')} of {source} {has} the Message-ID of another text that was there"
        way = f"make a new collection from both with {arg('id', '')}, whose ids are not Message-IDs"
    notify(Message(f"note: {said}, and replaced it; to keep both, {way}"))


def _say_other_text(reading: Reading, folder: Path, notify: Notify) -> None:
    path, fields = folder / "catalog.db", {}
    if path.is_file():
        with suppress(SondeError), closing(Catalog.open(path)) as catalog:  # the run says what is wrong with it
            fields = catalog.fields()
    say_other_text(reading, folder, fields, notify)


def say_other_text(reading: Reading, folder: Path, fields: Container[str], notify: Notify) -> None:
    """Say that a column becomes text which was metadata so far, since documents with the same id are then replaced.

    Raises:
        UsageError: Nobody chose that column: the source may lack the one with the texts.
    """
    reason = reading.columns.reasons.get("text", "")
    for name in reading.columns.text if reason != OWN else ():
        if name in fields and not reason.startswith("as set"):
            said = f"{reading.name}: the text would be the column {on_one_line(name)!r}, which is metadata in {folder}"
            way = f"choose the column with the texts ({arg('text')} COLUMN), or a file that has one"
            raise UsageError(f"{said}: nothing was changed; {way}", code="not-found", field="text", value=name)
        if name in fields:
            said = f"the column {on_one_line(name)!r} becomes the text; so far, {folder} has it as metadata"
            notify(Message(f"note: {said}: if you did not mean that, choose the text with {arg('text')}"))


def origin_of(source: Any, folder: Path) -> str | None:
    """Return the path of a source, None if it is not one file or folder.

    It is relative if the source is beside the collection or below, so that both can be moved together.
    """
    if not isinstance(source, str | Path) or str(source) == "-":
        return None
    path, beside = Path(source).expanduser().resolve(), folder.absolute().parent.resolve()
    return str(path.relative_to(beside) if path.is_relative_to(beside) else path)


def check_origin(folder: Path, source: Path) -> None:
    """Check that a collection that was named after a source was not made from another one of the same name.

    Raises:
        UsageError: It was.
        SondeError: The collection is damaged.
    """
    if not (folder / "catalog.db").is_file():
        return
    with closing(Catalog.open(folder / "catalog.db")) as catalog:
        origin = catalog.get(ORIGIN)
    if isinstance(origin, str) and not is_origin(folder, origin, source):
        said = (
            f"{folder} was made from {origin}: to add {source} to it, give {arg('to')} {folder}; "
            f"to make a new collection, give {arg('to')} another name"
        )
        raise UsageError(said, code="conflict", field="to", value=str(folder))


def _complete_late(folder: Path, encoder: Encoder, notify: Notify) -> None:
    """Embed the passages that the late index of the collection lacks, if it keeps one: those of earlier runs."""
    collection = StoredCollection(folder, encoder)
    with closing(collection), collection.view() as view:
        complete = not is_wanted(view.catalog) or not len(uncovered(view.catalog, view.late)[0])
    if not complete:
        build_late(collection, notify)


def estimate_source(
    source: Any,
    folder: Path,
    options: ReadOptions = ReadOptions(),
    settings: BuildSettings = BuildSettings(),
    *,
    encoder: Encoder | None = None,
    documents: int | None = None,
    known: KnownColumns | None = None,
    notify: Notify = silent,
) -> Estimate:
    """Return what indexing a source would take, from embedding its first documents; nothing is written.

    `documents` is how many there are, where that is known; otherwise it follows from the share that was read. Standard
    input is read to its end. `known` is what a sharded collection remembers.

    Raises:
        UsageError: No text column was found, or the settings contradict the collection.
        SondeError: The source cannot be read.
    """
    reading, _ = read_with_ids(source, known or known_columns(folder), options, "last", notify)
    notify(Message(f"{reading.name}: {reading.columns.describe()}"))
    sample = reading.head(PROBE_DOCUMENTS)
    given, encoder = encoder, encoder or encoder_for(folder, settings, notify)
    if not given and not folder.exists() and _looks_long(reading, sample, encoder):
        encoder = _in_the_best_precision(encoder, sample, settings, notify)  # as the run would
    if documents is not None:
        return estimate(sample, documents, encoder)
    limit = math.inf if reading.once else SURVEY_SECONDS  # standard input is used for nothing else
    return _estimate(reading, encoder, limit) or estimate(sample, len(sample), encoder)


def _in_the_best_precision(
    encoder: Encoder, sample: list[Document], settings: BuildSettings, notify: Notify
) -> Encoder:
    """Return the encoder in the precision that suits this processor, where the settings leave it open."""
    options = settings.model_options()
    if "dtype" in options:
        return encoder
    options |= {"dtype": "bfloat16", "device": "cpu"}
    texts = [document.text for document in sample]
    return faster_precision(encoder, texts, lambda: load_encoder(settings.model_name, **options), notify)  # type: ignore[arg-type]


def _looks_long(reading: Reading, sample: list[Document], encoder: Encoder) -> bool:
    done = reading.progress()
    if not sample or not done.total or not done.done:
        return False
    documents = max(len(sample), round(len(sample) * done.total / done.done))
    return estimate(sample, documents, encoder, GLANCE_DOCUMENTS).seconds > LONG_RUN_SECONDS / 2


def _estimate(reading: Reading, encoder: Encoder, limit: float = SURVEY_SECONDS) -> Estimate | None:
    """Return the estimate for the whole source, looked at for at most `limit` seconds; None if it has no document."""
    found = survey(reading, PROBE_DOCUMENTS, limit)
    if not found.sample:
        return None
    return estimate(found.sample, found.documents, encoder, characters=found.characters, reading=found.seconds)


STEADY = 0.05
"""An estimated total is kept until it is wrong by more than this share: one that moves all the time tells little."""


class _Followed:
    """A reading whose position is added to the progress of the build."""

    def __init__(self, reading: Reading, notify: Notify) -> None:
        self.reading = reading
        self._notify = notify
        self._read = 0
        self._ended = False
        self._total: int | None = None
        self._without_id, self._first = 0, ""

    def __iter__(self) -> Iterator[Document | Skipped]:
        for item in self.reading:
            self._read += 1
            if isinstance(item, Document) and item.key is None and self.reading.columns.id is not None:
                self._without_id += 1
                self._first = self._first or item.origin
            yield item
        self._ended = True

    def say_hashed(self) -> None:
        """Say which rows have no value in the column of ids."""
        if self._without_id:
            rows, first = counted(self._without_id, "row"), f"(first: {self._first})"
            lack = f"without a value in {on_one_line(self.reading.columns.id or '')!r} {first}"
            what = "a hash of the text is the id. If you fill in an id later, that row becomes a new document"
            self._notify(f"note: {rows} {lack}: {what}")

    def notify(self, event: Progress | str) -> None:
        """Pass on sentences, and progress with the total that the reading implies."""
        if isinstance(event, Progress) and event.total is None:
            self._total = self._estimated()
            event = replace(event, total=max(self._total, event.done) if self._total else None)
            event = replace(event, estimated=event.total is not None and not self._ended)
        self._notify(event)

    def _estimated(self) -> int | None:
        """Return how many documents there are: exact once all are read, before that by the share that was read.

        The share is that of what was read, which runs ahead of what is embedded.
        """
        if self._ended:
            return self._read
        read, at = self._read, self.reading.progress()
        if not (read and at.total and at.done):
            return self._total
        total = round(read * at.total / at.done)
        held = self._total
        return held if held and abs(total - held) <= STEADY * held else total
