"""Two writers that start together: one waits for the other, and neither removes what the other made."""

import shutil
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command_line import Command, problems
from fake_encoder import FakeEncoder
from small_reviews import ROWS, lines

from sonde.app.api import index as make
from sonde.indexer.document import Document
from sonde.indexer.errors import NothingToIndexError, UsageError, WriterBusyError
from sonde.indexer.ingest import BuildSettings, index, index_documents
from sonde.indexer.store.collection import StoredCollection
from sonde.indexer.store.lock import Patience, writer_lock


class OtherEncoder(FakeEncoder):
    spec = replace(FakeEncoder.spec, name="other", digest="1" * 64)


FAKE = FakeEncoder()


class Writer(threading.Thread):
    """Indexes documents into a folder; `begun` is set when it holds the lock, and it goes on when `go` is set."""

    def __init__(self, folder: Path, ids: str, wait: float = 0.0, encoder: FakeEncoder | None = FAKE) -> None:
        super().__init__(daemon=True)
        self.folder, self.ids, self.wait, self.encoder = folder, ids, wait, encoder
        self.begun, self.go, self.waits = threading.Event(), threading.Event(), threading.Event()
        self.said: list[object] = []
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            index_documents(
                self._documents(),
                self.folder,
                settings=BuildSettings(batch=2, wait=self.wait),
                encoder=self.encoder,  # type: ignore[arg-type]
                notify=self._note,
            )
        except BaseException as error:
            self.error = error

    def _documents(self) -> Iterator[Document]:
        self.begun.set()
        assert self.go.wait(30)
        yield from (Document(f"text {id}", key=id) for id in self.ids)

    def _note(self, event: object) -> None:
        self.said.append(event)
        if "is being written" in str(event):
            self.waits.set()

    def started(self) -> "Writer":
        self.start()
        assert self.begun.wait(30)
        return self

    def ended(self) -> BaseException | None:
        self.go.set()
        self.join(60)
        assert not self.is_alive()
        return self.error


def ids(folder: Path) -> list[str]:
    with StoredCollection.open(folder).view() as view:
        return sorted(key for (key,) in view.catalog.connection.execute("SELECT key FROM documents"))


def test_the_second_first_run_fails_and_leaves_the_folder_to_the_first(tmp_path: Path) -> None:
    folder = tmp_path / "c.sonde"
    first, second = Writer(folder, "ab").started(), Writer(folder, "cd")
    second.start()
    error = second.ended()
    assert isinstance(error, WriterBusyError)
    assert "c.sonde is being written to by another thread of this program since" in str(error)
    assert first.ended() is None
    assert ids(folder) == ["a", "b"]
    assert problems(folder) == []


def test_the_second_first_run_waits_says_for_whom_and_adds_its_documents(tmp_path: Path) -> None:
    folder = tmp_path / "c.sonde"
    first, second = Writer(folder, "ab").started(), Writer(folder, "cd", wait=60)
    second.start()
    assert second.waits.wait(30)
    second.go.set()  # the first makes room for the second after each commit
    assert first.ended() is None
    assert second.ended() is None
    (said,) = (str(event) for event in second.said if "is being written" in str(event))
    assert "c.sonde is being written to by another thread of this program since " in said
    assert said.endswith(": waiting up to 60 s")
    assert ids(folder) == ["a", "b", "c", "d"]
    assert problems(folder) == []


def test_a_first_run_that_fails_leaves_the_folder_to_the_one_that_waits(tmp_path: Path) -> None:
    folder = tmp_path / "c.sonde"
    first, second = Writer(folder, "").started(), Writer(folder, "cd", wait=60)
    second.start()
    assert second.waits.wait(30)
    assert isinstance(first.ended(), NothingToIndexError)
    assert second.ended() is None
    assert ids(folder) == ["c", "d"]
    assert problems(folder) == []


def test_a_first_run_that_fails_alone_leaves_nothing(tmp_path: Path) -> None:
    assert isinstance(Writer(tmp_path / "c.sonde", "").started().ended(), NothingToIndexError)
    assert list(tmp_path.iterdir()) == []


