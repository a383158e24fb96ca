"""The late index during an index run, and its building afterwards: tokens are embedded, packed and added in batches."""

import shutil
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from ..encoder import Encoder, ModelSpec, Tokens, TokenVectors
from ..errors import SondeError
from ..late import LEAST, LateIndex, LateWriter, key, one_thread_each
from ..progress import Notify, Progress, silent
from ..store.catalog import Catalog
from ..store.collection import StoredCollection
from ..store.late import LATE_BUILT, is_wanted, late_folder, live_passages, uncovered, want
from ..store.lock import AGAIN, is_awaited, let_in, writer_lock
from ..store.passages import passage_texts
from .chunker import passage_text
from .estimate import report_late_estimate

ENOUGH = 100_000
"""Tokens from which the codec is learned: it waits for them, or for the end of the run."""
AT_ONCE = 256
"""Passages that `build_late` embeds before it writes them: what a kill costs."""


@dataclass(frozen=True, slots=True)
class LateReport:
    """What the late index of a collection holds.

    Attributes:
        passages: Passages of the collection, without tombstones.
        covered: How many of them the index holds; reranking embeds the others in each search.
        embedded: How many were embedded for this report.
        bytes: Size of the index on disk.
        bytes_per_passage: Mean bytes of a passage; the rest is what was learned from the collection.
        seconds: How long embedding took.
        removed: Whether the collection kept a late index that was removed.
    """

    passages: int
    covered: int
    embedded: int
    bytes: int
    bytes_per_passage: int
    seconds: float
    removed: bool = False

    def to_dict(self) -> dict[str, float]:
        """Return JSON values."""
        return asdict(self)


