"""A sharded collection in an object store (S3) with its copy in a local folder, and the commit of any generation.

The store holds the truth. A reader brings its copy up to the newest generation and opens that. A writer builds in the
copy, uploads the versions of the shards that changed, and creates the generation's file: the store refuses it if
another run has committed first. Credentials come from the environment, and are kept nowhere.
"""

import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

from ..errors import SondeError, WriterBusyError
from ..files import link_or_copy, make_folder, remove_folder, sha256, sync_folder
from ..store.lock import unfinished
from . import COLLECTION, address_of
from .generations import FIRST, KEPT, MANIFEST, REMEMBERED, files_in, generation_names, has_manifest, newest_generation
from .layout import DIGITS, RUNS, Published, ShardedGeneration
from .objects import LocalTruth, Objects, store_errors

CACHE = "SONDE_CACHE"
"""Environment variable: the folder of the copies."""
NAMED = 12
"""Digits of a manifest's digest in the name of a version in the store: two runs never write to the same place."""


def cache_folder() -> Path:
    """Return the folder of the copies: `SONDE_CACHE`, or `sonde` in the user's cache folder."""
    given = os.environ.get(CACHE)
    base = Path(given) if given else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sonde"
    return base.absolute() / "stores"


def local_folder(address: str) -> Path:
    """Return the folder of the copy of the collection at an address."""
    name = PurePosixPath(address).name
    return cache_folder() / hashlib.sha256(address.encode()).hexdigest()[:16] / name


def bucket_of(folder: Path) -> "Bucket | None":
    """Return the object store that a folder is the copy of; None for any other folder.

    Only folders of the cache have one. So a collection that came from somebody else cannot name a store to write to.
    """
    whole = folder.absolute()
    note = whole.parent / "address"
    if whole.parent.parent != cache_folder() or not note.is_file():
        return None
    address = note.read_text("utf-8")
    return Bucket(address) if local_folder(address) == whole else None


class Bucket(Objects):
    """A sharded collection in an object store.

    Attributes:
        address: "s3://BUCKET/PATH/NAME.sonde".
        folder: Its local copy.
    """

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self.folder = local_folder(address)

    def pull(self) -> Path | None:
        """Bring the local copy up to the newest generation and return its folder; None if the store holds nothing.

        Files that the copy has already are not downloaded. Every other file must have the digest that the store's
        manifest gives.

        Raises:
            SondeError: The store does not answer, or an object is damaged.
        """
        shared = self.read(COLLECTION)
        if shared is None:
            return None
        with self._pulling():
            newest = newest_generation(self, self.folder)
            if newest is None:
                self._refuse_lost()
            self._forget_others(shared, newest)
            LocalTruth(self.folder).create(COLLECTION, shared)
            if newest is None:
                return self.folder
            for name, state in newest.folders.items():
                self._download(name, state)
            LocalTruth(self.folder).create(newest.name, self.get(newest.name))
        return self.folder

    def begin(self) -> Path:
        """Return the folder for a run to write to: an up-to-date copy, or an empty folder if the store holds nothing.

        Raises:
            SondeError: The store does not answer, or an object is damaged.
        """
        if self.pull() is None:
            with self._pulling():
                if LocalTruth(self.folder).read(COLLECTION) is not None:  # of what the store held before
                    remove_folder(self.folder)
                    make_folder(self.folder)
        return self.folder

    def publish(self, generation: ShardedGeneration) -> None:
        """Upload what a generation consists of, then commit it.

        Raises:
            WriterBusyError: Another run has committed first.
            SondeError: The store does not answer.
        """
        before = newest_generation(self, self.folder)
        free = before is None or before.number < generation.number
        if free:
            known = before.folders if before else {}
            for name, state in generation.folders.items():
                self._upload(name, state, known.get(name))
        if not free or not self.create(generation.name, generation.to_bytes()):
            raise WriterBusyError(
                f"another command committed generation {generation.number} of {self.address} first: this one "
                "committed nothing; run the same command again"
            )
        with suppress(SondeError):  # the generation is committed; the next run removes what is left
            self._remove_old()

    @contextmanager
    def _pulling(self) -> Iterator[None]:
        """One process at a time changes the copy."""
        from filelock import FileLock

        place = self.folder.parent
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        with FileLock(place / "pull.lock"):
            make_folder(self.folder)
            (place / "address").write_text(self.address, "utf-8")
            for left in place.glob("part-*"):
                shutil.rmtree(left)
            yield

    def _refuse_lost(self) -> None:
        """Refuse a store without generations that holds versions of a later one than the first."""
        places = map(_place_of, self.paths("shards", RUNS))
        if lost := next((place for place in places if place.split("/")[-1][:DIGITS] > FIRST), None):
            said = f"{self.address} has lost its generations, but not {lost}"
            raise SondeError(f"{said}: restore the collection from a backup", code="damaged")

    def _forget_others(self, shared: bytes, newest: ShardedGeneration | None) -> None:
        """Empty a copy of what was in the store before: another collection, or generations that are not there."""
        local = LocalTruth(self.folder)
        known = newest_generation(local, self.folder)
        same = local.read(COLLECTION) in (None, shared)
        if same and known and (newest is None or known.number >= newest.number):
            same = self.read(known.name) == local.read(known.name)
        if not same:
            remove_folder(self.folder)
            make_folder(self.folder)

    def _download(self, name: str, state: Published) -> None:
        final = self.folder / name / state.version
        if has_manifest(final, state):
            return
        place = _place(name, state)
        manifest = self.get(f"{place}/{MANIFEST}")
        if hashlib.sha256(manifest).hexdigest() != state.sha256:
            raise self.damaged(f"{place}/{MANIFEST}")
        part = self.folder.parent / f"part-{name.replace('/', '-')}-{state.version}"
        known = _known_files(final.parent)
        for file, digest in files_in(manifest, place).items():
            path = part / file
            make_folder(path.parent)
            if digest in known:
                _linked(known[digest], path)
            if not path.is_file() or sha256(path) != digest:
                path.unlink(missing_ok=True)
                self.fetch(f"{place}/{file}", path)
                if sha256(path) != digest:
                    raise self.damaged(f"{place}/{file}")
        (part / MANIFEST).write_bytes(manifest)
        shutil.rmtree(final, ignore_errors=True)
        make_folder(final.parent)
        part.rename(final)
        sync_folder(final.parent)

    def _upload(self, name: str, state: Published, before: Published | None) -> None:
        """Upload a version whose manifest is not in the store; the manifest last. The store copies what it has."""
        import obstore

        place = _place(name, state)
        if self.read(f"{place}/{MANIFEST}") is not None:
            return
        folder = self.folder / name / state.version
        manifest = (folder / MANIFEST).read_bytes()
        old = _place(name, before) if before else ""
        content = self.read(f"{old}/{MANIFEST}") if before else None
        known = {digest: file for file, digest in files_in(content, old).items()} if content else {}
        with store_errors(self.address):
            for file, digest in files_in(manifest, place).items():
                if digest in known:
                    obstore.copy(self.store, f"{old}/{known[digest]}", f"{place}/{file}")
                else:
                    obstore.put(self.store, f"{place}/{file}", folder / file)
            obstore.put(self.store, f"{place}/{MANIFEST}", manifest)

    def _remove_old(self) -> None:
        """Remove versions that none of the newest generations names, but none of a run that has not committed."""
        import obstore

        names = generation_names(self)
        generations = [ShardedGeneration.load(self, self.folder, name) for name in names[-KEPT:]]
        kept = {_place(name, state) for each in generations for name, state in each.folders.items()}
        newest = generations[-1].number
        stored = self.paths("shards", RUNS)
        places = {_place_of(path) for path in stored} - kept
        old = {place for place in places if place.split("/")[-1][:DIGITS] <= f"{newest:06d}"}
        gone = [path for path in stored if _place_of(path) in old]
        if gone := [*gone, *names[:-REMEMBERED]]:
            with store_errors(self.address):
                obstore.delete(self.store, gone)


