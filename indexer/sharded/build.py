"""A run over a sharded collection: documents to shards, one task for each shard concerned, one commit for all."""

import hashlib
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from ..encoder import Encoder
from ..errors import Message, OtherModelError, SondeError, UsageError, WriterBusyError, arg, out_of_range
from ..files import make_folder, remove_folder, write_durably
from ..ingest import BuildReport, BuildSettings
from ..ingest.columns import KnownColumns, holds_some, read_with_ids
from ..ingest.index import (
    LOCKS,
    encoder_for,
    encoder_of,
    is_new,
    refuse_other_model,
    usual_language,
)
from ..ingest.report import Tally
from ..ingest.source import (
    LANGUAGE_SAMPLE,
    encoder_for_source,
    origin_of,
    say_aside,
    say_misfits,
    say_other_text,
    say_points,
)
from ..ingest.sync import refuse_to_delete_most
from ..languages import normalise
from ..progress import Notify, Progress, silent
from ..readers import Reading, ReadOptions
from ..store.lock import Patience, no_collection, writer_lock
from ..wording import counted, on_one_line
from . import COLLECTION, is_sharded
from .bucket import bucket_of, commit
from .generations import (
    LEARNED,
    committed_generation,
    current_sharding,
    read_note,
    refuse_lost_shards,
    remove_old_versions,
)
from .layout import DIGITS, MOST_SHARDS, ShardedGeneration, Sharding, ShardState, coming_note, shard_folder, work_folder
from .objects import LocalTruth
from .runs import ChangeRuns, known_columns_of_runs, runs_after
from .shard import COUNTS, ShardDone, ShardTask, build_shard
from .spool import (
    Spool,
    nothing_lost,
    refuse_other_source,
    say_rebuilt,
    spools,
    vanished,
    with_former_places,
    without_lost_shards,
    write_spool,
)

Runner = Callable[[Sequence[ShardTask], Encoder | None, Notify], Iterator[ShardDone]]
"""Runs the tasks of one run, in any order and place, and yields what each did."""

SEED = 0
"""Of the hash of new collections: the same sources always give the same shards."""


def in_turn(tasks: Sequence[ShardTask], encoder: Encoder | None, notify: Notify = silent) -> Iterator[ShardDone]:
    """Run the tasks one after the other in this process, with one bi-encoder, which uses all cores."""
    for number, task in enumerate(tasks, 1):
        yield build_shard(task, encoder, _named(notify, f"shard {task.shard:02d} ({number} of {len(tasks)})"))


def _named(notify: Notify, name: str) -> Notify:
    def tell(event: Progress | str) -> None:
        if isinstance(event, Progress):
            notify(replace(event, stage=f"{name}: {event.stage}"))
        else:
            notify(Message(f"{name}: {event.marked if isinstance(event, Message) else event}"))

    return tell