class LateFollower:
    """Adds the passages of a run's commits to the late index, after the catalog has them.

    Killed in between, the last commit's passages are not covered, and the next `build_late` embeds them again.
    """

    def __init__(self, folder: Path, catalog: Catalog, encoder: Encoder) -> None:
        """Take the collection, whose lock the caller holds."""
        self.encoder = encoder
        self.catalog = catalog
        self._folder = late_folder(folder, catalog.epoch())
        self._writer = LateWriter(self._folder, encoder.spec.fingerprint)
        self._lock = threading.Lock()
        self._fresh: dict[bytes, np.ndarray | TokenVectors] = {}
        self._waiting: dict[bytes, tuple[list[int], TokenVectors]] = {}
        self._tokens = 0

    def encode(self, digests: Sequence[bytes], tokens: Sequence[Tokens]) -> np.ndarray:
        """Return what the encoder's `encode` does, and keep the passages' tokens for `commit`."""
        self._fresh = {}

        def take(places: np.ndarray, found: list[TokenVectors]) -> None:
            for place, each in zip(places.tolist(), found, strict=True):
                self._fresh[digests[place]] = self._packed(each)

        with one_thread_each():
            return self.encoder.encode_with_tokens(tokens, take)

    def commit(self, rows: Iterable[int], digests: Sequence[bytes], stored: Mapping[bytes, int]) -> None:
        """Add the committed passages whose tokens are known.

        Args:
            rows: The row of each.
            digests: The digest of each.
            stored: A row that has the same text, by digest, for passages that were not embedded again.
        """
        ready: list[tuple[int, bytes, np.ndarray]] = []
        again: list[tuple[int, bytes]] = []
        for row, digest in zip(rows, digests, strict=True):
            found = self._fresh.get(digest)
            if isinstance(found, np.ndarray):
                ready.append((row, digest, found))
            elif found is not None:
                self._waiting.setdefault(digest, ([], found))[0].append(row)
            elif digest in stored:
                again.append((row, digest))
        ready += self._known(again, stored)
        self._fresh = {}
        self._add(ready)
        if self._writer.codec:
            self._add_waiting()

    @property
    def waits(self) -> bool:
        """Whether committed passages wait for the codec."""
        return bool(self._waiting)

    def finish(self) -> None:
        """Add what waits for the codec; if there is too little to learn one from, it stays uncovered."""
        if self._waiting and self._tokens >= LEAST * self._dimension:
            with one_thread_each():
                self._learn([found for _, found in self._waiting.values()])
                self._add_waiting()

    def _packed(self, found: TokenVectors) -> np.ndarray | TokenVectors:
        """Return what is stored of a passage; its tokens in 16 bits as long as there is no codec."""
        if self._writer.codec:
            return self._writer.codec.pack(found.ids, found.vectors)
        with self._lock:
            if not self._writer.codec:
                self._tokens += len(found.ids)
                kept = TokenVectors(found.ids, found.vectors.astype(np.float16), found.places)
                if self._tokens < ENOUGH:
                    return kept
                fresh = [each for each in self._fresh.values() if isinstance(each, TokenVectors)]
                self._learn([*(waiting for _, waiting in self._waiting.values()), *fresh, kept])
        return self._packed(found)

    def _learn(self, passages: Sequence[TokenVectors]) -> None:
        # Ordered, because workers may finish in any order: the same passages give the same codec.
        ordered = sorted(passages, key=lambda each: (each.ids.tobytes(), len(each.ids)))
        self._writer.learn([each.ids for each in ordered], [each.vectors.astype(np.float32) for each in ordered])

    @property
    def _dimension(self) -> int:
        return next((each.vectors.shape[1] for _, each in self._waiting.values()), 0)

    def _known(
        self, again: Sequence[tuple[int, bytes]], stored: Mapping[bytes, int]
    ) -> list[tuple[int, bytes, np.ndarray]]:
        """Return what the index has of passages, given as row and digest, whose texts are stored under other rows."""
        index = _index(self._folder, self.encoder) if again else None
        if index is None:
            return []
        rows = np.array([stored[digest] for _, digest in again], np.int64)
        found = index.read(rows, np.array([key(digest) for _, digest in again], np.int64))
        return [(*each, packed) for each, packed in zip(again, found, strict=True) if packed is not None]

    def _add(self, entries: Sequence[tuple[int, bytes, np.ndarray]]) -> None:
        if entries:
            rows, digests, packed = zip(*entries, strict=True)
            self._writer.add(np.array(rows, np.int64), np.array([key(each) for each in digests], np.int64), packed)
            if self.catalog.get(LATE_BUILT) != self.catalog.epoch():
                self.catalog.set(LATE_BUILT, self.catalog.epoch())

    def _add_waiting(self) -> None:
        codec = self._writer.codec
        assert codec is not None
        entries = []
        for digest, (rows, found) in self._waiting.items():
            packed = codec.pack(found.ids, found.vectors.astype(np.float32))
            entries += [(row, digest, packed) for row in rows]
        self._waiting = {}
        self._add(entries)


def build_late(collection: StoredCollection, notify: Notify = silent) -> LateReport:
    """Embed the tokens of all passages that the late index of a collection lacks; keep one from now on.

    If it is killed, the same call continues after the last batch. Between two batches, it lets others write.

    Raises:
        SondeError: Another process is writing, the disk is full, the model is not available or has no tokens, or
            others changed it meanwhile.
    """
    encoder, folder, began = collection.encoder, collection.path, time.monotonic()
    embedded, again = 0, False
    while True:
        with (
            writer_lock(folder, AGAIN if again else None),
            closing(Catalog.open(collection.catalog_path, write=True)) as catalog,
        ):
            if again and ModelSpec.from_dict(catalog.get("model")).fingerprint != encoder.spec.fingerprint:
                raise SondeError(f"the model of {folder} was changed meanwhile: run the same command again")
            if again and not is_wanted(catalog):  # others removed it meanwhile
                return replace(late_report(folder, catalog, encoder.spec.fingerprint), removed=True)
            want(catalog, True)
            embedded, whole = _fill(
                folder, catalog, encoder, notify, embedded, estimated=again, room=lambda: is_awaited(folder)
            )
            if whole:
                return _reported(folder, catalog, encoder, notify, embedded, began)
        let_in(folder)
        again = True


