"""One `index` run from the first document to the last commit."""

import reprlib
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, nullcontext
from pathlib import Path

from ..document import Document, Skipped, Value
from ..encoder import Encoder, ModelSpec, canonical_name, load_encoder, load_encoder_for
from ..errors import Message, OtherModelError, SondeError, UsageError, WriterBusyError, arg
from ..files import DISK_FAILED, DISK_FULL, disk_error, make_folder
from ..languages import detect, normalise
from ..progress import Notify, silent
from ..readers.coercion import coerced, known_types
from ..readers.column_types import NAMED
from ..store.catalog import Catalog, is_unborn
from ..store.collection import StoredCollection, check_folder
from ..store.derived import update_derived
from ..store.integrity import sweep
from ..store.late import want
from ..store.lock import AGAIN, QUEUE, Patience, let_in, writer_lock
from ..store.writing import GIVEN_TYPES, Retyped, declare_fields, retype_fields
from ..wording import shown_id
from .report import BuildReport, BuildSettings, Tally
from .run import Run
from .sync import delete_vanished, remember_sources, say_vanished

ATTEMPTS = 100
"""How often a folder is made again that another run keeps removing."""
LOCKS = {"writer.lock", "writer.json", QUEUE}
LEFT_AT_START = LOCKS | {"vectors", "catalog.db", "catalog.db-journal", "catalog.db-wal", "catalog.db-shm"}


def index_documents(
    documents: Iterable[Document | Skipped],
    folder: Path,
    *,
    settings: BuildSettings = BuildSettings(),
    sample: Sequence[Document] = (),
    remember: Callable[[Catalog], None] = lambda catalog: None,
    encoder: Encoder | None = None,
    fields: Mapping[str, str] | None = None,
    numbers: Mapping[str, int] | None = None,
    part: bool = False,
    notify: Notify = silent,
    sources: Sequence[str] = (),
) -> BuildReport:
    """Bring a collection up to date with `documents`; make it if it does not exist.

    A commit comes every few seconds: killed at any moment, the same call goes on after the last one. Documents whose
    key and content are unchanged cost a look-up; equal texts are embedded once. Between two commits, a writer that
    waits gets its turn.

    Args:
        documents: What to index; read once, as a stream.
        folder: The collection, `NAME.sonde`.
        settings: Model, device, index and whether to delete what vanished.
        sample: A few of the documents, for detecting their language when the collection is made.
        remember: Writes what the collection is to remember of the source; called under the lock, once or twice.
        encoder: The bi-encoder to use in place of the one that the settings name.
        fields: Types of metadata fields by name that the collection gets even if no document has them.
        numbers: The numbers that new documents get, by key; the next free ones if None.
        part: Whether the collection is a part of another one, whose run must be repeated if it fails.
        notify: Receives progress and notes for the user.
        sources: Paths that the documents come from, as the collection is to remember them.

    Raises:
        UsageError: The settings contradict the collection.
        SondeError: Another process is writing, the disk is full, or the model is not available.
    """
    began = time.monotonic()
    # The model is loaded before the lock is taken, so that others can write meanwhile.
    loaded = None if encoder and _checked(folder, settings, encoder) else encoder_for(folder, settings, notify)
    run: Run | None = None
    with ExitStack() as whole:
        while True:
            with _made(folder, Patience(settings.wait, notify) if run is None else AGAIN):
                if run is not None:
                    _refuse_another(folder, run.encoder)
                encoder = _still(folder, settings, encoder, loaded, notify)
                with closing(_open(folder, encoder, settings, sample, remember, notify)) as catalog:
                    sweep(folder, catalog)
                    if run is None:
                        declare_fields(catalog, fields or {})
                        remember(catalog)
                        if settings.late:
                            want(catalog, True)
                        run = whole.enter_context(Run(documents, folder, encoder, settings, numbers, notify))
                    ended = run.turn(catalog)
                    if run.tally.added or run.tally.replaced:
                        remember_sources(catalog, sources, run.seen)
                    if ended:
                        return _completed(folder, catalog, settings, run, sources, part, notify, began)
            _let_in(folder, run.encoder)


def _completed(
    folder: Path, catalog: Catalog, settings: BuildSettings, run: Run, sources: Sequence[str], part: bool,
    notify: Notify, began: float,
) -> BuildReport:  # fmt: skip
    """Delete what vanished, bring both indexes up to date, and return the report."""
    if settings.sync:
        delete_vanished(catalog, sources, run.seen, run.tally, settings.delete_most, notify)
    else:
        say_vanished(catalog, folder, sources, run.seen, notify)
    if not part:  # the types of shards are decided for all of them
        _say_types(retype_fields(catalog, _readers(catalog)), run.tally, notify)
    with nullcontext() if part else _stored(folder):
        update_derived(folder, catalog, settings.ann, notify)
    tally, given = run.tally, settings.language is not None
    told = [tally.languages.note(run.encoder.spec, folder, catalog.get("language"), given)]
    told += [] if part else [tally.non_answers.note(folder), tally.note_on_corrections(folder)]
    for note in filter(None, told):
        notify(f"note: {note}")
    return run.tally.finish(time.monotonic() - began)