def test_another_model_is_refused_at_once(tmp_path: Path) -> None:
    folder = tmp_path / "c.sonde"
    first, second = Writer(folder, "ab").started(), Writer(folder, "cd", 60, OtherEncoder())
    second.start()
    error = second.ended()
    assert isinstance(error, UsageError)
    assert "c.sonde has the model fake, not other with these settings" in str(error)
    assert first.ended() is None
    assert ids(folder) == ["a", "b"]


@pytest.mark.parametrize("given", [True, False])
def test_a_collection_made_during_the_wait_decides_the_model(
    reviews: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: bool
) -> None:
    monkeypatch.setattr(index, "load_encoder", lambda *_, **__: OtherEncoder())
    monkeypatch.setattr(index, "load_encoder_for", lambda *_, **__: FakeEncoder())
    folder = tmp_path / "c.sonde"
    folder.mkdir()
    second = Writer(folder, "cd", 60, OtherEncoder() if given else None)
    second.go.set()
    with writer_lock(folder):
        second.start()
        assert second.waits.wait(30)
        shutil.copytree(reviews, folder, ignore=lambda *_: ["writer.lock", "writer.json"], dirs_exist_ok=True)
    error = second.ended()
    if given:
        assert "c.sonde has the model fake, not other with these settings" in str(error)
        assert ids(folder) == ids(reviews)
    else:
        assert error is None
        assert ids(folder) == sorted([*ids(reviews), "c", "d"])
        assert problems(folder) == []


@pytest.mark.parametrize("wait", [-1.0, float("nan"), float("inf")])
def test_a_wait_that_is_no_time_is_refused(wait: float) -> None:
    with pytest.raises(UsageError, match=f"wait is {wait}: give a number of seconds, 0 or more"):
        BuildSettings(wait=wait)


HOLD = """
import sys
from pathlib import Path
from sonde.indexer.store.lock import writer_lock
with writer_lock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def held(reviews: Path) -> Iterable["subprocess.Popen[str]"]:
    command = [sys.executable, "-c", HOLD, str(reviews)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_a_busy_collection_is_waited_for_only_as_long_as_was_said(
    sonde: Command, reviews: Path, tmp_path: Path, held: "subprocess.Popen[str]"
) -> None:
    source = lines(tmp_path / "s.jsonl", ROWS)
    outcome = sonde("index", source, "--to", reviews, "--wait", 0.2)
    said = f"reviews.sonde is being written to by process {held.pid} since "
    assert outcome.code == 1
    assert said in outcome.err
    assert "waiting up to 0.2 s\n" in outcome.err
    assert outcome.said[-1].endswith("wait for it to end, then try again")
    sonde("index", source, "--to", reviews, "--wait", "-1").failed("--wait is -1.0: give a number of seconds", code=2)


def test_a_python_writer_does_not_wait(reviews: Path, held: "subprocess.Popen[str]") -> None:
    with pytest.raises(WriterBusyError, match=f"is being written to by process {held.pid}"), writer_lock(reviews):
        pass


def test_every_write_of_the_python_api_waits_for_its_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 24 documents that four threads put, 18 were refused."""
    monkeypatch.setattr("sonde.indexer.store.lock.USUAL", Patience(30.0))
    encoder: Any = FakeEncoder()
    shared = make(["A first text"], tmp_path / "c.sonde", encoder=encoder)

    def write(number: int) -> None:
        for part in range(3):
            shared.put([{"id": f"{number}-{part}", "text": f"text {number} {part}"}])
        shared.tag(f"tag {number}", ids=[f"{number}-1"])
        shared.delete([f"{number}-2"])

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(write, range(4)))
    assert {row["id"] for row in shared.rows()} >= {f"{number}-{part}" for number in range(4) for part in range(2)}
    assert (len(shared), len(shared.runs()), shared.verify()) == (9, 4, [])
