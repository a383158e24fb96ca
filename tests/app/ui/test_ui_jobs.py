"""Jobs of the web UI: commands in processes of their own, as any other process finds them on the disk."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import psutil
import pytest
import served_ui
from hypothesis import given
from hypothesis import strategies as st

from sonde.app.api import Collection
from sonde.app.cli.output import ProgressFile
from sonde.app.ui.jobs import Job, Jobs
from sonde.app.ui.jobs import queue as queue_module
from sonde.app.ui.jobs.queue import LONGEST_NAME, safe_name, safe_names
from sonde.indexer.errors import SondeError, UsageError
from sonde.indexer.progress import Progress
from sonde.indexer.upkeep.verify import verify

ROWS = 1_500
PATIENCE = 60.0


def rows() -> list[str]:
    words = ("river", "stone", "cloud", "engine", "paper", "silver", "garden")
    return [
        json.dumps({"id": str(n), "text": f"{words[n % 7]} {words[n % 5]} number {n}", "n": n}) + "\n"
        for n in range(ROWS)
    ]


def wait_for(condition: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.02)


def ended(job: Job) -> Job:
    """The job as another process finds it once it has ended."""
    wait_for(lambda: Job.read(job.folder).state != "running")
    return Job.read(job.folder)


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[Jobs]:
    jobs = Jobs(tmp_path / "shelf" / ".sonde-jobs")
    yield jobs
    for job in jobs.all():
        if job.alive():
            psutil.Process(job.pid).kill()


@pytest.fixture(autouse=True)
def weightless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs take the encoder without weights."""
    monkeypatch.setenv("PYTHONPATH", served_ui.weightless()["PYTHONPATH"])


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(rows()))
    return path


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second for 256 texts."""
    monkeypatch.setenv("SONDE_SLOW", str(1 / 256))


def start_index(jobs: Jobs, source: Path) -> Job:
    to = jobs.folder.parent / "rows.sonde"
    command = ["index", str(source), "--to", str(to), "--json"]
    return jobs.start("Index rows", "rows", command)


def documents(jobs: Jobs) -> int:
    collection = Collection.open(jobs.folder.parent / "rows.sonde")
    try:
        return collection.stored.open_catalog().counts()[0]
    finally:
        collection.close()


def content(folder: Path) -> list[dict[str, object]]:
    """What a collection says, vectors included, whatever the commits by which it came to be."""
    collection = Collection.open(folder)
    try:
        assert verify(collection.stored) == []
        rows = [{**row, "vector": list(row["vector"])} for row in collection.rows(vectors=True)]
        return sorted(rows, key=lambda row: row["id"])
    finally:
        collection.close()


def test_a_job_is_done_and_another_process_sees_how_it_went(jobs: Jobs, tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text("".join(rows()))
    job = start_index(jobs, tmp_path / "rows.jsonl")
    assert job.state == "running"
    assert [one.id for one in jobs.of("rows")] == [job.id]
    done = ended(job)
    assert (done.state, done.error) == ("done", "its process ended without a message")
    assert done.output[0]["added"] == ROWS
    assert any("text: text (by name)" in sentence for sentence in done.said)
    assert [event for event in done.events if isinstance(event, Progress)][-1] == done.progress
    embedded = [event.done for event in done.events if isinstance(event, Progress) and event.stage == "embedding"]
    assert embedded[-1] == ROWS
    assert 0 < done.seconds < PATIENCE
    seen = subprocess.run(
        [sys.executable, "-c", SEEN, str(jobs.folder), job.id], capture_output=True, text=True, check=True
    )
    assert seen.stdout.split() == ["done", str(ROWS), "rows"]
    jobs.forget(done)
    assert jobs.all() == []


SEEN = """
import sys
from pathlib import Path
from sonde.app.ui.jobs import Jobs
job = Jobs(Path(sys.argv[1])).find(sys.argv[2])
print(job.state, job.output[0]["added"], job.collection)
"""


def test_cancelling_keeps_what_was_committed_and_resuming_ends_the_same(
    jobs: Jobs, source: Path, slow: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = start_index(jobs, source)
    wait_for(lambda: (found := Job.read(job.folder).progress) and found.done >= 256)
    with pytest.raises(UsageError, match="Index rows is still running: wait for it, or cancel it"):
        jobs.start("Delete", "rows", ["delete"])
    with pytest.raises(UsageError, match="Index rows is still running: cancel it first"):
        jobs.forget(job)
    jobs.cancel(Job.read(job.folder))
    stopped = ended(job)
    assert stopped.state == "cancelled"
    assert "continues after the last commit" in stopped.error
    kept = documents(jobs)
    assert kept >= 256
    monkeypatch.setenv("SONDE_SLOW", "0")
    again = jobs.resume(stopped)
    assert jobs.find(stopped.id) is None
    assert ended(again).state == "done"
    report = ended(again).output[0]
    assert (report["added"], report["unchanged"]) == (ROWS - kept, kept)
    assert content(jobs.folder.parent / "rows.sonde") == content(undisturbed(tmp_path))


def undisturbed(tmp_path: Path) -> Path:
    (tmp_path / "whole.jsonl").write_text("".join(rows()))
    other = Jobs(tmp_path / "other" / ".sonde-jobs")
    assert ended(start_index(other, tmp_path / "whole.jsonl")).state == "done"
    return tmp_path / "other" / "rows.sonde"


def test_a_killed_job_says_so_and_is_resumed(
    jobs: Jobs, source: Path, slow: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = start_index(jobs, source)
    wait_for(lambda: (found := Job.read(job.folder).progress) and found.done >= 256)
    os.kill(job.pid, signal.SIGKILL)
    killed = ended(job)
    assert killed.state == "killed"
    assert jobs.running("rows") is None
    monkeypatch.setenv("SONDE_SLOW", "0")
    assert ended(jobs.resume(killed)).state == "done"
    assert documents(jobs) == ROWS
    assert content(jobs.folder.parent / "rows.sonde") == content(undisturbed(tmp_path))


def test_a_failed_job_has_its_one_line(jobs: Jobs, tmp_path: Path) -> None:
    job = ended(jobs.start("Index", "x", ["index", str(tmp_path / "no.csv"), "--to", str(tmp_path / "x.sonde")]))
    assert job.state == "failed"
    assert job.error == "no.csv does not exist: check the path"
    assert jobs.shortened(job.error) == job.error
    kept = f"{jobs.folder}/uploads/0a1b/no.csv does not exist, nor does {jobs.folder}/labels/77.txt"
    assert jobs.shortened(kept) == "no.csv does not exist, nor does 77.txt"
    wrong = ended(jobs.start("Index", "x", ["index", "--no-such-option"]))
    assert (wrong.state, "No such option" in wrong.error) == ("failed", True)


def test_stopped_while_it_still_imports_it_is_cancelled(jobs: Jobs, tmp_path: Path) -> None:
    job = jobs.start("Info", "x", ["info", str(tmp_path)])
    jobs.cancel(job)
    assert ended(job).state == "cancelled"
    jobs.cancel(job)  # once more: nothing happens
    assert jobs.running("x") is None


def test_a_number_that_another_process_took_over_is_not_the_job(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    job = ended(jobs.start("Info", "x", ["info", "nowhere"]))
    (job.folder / "exit").unlink()
    other = Job(job.folder, job.title, job.collection, job.command, job.started, os.getpid())
    assert not other.alive()
    assert other.state == "killed"
    jobs.cancel(other)  # and is not stopped
    assert not (job.folder / "cancelled").exists()
    monkeypatch.setattr(psutil.Process, "cmdline", lambda _: [])
    assert [replace(other, started=time.time() - ago).alive() for ago in (0, 60)] == [True, False], "it is starting"


def test_of_two_that_start_at_once_one_is_refused(jobs: Jobs, source: Path, slow: None) -> None:
    begun: list[Job] = []
    refused: list[str] = []

    def begin() -> None:
        try:
            begun.append(start_index(jobs, source))
        except SondeError as error:
            refused.append(str(error))

    threads = [threading.Thread(target=begin) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(begun) == 1
    assert refused == ["Index rows is still running: wait for it, or cancel it"] * 3


def test_junk_in_the_folder_is_no_job(jobs: Jobs) -> None:
    assert jobs.all() == []
    jobs.folder.mkdir(parents=True)
    (jobs.folder / "file").write_text("x")
    for number, text in enumerate(("", "{", "[]", "7", "null", '{"title": 1}', '{"command": 3}', "\xff\x00")):
        folder = jobs.folder / str(number)
        folder.mkdir()
        (folder / "job.json").write_text(text)
    (jobs.folder / "empty").mkdir()
    assert jobs.all() == []
    assert [jobs.find(id) for id in ("0", "../..", "", "\0", "/etc")] == [None] * 5
    assert jobs.running("x") is None


def test_half_written_and_damaged_lines_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "job.json").write_text(
        json.dumps({"title": "t", "collection": "c", "command": ["info"], "started": 1, "pid": 0, "later": "version"})
    )
    lines = ['"said"', '{"stage": "embedding", "done": 5, "total": null, "unit": "documents"}', "[1]", "{}", "7", '"x']
    (tmp_path / "events.jsonl").write_bytes("\n".join(lines).encode() + b"\xff")
    (tmp_path / "stdout.jsonl").write_bytes(b'{"a": 1}\n{"a": ')
    (tmp_path / "exit").write_text("nonsense")
    job = Job.read(tmp_path)
    assert job.events == ["said", Progress("embedding", 5, None, "documents")]
    assert (job.said, job.progress) == (["said"], Progress("embedding", 5, None, "documents"))
    assert job.output == [{"a": 1}]
    assert job.state == "killed"


def test_the_pace_is_that_of_the_newest_stage(tmp_path: Path) -> None:
    def line(stage: str, done: int, at: float, total: int | None = 1000) -> str:
        return json.dumps({"stage": stage, "done": done, "total": total, "unit": "documents", "at": at})

    job = Job(tmp_path, "t", "c", (), 0.0)
    assert job.pace is None
    (tmp_path / "events.jsonl").write_text("\n".join([line("a", 1, 1), line("b", 100, 5), line("b", 300, 9)]))
    pace = Job(tmp_path, "t", "c", (), 0.0).pace
    assert pace is not None
    assert (pace.rate, pace.left) == (50.0, 14.0)
    (tmp_path / "events.jsonl").write_text("\n".join([line("b", 100, 5, None), line("b", 100, 9, None)]))
    assert Job(tmp_path, "t", "c", (), 0.0).pace is None
    (tmp_path / "events.jsonl").write_text("\n".join([line("b", 100, 5), line("b", 1000, 9)]))
    assert Job(tmp_path, "t", "c", (), 0.0).pace is None, "it has ended"


def test_a_long_run_tells_its_progress_in_few_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    tell = ProgressFile(tmp_path / "events")
    for step in range(100_000):  # 1,000 seconds
        now[0] = step / 100
        tell(Progress("embedding", step, None, "documents"))
    tell(Progress("embedding", 100_000, 100_000, "documents"))
    written = (tmp_path / "events").read_text().splitlines()
    assert 500 < len(written) < 1_500
    assert json.loads(written[-1])["done"] == 100_000


def test_the_first_batch_is_told_however_soon_it_ends(tmp_path: Path) -> None:
    tell = ProgressFile(tmp_path / "events")
    for done in (0, 256, 300):
        tell(Progress("embedding", done, None, "documents"))
    written = (tmp_path / "events").read_text().splitlines()
    assert [json.loads(line)["done"] for line in written] == [0, 256]


def made(jobs: Jobs, number: int, command: list[str], state: str = "done") -> Path:
    folder = jobs.folder / f"{number:015d}-abcdef"
    folder.mkdir(parents=True)
    kept = {"title": "t", "collection": "c", "command": command, "started": number, "pid": 0}
    (folder / "job.json").write_text(json.dumps(kept))
    if state == "done":
        (folder / "exit").write_text("0")
    return folder


def test_old_jobs_do_not_pile_up(jobs: Jobs, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(queue_module, "ENDED", 3)
    for number in range(11, 16):
        made(jobs, -number, ["evaluate", "search"])
    oldest = jobs.uploads.keep([sent("a.csv")])
    for number in range(1, 7):
        made(jobs, number, ["index", str(oldest[0])] if number == 1 else ["info"])
    job = ended(jobs.start("Info", "c", ["info", str(tmp_path)]))
    plain = [found.started for found in jobs.all() if not found.is_result]
    assert plain == [job.started, 6.0, 5.0, 4.0]
    assert sum(found.is_result for found in jobs.all()) == 3
    assert not oldest[0].exists()


def sent(name: str, content: bytes = b"text\nhello\n") -> BytesIO:
    stream = BytesIO(content)
    stream.name = name  # type: ignore[attr-defined]
    return stream


def test_uploaded_files_are_kept_until_the_job_is_done_or_forgotten(jobs: Jobs, tmp_path: Path) -> None:
    [path] = jobs.uploads.keep([sent("rows.jsonl", "".join(rows()).encode())])  # type: ignore[list-item]
    failed = ended(jobs.start("Index", "rows", ["index", str(path), "--to", str(tmp_path / "r.sonde"), "--text", "no"]))
    assert (failed.state, path.exists()) == ("failed", True)
    other = made(jobs, 5, ["index", str(path)], "killed")
    jobs.forget(failed)
    assert path.exists(), "another job still reads it"
    jobs.forget(Job.read(other))
    assert not path.exists()
    [path] = jobs.uploads.keep([sent("rows.jsonl", "".join(rows()).encode())])  # type: ignore[list-item]
    assert ended(start_index(jobs, path)).state == "done"
    assert not path.parent.exists()


def test_uploads_that_no_job_asked_for_go_after_a_day(jobs: Jobs, tmp_path: Path) -> None:
    old, new, used = (jobs.uploads.keep([sent("a.csv")])[0] for _ in range(3))  # type: ignore[list-item]
    made(jobs, 5, ["index", str(used)], "killed")
    for path in (old, used):
        os.utime(path.parent, (1, 1))
    labels = jobs.folder / "labels"
    labels.mkdir()
    for name in ("old.txt", "new.txt", "used.txt"):
        (labels / name).write_text("a\nb\n")
    made(jobs, 6, ["label", "c.sonde", "--labels", str(labels / "used.txt")], "killed")
    for name in ("old.txt", "used.txt"):
        os.utime(labels / name, (1, 1))
    ended(jobs.start("Info", "c", ["info", str(tmp_path)]))
    assert [path.exists() for path in (old, new, used)] == [False, True, True]
    assert sorted(path.name for path in labels.iterdir()) == ["new.txt", "used.txt"]


@pytest.mark.parametrize(
    ("given", "safe"),
    [
        ("../../x.csv", "x.csv"),
        ("/etc/passwd", "passwd"),
        ("C:\\Users\\me\\x.csv", "x.csv"),
        ("..\\..\\x.csv", "x.csv"),
        ("..", "file"),
        ("", "file"),
        ("\0", "file"),
        ("a\0b\n.csv", "ab.csv"),
        (".hidden", "hidden"),
        ("-", "file"),
        ("--to.csv", "to.csv"),
        ("x.csv/", "x.csv"),
        ("héllo wörld.csv.gz", "héllo wörld.csv.gz"),
        ("é" * 300 + ".csv", "é" * ((LONGEST_NAME - 4) // 2) + ".csv"),
    ],
)
def test_names_of_uploaded_files(given: str, safe: str) -> None:
    assert safe_name(given) == safe


@given(st.lists(st.text() | st.sampled_from(["a.csv", "A.csv", "../a.csv", "a", "con\0", "x" * 500])))
def test_no_name_leaves_the_folder_or_takes_anothers_place(names: list[str]) -> None:
    safe = safe_names(names)
    assert len({name.casefold() for name in safe}) == len(names)
    for name in safe:
        assert Path(name).name == name
        assert name not in ("", ".", "..")
        assert name.isprintable()
        assert len(name.encode("utf-8")) < 250


def test_the_same_name_twice_keeps_its_suffixes(jobs: Jobs) -> None:
    paths = jobs.uploads.keep([sent("a.csv.gz", b"1"), sent("x/a.csv.gz", b"2"), sent("../../A.csv.gz", b"3")])  # type: ignore[list-item]
    assert [path.name for path in paths] == ["a.csv.gz", "a-2.csv.gz", "A-3.csv.gz"]
    assert [path.read_bytes() for path in paths] == [b"1", b"2", b"3"]
    assert {path.parent.parent for path in paths} == {jobs.folder / "uploads"}