def _readers(catalog: Catalog) -> dict[str, Callable[[str], Value]]:
    """Return what reads the text of fields that were given a type."""
    return {name: coerced(name, kind, ()).value for name, kind in known_types(catalog.get(GIVEN_TYPES, {})).items()}


def _say_types(retyped: Sequence[Retyped], tally: Tally, notify: Notify) -> None:
    """Say which fields this run has turned into text, and because of which value; and which have their type again."""
    for each in retyped:
        if each.given:
            _say_given(each, notify)
        elif each.id is None and each.name not in tally.became_text:
            notify(f"note: {each.name} changes from type text back to {each.type}, because every value fits again")
        elif each.id is not None and each.name in tally.became_text:
            why = f"{reprlib.repr(each.value)} of document {shown_id(each.id)} does not fit"
            now = "filters now compare it as text, until every value fits again"
            notify(f"note: {each.name} changes from type {each.type} to text, because {why}: {now}")
    narrow = {each.name for each in retyped if each.id is None}
    tally.became_text = tuple(name for name in tally.became_text if name not in narrow)


def _say_given(field: Retyped, notify: Notify) -> None:
    """Say whether a field has got the type that the user gave it."""
    if field.id is None:
        notify(f"note: {field.name} changes from type {field.before} to {field.type}, as set")
        return
    why = f"{reprlib.repr(field.value)} of document {shown_id(field.id)} is not {NAMED[field.type]}"
    notify(f"note: {field.name} stays {field.before}, because {why}: index its file again, or correct that document")


@contextmanager
def _stored(folder: Path) -> Iterator[None]:
    """Say of a disk that fails while indexes are built that all documents are stored: repeating the run is no help."""
    try:
        yield
    except (OSError, sqlite3.Error, SondeError) as error:
        found = disk_error(error, folder)
        if not isinstance(found, SondeError) or found.code not in (DISK_FULL, DISK_FAILED):
            raise
        reason, check = str(found).partition(": ")[0], "check that the disk is not damaged or full"
        said = f"all documents are stored, but not all indexes: {check}, then run `sonde repair {folder}`"
        raise SondeError(f"{reason}: {said}", code="unindexed") from error


def _let_in(folder: Path, encoder: Encoder) -> None:
    """Wait for the writer that was next, and check that it has left the collection there."""
    try:
        let_in(folder)
    except FileNotFoundError:
        raise _moved(folder) from None
    _refuse_another(folder, encoder)


def _refuse_another(folder: Path, encoder: Encoder) -> None:
    """Check that a collection is still there with its model, after others have written to it during a run.

    Raises:
        SondeError: It is not.
    """
    if is_new(folder):
        raise _moved(folder)
    if _spec(folder).fingerprint != encoder.spec.fingerprint:
        raise OtherModelError(f"the model of {folder} was changed during the run: run the same command again")


def _moved(folder: Path) -> SondeError:
    return SondeError(f"{folder} was moved or removed while it was being written: put it back and run the same command")


@contextmanager
def _made(folder: Path, patience: Patience) -> Iterator[None]:
    """Hold the lock of a folder, made if it does not exist; a first run that fails removes what it made.

    Whether it is the first run is decided under the lock: of two that start together, one waits for the other.
    """
    with _locked(folder, patience):
        new = is_new(folder)
        try:
            yield
        except BaseException as error:
            if isinstance(error, SondeError) and not folder.exists():
                raise _moved(folder) from error
            if new and not _holds_documents(folder):
                shutil.rmtree(folder, ignore_errors=True)
            raise


def _locked(folder: Path, patience: Patience) -> ExitStack:
    """Return the folder's writer lock, held until the stack closes."""
    new = not folder.exists()
    for _ in range(ATTEMPTS):
        stack = ExitStack()
        try:
            make_folder(folder)
            stack.enter_context(writer_lock(folder, patience))
            return stack
        except FileNotFoundError:
            continue  # a first run that failed has just removed the folder
        except WriterBusyError:
            raise
        except (OSError, SondeError) as error:
            if new and folder.exists() and {path.name for path in folder.iterdir()} <= LOCKS:
                shutil.rmtree(folder, ignore_errors=True)
            raise disk_error(error, folder) from None
    raise WriterBusyError(f"other processes keep creating and removing {folder}: try again later")