def fill_late(
    folder: Path, catalog: Catalog, encoder: Encoder, notify: Notify = silent, *, estimated: bool = False
) -> LateReport:
    """Do the work of `build_late`; the caller holds the lock, and may have reported an estimate."""
    began = time.monotonic()
    embedded, _ = _fill(folder, catalog, encoder, notify, 0, estimated=estimated, room=lambda: False)
    return _reported(folder, catalog, encoder, notify, embedded, began)


def _fill(
    folder: Path, catalog: Catalog, encoder: Encoder, notify: Notify, before: int, *, estimated: bool,
    room: Callable[[], bool],
) -> tuple[int, bool]:  # fmt: skip
    """Embed the passages that the index lacks, until `room` says that another writer waits.

    What waits for the codec is only in memory, so nobody is let in before there is one.

    Returns:
        How many passages are embedded, with those `before`, and whether none is left.
    """
    follower = LateFollower(folder, catalog, encoder)
    rows, digests = uncovered(catalog, _index(late_folder(folder, catalog.epoch()), encoder))
    if not estimated:
        report_late_estimate(catalog, rows, len(rows), encoder, notify)
    done = 0
    for some in in_late_batches(len(rows)):
        embed_for_late(follower, rows[some], [digests[place] for place in some.tolist()])
        done += len(some)
        notify(Progress("late index", before + done, before + len(rows), "passages"))
        if done < len(rows) and not follower.waits and room():
            return before + done, False
    follower.finish()
    return before + done, True


def _reported(
    folder: Path, catalog: Catalog, encoder: Encoder, notify: Notify, embedded: int, began: float
) -> LateReport:
    report = late_report(folder, catalog, encoder.spec.fingerprint)
    if embedded and not report.covered:
        notify("the late index has too few tokens to learn from: for now, passages are embedded in each search")
    return replace(report, embedded=embedded, seconds=time.monotonic() - began)


def in_late_batches(count: int) -> Iterable[np.ndarray]:
    """Yield places, each once: at first some that are spread evenly, which the codec is learned from."""
    first = np.arange(0, count, max(1, count // (4 * AT_ONCE)))[: 4 * AT_ONCE]
    order = np.concatenate([first, np.setdiff1d(np.arange(count), first)])
    return (np.sort(order[start : start + AT_ONCE]) for start in range(0, count, AT_ONCE))


def embed_for_late(follower: LateFollower, rows: np.ndarray, digests: list[bytes]) -> None:
    """Embed the tokens of passages, given by row and digest, and give them to the follower."""
    texts = [passage_text(title, text) for title, text in passage_texts(follower.catalog, rows.tolist())]
    once = {digest: place for place, digest in enumerate(digests)}
    tokens = follower.encoder.tokenize([texts[place] for place in once.values()])
    follower.encode(list(once), tokens)
    follower.commit(rows.tolist(), digests, {})


def remove_late(folder: Path) -> LateReport:
    """Remove the late index of a collection, and keep none from now on.

    Raises:
        SondeError: Another process is writing.
    """
    with writer_lock(folder), closing(Catalog.open(folder / "catalog.db", write=True)) as catalog:
        removed = is_wanted(catalog)
        want(catalog, False)
        shutil.rmtree(folder / "late", ignore_errors=True)
        return LateReport(len(live_passages(catalog)[0]), 0, 0, 0, 0, 0.0, removed)


def late_report(folder: Path, catalog: Catalog, model: str) -> LateReport:
    """Return what the late index of a collection holds for a model of this fingerprint."""
    rows, _ = live_passages(catalog)
    try:
        index = LateIndex.open(late_folder(folder, catalog.epoch()), model) if is_wanted(catalog) else None
    except (OSError, SondeError):
        index = None
    if index is None:
        return LateReport(len(rows), 0, 0, 0, 0, 0.0)
    covered = len(rows) - len(uncovered(catalog, index)[0])
    size = sum(path.stat().st_size for path in index.folder.glob("*") if path.is_file())
    return LateReport(len(rows), covered, 0, size, index.bytes_per_passage, 0.0)


def _index(folder: Path, encoder: Encoder) -> LateIndex | None:
    try:
        return LateIndex.open(folder, encoder.spec.fingerprint)
    except (OSError, SondeError):
        return None