def index_sharded(
    source: Any,
    folder: Path,
    shards: int | None = None,
    options: ReadOptions = ReadOptions(),
    settings: BuildSettings = BuildSettings(),
    *,
    encoder: Encoder | None = None,
    runner: Runner = in_turn,
    notify: Notify = silent,
) -> BuildReport:
    """Bring a sharded collection up to date with a source, or create it; see `index_source`.

    Only shards that change get a new version, and one commit publishes all of them. If the run is stopped, the same
    call continues it.

    Args:
        source: As for `index_source`.
        folder: The collection, `NAME.sonde`.
        shards: How many a new collection has; None if it exists.
        options: How to read the source.
        settings: Of the run.
        encoder: The bi-encoder to use in place of the one that the settings name.
        runner: Runs the tasks of the shards.
        notify: Receives progress and notes for the user.

    Raises:
        UsageError: The settings contradict the collection, or it has another number of shards.
        SondeError: The source cannot be read, another run is writing, or the disk is full.
    """
    from .late import late_after_run  # which uses the rest of this module

    began = time.monotonic()
    _check(folder, shards, settings.rebuild)
    known = Sharding.read(folder)
    if known:
        _refuse_other_types(folder, known.types, options.type)
    reading, id_column = read_with_ids(source, columns_of_shards(folder, known), options, settings.keep, notify)
    notify(Message(f"{reading.name}: {reading.columns.describe()}"))
    say_aside(reading, folder, notify)
    say_points(reading, notify)
    with _writing(folder, settings, notify):
        remembered = (id_column, reading.given_types, reading.forms, options.encoding, origin_of(source, folder))
        sharding, encoder = _sharding(folder, shards, settings, encoder, reading, remembered, runner is in_turn, notify)
        base, lost = without_lost_shards(folder) if settings.rebuild else (committed_generation(folder), {})
        if not lost and (work_folder(folder) / LEARNED).is_dir():  # an earlier run was stopped in its late index
            late_after_run(folder, True, encoder, notify, runner)
            base = committed_generation(folder)
        tally = Tally(folder / "skipped.jsonl")
        fields = base.fields if base else {}
        say_other_text(reading, folder, fields, notify)
        spool = write_spool(reading, spools(folder), sharding, fields, tally, notify)
        _refuse_nothing(spool, tally)
        if base and settings.sync and not settings.delete_most:
            refuse_to_delete_most(vanished(folder, base, spool), sum(state.documents for state in base.shards if state))
        if not settings.delete_most:
            refuse_other_source(lost, spool)
        tasks = _index_tasks(folder, sharding, base, spool, replace(settings, delete_most=True, late=False))
        tasks = with_former_places(tasks, base, lost, spool)
        done = run_tasks(base, tasks, runner, encoder, notify, spool.documents)
        say_rebuilt(lost, committed_generation(folder), notify)
        late_after_run(folder, settings.late, encoder, notify, runner)
        tally.left_out, tally.unread_files = say_misfits(reading, notify), reading.unread_files
        tally.duplicate_ids = spool.duplicate_ids
        for name in COUNTS:
            setattr(tally, name, sum(each.counts[name] for each in done))
        return tally.finish(time.monotonic() - began)


def columns_of_shards(folder: Path, known: Sharding | None) -> KnownColumns:
    """Return what a sharded collection remembers of its columns; None is one that is yet to be made."""
    if known is None:
        return KnownColumns(new=True)
    base = committed_generation(folder)
    states = base.shards if base else ()
    catalogs = [shard_folder(folder, n) / state.version / "catalog.db" for n, state in enumerate(states) if state]
    holds = partial(holds_some, catalogs)
    runs = known_columns_of_runs(folder)
    return KnownColumns(False, known.id_column, known.types, known.forms, known.encoding, runs, holds)


def encoder_of_shards(folder: Path, settings: BuildSettings, notify: Notify = silent) -> Encoder:
    """Return the bi-encoder of an existing sharded collection, for many passages.

    Raises:
        UsageError: The settings name another model.
        SondeError: The collection is damaged, or the model is not available.
    """
    known = current_sharding(folder)
    if known is None:
        raise SondeError(f"there is no collection at {folder}", code="no-collection")
    refuse_other_model(folder, known.spec, settings)
    return encoder_of(known.spec, settings, notify)


def run_tasks(
    base: ShardedGeneration | None,
    tasks: Sequence[ShardTask],
    runner: Runner = in_turn,
    encoder: Encoder | None = None,
    notify: Notify = silent,
    read: int = 0,
    change: ChangeRuns | None = None,
) -> list[ShardDone]:
    """Run the tasks of one run and commit what they published; the caller holds the writer lock.

    Args:
        base: The generation before; None for the first.
        tasks: One or more, of different shards.
        runner: Runs them.
        encoder: The bi-encoder, if it is loaded.
        notify: Receives progress.
        read: How many documents the run has read.
        change: Changes the catalog of runs in the same commit.

    Raises:
        WriterBusyError: Another run committed first.
    """
    folder = tasks[0].folder
    _resume(folder, tasks[0].version, tasks[0].spool)
    done = sorted(runner(tasks, encoder, notify), key=lambda each: each.shard)
    _commit(base, tasks[0], done, read, change)
    shutil.rmtree(work_folder(folder), ignore_errors=True)
    coming_note(folder).unlink(missing_ok=True)
    remove_old_versions(folder)
    return done


