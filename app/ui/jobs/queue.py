"""All jobs of a shelf: starting, stopping, going on, forgetting."""

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import psutil

from ....indexer.errors import UsageError
from ....indexer.files import write_durably
from .job import Job


class Jobs:
    """The jobs that one folder keeps; any process may look at them, so a page may be loaded anew at any time."""

    def __init__(self, folder: Path) -> None:
        """Take the folder; it is made when the first job starts."""
        self.folder = folder

    def all(self) -> list[Job]:
        """Return every job, newest first."""
        found = []
        for folder in sorted(self.folder.glob("*/"), reverse=True) if self.folder.is_dir() else ():
            try:
                found.append(Job.read(folder))
            except (OSError, ValueError, KeyError, TypeError):
                continue  # just being made, or removed meanwhile
        return found

    def of(self, collection: str) -> list[Job]:
        """Return the jobs of one collection, newest first."""
        return [job for job in self.all() if job.collection == collection]

    def running(self, collection: str) -> Job | None:
        """Return the job that works on a collection now."""
        return next((job for job in self.of(collection) if job.state == "running"), None)

    def find(self, id: str) -> Job | None:
        """Return the job of this id; an id that names no job, whatever it looks like, gives None."""
        return next((job for job in self.all() if job.id == id), None)

    def start(self, title: str, collection: str, command: Sequence[str]) -> Job:
        """Start a command of `sonde` in a process of its own.

        Raises:
            UsageError: Another job works on this collection.
        """
        busy = self.running(collection)
        if busy:
            raise UsageError(f"{busy.title} is still running: wait for it, or cancel it")
        started = time.time()
        folder = self.folder / f"{int(started * 1000):015d}-{secrets.token_hex(3)}"
        folder.mkdir(parents=True)
        job = Job(folder, title, collection, tuple(command), started)
        _keep(job)
        return _launch(job)

    def resume(self, job: Job) -> Job:
        """Start a job's command once more: what was committed stays, and it goes on from there.

        Raises:
            UsageError: Another job works on this collection.
        """
        return self.start(job.title, job.collection, job.command)

    def cancel(self, job: Job, wait: float = 10.0) -> None:
        """Stop a job as Ctrl-C does; if it has not ended after `wait` seconds, kill it. What it committed stays."""
        if not job.alive():
            return
        process = psutil.Process(job.pid)
        process.send_signal(signal.SIGINT)
        try:
            process.wait(wait)
        except psutil.TimeoutExpired:
            process.kill()

    def forget(self, job: Job) -> None:
        """Remove what is kept of a job that has ended.

        Raises:
            UsageError: It is running.
        """
        if Job.read(job.folder).state == "running":
            raise UsageError(f"{job.title} is still running: cancel it first")
        shutil.rmtree(job.folder)


def _launch(job: Job) -> Job:
    with (job.folder / "stdout.jsonl").open("wb") as out, (job.folder / "stderr.txt").open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "sonde.app.ui.jobs.worker", str(job.folder)],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=errors,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            start_new_session=True,  # Ctrl-C at the server's terminal is not meant for it
        )
    born = psutil.Process(process.pid).create_time()
    begun = Job(job.folder, job.title, job.collection, job.command, job.started, process.pid, born)
    _keep(begun)
    return begun


def _keep(job: Job) -> None:
    names = ("title", "collection", "command", "started", "pid", "born")
    text = json.dumps({name: getattr(job, name) for name in names})
    write_durably(job.folder / "job.json", lambda stream: stream.write(text.encode()))
