"""All jobs of a workspace, and the files that visitors sent for them: start, stop, continue, forget."""

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Protocol

import psutil
from filelock import FileLock, Timeout

from ....indexer.errors import SondeError, UsageError
from ....indexer.files import write_durably
from ..words import without_folders
from .job import Chain, Job

LONGEST_NAME = 120
"""Bytes of a file's name: every file system takes as many, with room for what is added."""
UNUSED_SECONDS = 86_400.0
"""After a day, files that no job has asked for go."""
FORBIDDEN = '<>:"|?*'


class Sent(Protocol):
    """A file as it arrived: its name, which is the visitor's, and its content."""

    name: str

    def getbuffer(self) -> memoryview:
        """Return the content."""
        ...


class Uploads:
    """Folders of uploaded files, one for each time that somebody sent some."""

    def __init__(self, folder: Path) -> None:
        """Take the folder; it is made when the first file comes."""
        self.folder = folder

    def keep(self, files: Sequence[Sent]) -> list[Path]:
        """Write files into a new folder, under names that are safe and different, and return where they are."""
        place = self.folder / secrets.token_hex(8)
        place.mkdir(parents=True)
        paths = [place / name for name in safe_names(file.name for file in files)]
        for path, file in zip(paths, files, strict=True):
            path.write_bytes(file.getbuffer())
        return paths

    def drop(self, words: Iterable[str]) -> None:
        """Remove the folders that a command names."""
        for folder in self.named(words):
            shutil.rmtree(folder, ignore_errors=True)

    def named(self, words: Iterable[str]) -> set[Path]:
        """Return the folders whose files a command names."""
        parents = {Path(word).parent for word in words if Path(word).is_absolute()}
        return {parent for parent in parents if parent.parent == self.folder and parent.is_dir()}

    def drop_unused(self, commands: Iterable[Iterable[str]]) -> None:
        """Remove folders that none of the commands names and that are a day old."""
        used = {folder for words in commands for folder in self.named(words)}
        for folder in self.folder.iterdir() if self.folder.is_dir() else ():
            with suppress(OSError):  # another process has just removed it
                if folder not in used and time.time() - folder.stat().st_mtime > UNUSED_SECONDS:
                    shutil.rmtree(folder, ignore_errors=True)


def safe_names(given: Iterable[str]) -> list[str]:
    """Return a name for each file that stays in its folder, and that no two share."""
    names: list[str] = []
    taken: set[str] = set()
    for name in map(safe_name, given):
        stem, dot, suffixes = name.partition(".")
        number, free = 2, name
        while free.casefold() in taken:
            free, number = f"{stem}-{number}{dot}{suffixes}", number + 1
        taken.add(free.casefold())
        names.append(free)
    return names


def safe_name(given: str) -> str:
    """Return the last part of what a browser calls a file, without what a file system could take amiss.

    The end of a long name stays, because its suffix tells the format.
    """
    last = given.replace("\\", "/").rstrip("/").rpartition("/")[2]
    kept = "".join(c for c in last if c.isprintable() and c not in FORBIDDEN)
    short = kept.encode("utf-8", "replace")[-LONGEST_NAME:].decode("utf-8", "ignore")
    return short.strip(" .").lstrip("-") or "file"


ENDED = 60
"""Jobs that have ended and are kept, evaluations beside them; older ones are forgotten when another starts."""