def version_name(base: ShardedGeneration | None, *identity: object) -> str:
    """Return the name of the versions that a run publishes: the same for the same run, repeated after a kill.

    The first digits tell which generation it is to become, the rest which documents it changes, and how.
    """
    known = (base.indexed if base else 0, *identity)
    hashed = hashlib.blake2b(repr(known).encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
    return f"{(base.number if base else 0) + 1:06d}-{hashed}"


def _check(folder: Path, shards: int | None, rebuild: bool) -> None:
    if is_sharded(folder):
        known = Sharding.read(folder)
        if known and shards not in (None, known.shards):
            said = f"{folder} has {counted(known.shards, 'shard')}, not {shards}: leave out {arg('shards')}"
            raise UsageError(said, code="conflict", field="shards", value=shards)
        if not bucket_of(folder) and not rebuild:  # a copy of an object store's gets the files that it lacks
            refuse_lost_shards(folder)
        return
    if rebuild:
        raise nothing_lost(folder)
    if shards is None and (folder / "generations").is_dir():
        raise no_collection(folder)
    if shards is None or not 1 <= shards <= MOST_SHARDS:
        raise out_of_range("shards", shards, f"give a whole number from 1 to {MOST_SHARDS:,}")
    if folder.is_dir() and (folder / "catalog.db").exists():
        said = f"{folder} is not a sharded collection: to divide it, index its sources into a new folder"
        raise UsageError(said, code="conflict", field="shards", value=shards)
    known = {path.name for path in folder.iterdir() if path not in _leftovers(folder)} if folder.is_dir() else set()
    if not known <= LOCKS | {"work", "skipped.jsonl"} and not is_new(folder):
        raise no_collection(folder)


def _refuse_other_types(folder: Path, known: Mapping[str, str], given: Mapping[str, str]) -> None:
    for name, kind in given.items():
        if kind not in (known.get(name), known.get(name, "").partition(":")[0]):
            said = f"{folder} is in shards, whose columns keep the types that they were given when it was made"
            advice = f"leave out {arg('type')} for {on_one_line(name)!r}, or index the sources into a new collection"
            raise UsageError(f"{said}: {advice}", code="conflict", field="type", value=kind)


@contextmanager
def _writing(folder: Path, settings: BuildSettings, notify: Notify) -> Iterator[None]:
    """Hold the writer lock of the folder; a first run that fails before it has a model leaves nothing."""
    new = not folder.exists()
    make_folder(folder)
    try:
        with writer_lock(folder, Patience(settings.wait, notify)):
            if bucket := bucket_of(folder):
                bucket.pull()
            for path in _leftovers(folder):
                path.unlink()
            yield
    except SondeError:
        if new and not is_sharded(folder):
            shutil.rmtree(folder, ignore_errors=True)
        raise


def _leftovers(folder: Path) -> list[Path]:
    """Return the unfinished files of runs that were killed."""
    return [*folder.glob(f".{COLLECTION}.*.tmp"), *folder.glob("generations/.*.tmp")]


def _sharding(
    folder: Path,
    shards: int | None,
    settings: BuildSettings,
    encoder: Encoder | None,
    reading: Reading,
    remembered: tuple[str | None, dict[str, str], dict[str, str], str | None, str | None],
    here: bool,
    notify: Notify,
) -> tuple[Sharding, Encoder]:
    """Return what `collection.json` says, written now if the collection is new, and the bi-encoder.

    Only where the shards are built `here`, this machine's processor decides about the precision.
    """
    known = current_sharding(folder)
    if known is None:
        sample = reading.head(LANGUAGE_SAMPLE)
        if here:
            encoder = encoder_for_source(reading, sample, folder / "new.sonde", settings, encoder, notify)
        else:
            encoder = encoder or encoder_for(folder / "new.sonde", settings, notify)
        language = usual_language(settings, sample, notify)
        assert shards is not None
        new = Sharding(shards, SEED, encoder.spec.to_dict(), language, *remembered)
        if (bucket := bucket_of(folder)) and not bucket.create(COLLECTION, new.to_bytes()):
            raise WriterBusyError(f"another run has just created {bucket.address}: run the same command again")
        LocalTruth(folder).create(COLLECTION, new.to_bytes())
        return new, encoder
    if settings.language and normalise(settings.language) != known.language:
        said = f"{folder} was built with language {known.language!r}, not {settings.language!r}"
        raise UsageError(f"{said}: leave out {arg('language')}")
    refuse_other_model(folder, known.spec, settings)
    if encoder is not None and encoder.spec.fingerprint != known.spec.fingerprint:
        said = f"{folder} has the model {known.spec.name}, not {encoder.spec.name} with these settings"
        raise OtherModelError(said)
    return known, encoder or encoder_of(known.spec, settings, notify)


def _refuse_nothing(spool: Spool, tally: Tally) -> None:
    if not spool.documents:
        raise tally.nothing()


def _index_tasks(
    folder: Path, sharding: Sharding, base: ShardedGeneration | None, spool: Spool, settings: BuildSettings
) -> list[ShardTask]:
    """Return the tasks of the shards that have documents, or all that exist if `sync` or new fields concern them."""
    version = version_name(base, spool.digest, spool.fields, replace(settings, wait=0.0, device="auto"))
    states = base.shards if base else (None,) * sharding.shards
    every = settings.sync or (base is not None and list(base.fields.items()) != list(spool.fields.items()))
    given = replace(settings, language=sharding.language)
    return [
        ShardTask(
            folder, shard, state and state.version, version, spool.counts[shard], spool.fields, given, sharding,
            base.read if base else 0, spool=spool.digest,
        )
        for shard, state in enumerate(states)
        if spool.counts[shard] or (every and state)
    ]  # fmt: skip


def _resume(folder: Path, version: str, spool: str) -> None:
    """Keep what a stopped run left if this one is the same run; remove it otherwise."""
    work = work_folder(folder)
    make_folder(work)
    for path in spools(folder).glob("*"):
        if path.name != spool:
            shutil.rmtree(path, ignore_errors=True)
    note = coming_note(folder)
    make_folder(note.parent)
    left = read_note(note)
    if left == version:
        return
    if left[DIGITS:] == version[DIGITS:]:  # the same run, but runs of clustering and so on were committed since
        for path in folder.glob(f"shards/*/{left}"):
            path.rename(path.with_name(version))
    else:
        for path in work.iterdir():
            if path.name not in ("spool", LEARNED):
                remove_folder(path) if path.is_dir() else path.unlink()
        remove_old_versions(folder)  # the note is replaced after them: it tells whose they are
    write_durably(note, lambda stream: stream.write(version.encode()))


def _commit(
    base: ShardedGeneration | None, task: ShardTask, done: Sequence[ShardDone], read: int, change: ChangeRuns | None
) -> None:
    folder, first = task.folder, Sharding.read(task.folder)
    model = None if first and first.model == task.sharding.model else task.sharding.model
    kept = base.shards if base and base.model == model else ()  # no shard keeps embeddings of another model
    states: list[ShardState | None] = list(kept) or [None] * task.sharding.shards
    changed = {each.shard: each.state for each in done if each.state}
    if not changed and (base is None or base == committed_generation(folder)):  # no lost shard was left out
        return
    for shard, state in changed.items():
        states[shard] = state
    number = (base.number if base else 0) + 1
    runs = runs_after(folder, base, changed, change)
    read += base.read if base else 0
    new = ShardedGeneration(number, tuple(states), task.fields, read, indexed=number, runs=runs, model=model)
    commit(folder, new)