def _still(
    folder: Path, settings: BuildSettings, given: Encoder | None, loaded: Encoder | None, notify: Notify
) -> Encoder:
    """Return the encoder for a collection that another run may have made while this one waited for the lock."""
    if given:
        return _checked(folder, settings, given)
    if loaded and (is_new(folder) or _spec(folder).fingerprint == loaded.spec.fingerprint):
        return loaded
    return encoder_for(folder, settings, notify)


def encoder_for(folder: Path, settings: BuildSettings, notify: Notify = silent) -> Encoder:
    """Return the bi-encoder that an index run into `folder` uses: the collection's, or the one that settings name.

    Raises:
        UsageError: The settings name another model than the collection was built with.
        SondeError: The folder is something else than a collection, or the model is not available.
    """
    if is_new(folder):
        options = settings.model_options()
        return load_encoder(settings.model_name, device=settings.device, notify=notify, **options)  # type: ignore[arg-type]
    spec = _spec(folder)
    refuse_other_model(folder, spec, settings)
    return encoder_of(spec, settings, notify)


def encoder_of(spec: ModelSpec, settings: BuildSettings, notify: Notify = silent) -> Encoder:
    """Return the bi-encoder of a collection with this model, for many passages.

    Raises:
        SondeError: The model is not available.
    """
    return load_encoder_for(spec, device=settings.device, passages=True, notify=notify)


def _checked(folder: Path, settings: BuildSettings, encoder: Encoder) -> Encoder:
    if not is_new(folder):
        spec = _spec(folder)
        refuse_other_model(folder, spec, settings)
        if encoder.spec.fingerprint != spec.fingerprint:
            said = f"{folder} has the model {spec.name}, not {encoder.spec.name} with these settings"
            raise OtherModelError(said)
    return encoder


def _spec(folder: Path) -> ModelSpec:
    with closing(StoredCollection.open(check_folder(folder))) as collection:
        return collection.spec


def is_new(folder: Path) -> bool:
    """Whether an index run would make the collection: nothing is there, or what a run killed at its start left."""
    if not folder.exists():
        return True
    if not folder.is_dir():
        raise UsageError(
            f"{folder} is a file: name a folder for the collection, such as {folder.with_suffix('.sonde')}"
        )
    return {path.name for path in folder.iterdir()} <= LEFT_AT_START and _unborn(folder)


def _unborn(folder: Path) -> bool:
    """Whether a run was killed here before it wrote down its model; anything else may be the user's own."""
    vectors, catalog = folder / "vectors", folder / "catalog.db"
    if vectors.exists() and (not vectors.is_dir() or any(vectors.iterdir())):
        return False
    return not catalog.exists() or is_unborn(catalog)


def refuse_other_model(folder: Path, spec: ModelSpec, settings: BuildSettings) -> None:
    """Raise UsageError if the settings name another model than the collection's, or other settings of it."""
    given = settings.model_options() | ({} if settings.model is None else {"name": canonical_name(settings.model)})
    for name, value in given.items():
        has = getattr(spec, name)
        if value != has:
            label = "model" if name == "name" else name
            raise UsageError(
                f"{folder} was built with {label} {has!r}, not {value!r}: leave it out, or change the model of the "
                f"whole collection with `sonde model`"
            )


def _open(
    folder: Path,
    encoder: Encoder,
    settings: BuildSettings,
    sample: Sequence[Document],
    remember: Callable[[Catalog], None],
    notify: Notify,
) -> Catalog:
    if not is_new(folder):
        catalog = Catalog.open(folder / "catalog.db", write=True)
        has = catalog.get("language")
        if settings.language and normalise(settings.language) != has:
            catalog.close()
            raise UsageError(f"{folder} was built with language {has!r}, not {settings.language!r}: leave it out")
        return catalog
    for path in folder.glob("catalog.db*"):
        path.unlink()
    (folder / "vectors").mkdir(exist_ok=True)
    catalog = Catalog.create(folder / "catalog.db")
    language = usual_language(settings, sample, notify)
    with catalog.transaction(write=True):
        catalog.set("model", encoder.spec.to_dict())
        catalog.set("language", language)
        catalog.set("epoch", 1)
        remember(catalog)  # with the model: the same command, repeated after a kill, takes it for a later run
    return catalog


def usual_language(settings: BuildSettings, sample: Sequence[Document], notify: Notify) -> str | None:
    """Return the language of a new collection: the one that is set, or else that of a sample of its documents."""
    unnamed = [document.text or document.title for document in sample if not document.language]
    language = normalise(settings.language) or (detect(unnamed) if unnamed else None)
    if language and not settings.language:
        notify(Message(f"language: {language} (detected; set it with {arg('language')})"))
    return language


def _holds_documents(folder: Path) -> bool:
    try:
        with closing(Catalog.open(folder / "catalog.db")) as catalog:
            return catalog.counts()[0] > 0
    except SondeError:
        return False