class Jobs:
    """The jobs that one folder keeps; any process may look at them, so a page may be reloaded at any time."""

    def __init__(self, folder: Path) -> None:
        """Take the folder; it is made when the first job starts."""
        self.folder = folder

    @property
    def uploads(self) -> Uploads:
        """Files that were sent for jobs."""
        return Uploads(self.folder / "uploads")

    def shortened(self, sentence: str) -> str:
        """Return a sentence without the folders of the server that hold collections, uploads and lists of labels."""
        return without_folders(sentence, self.folder)

    def all(self) -> list[Job]:
        """Return every job, newest first."""
        return [job for job in map(_read, sorted(self.folder.glob("*/"), reverse=True)) if job]

    def of(self, collection: str) -> list[Job]:
        """Return the jobs of one collection, newest first."""
        return [job for job in self.all() if job.collection == collection]

    def running(self, collection: str) -> Job | None:
        """Return the job that works on a collection now, apart from those in the background."""
        return next((job for job in self.of(collection) if job.state == "running" and not job.background), None)

    def behind(self, collection: str) -> Job | None:
        """Return the job that works on a collection in the background."""
        return next((job for job in self.of(collection) if job.state == "running" and job.background), None)

    def find(self, id: str) -> Job | None:
        """Return the job of this id; an id that names no job, whatever it looks like, gives None."""
        return next((_read(folder) for folder in self.folder.glob("*/") if folder.name == id), None)

    def start(
        self, title: str, collection: str, command: Sequence[str], then: Chain = (), *, background: bool = False
    ) -> Job:
        """Start a command of `sonde` in a process of its own; see `Job` for `then` and `background`.

        Raises:
            UsageError: Another job works on this collection.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            with FileLock(self.folder / "start.lock", timeout=10):
                return self._start(title, collection, command, then, background)
        except Timeout:
            raise SondeError("another job is starting: try again in a moment") from None

    def resume(self, job: Job) -> Job:
        """Start the command of a job that has ended once more, in its place: it goes on from what was committed.

        Raises:
            UsageError: Another job works on this collection.
        """
        begun = self.start(job.title, job.collection, job.command, job.then, background=job.background)
        shutil.rmtree(job.folder, ignore_errors=True)
        return begun

    def ask_to_stop(self, job: Job) -> None:
        """Note that a job is to stop, and stop it without waiting for its end: see `cancel`."""
        if job.alive():
            (job.folder / "cancelled").touch()
            Thread(target=self.cancel, args=[job], daemon=True).start()

    def cancel(self, job: Job, wait: float = 10.0) -> None:
        """Stop a job as Ctrl-C does; if it has not ended after `wait` seconds, kill it. What it committed stays."""
        if not job.alive():
            return
        (job.folder / "cancelled").touch()
        try:
            process = psutil.Process(job.pid)
            process.send_signal(getattr(signal, "CTRL_BREAK_EVENT", signal.SIGINT))  # the first on Windows
            process.wait(wait)
        except psutil.TimeoutExpired:
            _kill(job)
        except psutil.Error:
            return  # it has just ended

    def forget(self, job: Job) -> None:
        """Remove what is kept of a job that has ended, the files that were uploaded for it included.

        Raises:
            UsageError: It is running.
        """
        try:
            now = Job.read(job.folder)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return  # somebody else has
        if now.state == "running":
            raise UsageError(f"{job.named} is still running: cancel it first")
        others = [other.command for other in self.all() if other.id != job.id]
        if not any(self.uploads.named(job.command) & self.uploads.named(words) for words in others):
            self.uploads.drop(job.command)
        shutil.rmtree(job.folder, ignore_errors=True)

    def go_on(self, ended: Job) -> None:
        """Start the first of the jobs that follow one that has ended, in the background; it knows the others."""
        if ended.then:
            title, command = ended.then[0]
            self.start(title, ended.collection, command, ended.then[1:], background=True)

    def _start(self, title: str, collection: str, command: Sequence[str], then: Chain, background: bool) -> Job:
        busy = self.behind(collection) if background else self.running(collection)
        if busy:
            raise UsageError(f"{busy.named} is still running: wait for it, or cancel it")
        self._prune()
        started = time.time()
        folder = self.folder / f"{int(started * 1000):015d}-{secrets.token_hex(3)}"
        folder.mkdir()
        job = Job(folder, title, collection, tuple(command), started, then=then, background=background)
        _keep(job)
        return _launch(job)

    def _prune(self) -> None:
        known = self.all()
        ended = [job for job in known if job.state != "running"]
        for kept in (False, True):  # each kind by itself: a page shows what evaluations found
            for job in [job for job in ended if job.is_result is kept][ENDED:]:
                self.forget(job)
        self.uploads.drop_unused(job.command for job in known)
        self._drop_labels({word for job in known for word in job.command})

    def _drop_labels(self, words: set[str]) -> None:
        """Remove files of labels that no job names and that are a day old."""
        for path in (self.folder / "labels").glob("*"):
            with suppress(OSError):
                if str(path) not in words and time.time() - path.stat().st_mtime > UNUSED_SECONDS:
                    path.unlink()


def _read(folder: Path) -> Job | None:
    """Return the job of a folder; None if it is just being made, was removed meanwhile, or is something else."""
    try:
        return Job.read(folder)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _launch(job: Job) -> Job:
    with (job.folder / "stdout.jsonl").open("wb") as out, (job.folder / "stderr.txt").open("wb") as errors:
        process = subprocess.Popen(
            # -P: a file torch.py in the folder where the server was started must not be taken for the library
            [sys.executable, "-P", "-m", "sonde.app.cli.job", str(job.folder)],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=errors,
            env={**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONIOENCODING": "utf-8"},
            start_new_session=True,  # Ctrl-C at the server's terminal is not meant for it
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),  # the same on Windows
        )
    begun = replace(job, pid=process.pid)
    _keep(begun)
    return begun


def _kill(job: Job) -> None:
    """Kill a job's process, and those that it started."""
    with suppress(OSError, psutil.Error):  # it has just ended
        os.killpg(job.pid, signal.SIGKILL) if hasattr(os, "killpg") else psutil.Process(job.pid).kill()


def _keep(job: Job) -> None:
    names = ("title", "collection", "command", "started", "pid", "then", "background")
    text = json.dumps({name: getattr(job, name) for name in names})
    write_durably(job.folder / "job.json", lambda stream: stream.write(text.encode()))