def opened_copy(path: str | Path) -> Path | None:
    """Return the folder of an up-to-date copy if a path is the address of a store; None for any other path.

    Raises:
        SondeError: There is no collection at the address, or the store does not answer.
    """
    address = address_of(path)
    if address is None:
        return None
    folder = Bucket(address).pull()
    if folder is None:
        raise SondeError(f"there is no collection at {address}", code="no-collection")
    if newest_generation(LocalTruth(folder), folder) is None:
        raise unfinished(address)
    return folder


def commit(folder: Path, new: ShardedGeneration) -> None:
    """Make a generation the newest one; what it consists of must be there.

    Raises:
        WriterBusyError: Another run committed first.
        SondeError: The object store of the collection does not answer.
    """
    if bucket := bucket_of(folder):
        bucket.publish(new)
    if not LocalTruth(folder).create(new.name, new.to_bytes()):
        raise WriterBusyError(
            f"another command committed generation {new.number} of {folder} first: this one committed nothing; "
            "run the same command again"
        )


def _place(name: str, state: Published) -> str:
    return f"{name}/{state.version}-{state.sha256[:NAMED]}"


def _place_of(path: str) -> str:
    """Return the folder of the version that an object belongs to: "shards/03/VERSION" or "runs/VERSION"."""
    return "/".join(path.split("/")[: 3 if path.startswith("shards/") else 2])


def _known_files(folder: Path) -> dict[str, Path]:
    """Return the files of the versions in the copy by digest."""
    found = {}
    for manifest in folder.glob(f"*/{MANIFEST}"):
        for name, digest in files_in(manifest.read_bytes(), str(manifest.parent)).items():
            found[digest] = manifest.parent / name
    return found


def _linked(path: Path, there: Path) -> None:
    """Link a segment of embeddings, which never changes; copy any other file."""
    if path.is_file() and not there.exists():
        link_or_copy(path, there) if path.parent.name == "vectors" else shutil.copy2(path, there)
