"""What jobs and errors say on a page: the pages' own words, no options of the command line, no paths of the server."""

# ruff: noqa: F811  (fixtures that are imported)

import json
import os
import re
import signal
import time
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st
from served_ui import weightless
from ui_overview import kept_job
from ui_pages import Pages, pages, shown, unread  # noqa: F401  (fixture)

from sonde.app.ui.data.jobs import how_far
from sonde.app.ui.jobs import Job, Jobs
from sonde.app.ui.jobs.panel import WATCHED, command_line
from sonde.app.ui.launch import VARIABLE
from sonde.app.ui.page import said_by_pages
from sonde.app.ui.words import MEASURES, explained, in_pages, label, without_paths
from sonde.indexer.errors import Message, SondeError, arg
from sonde.indexer.ingest import source as source_module
from sonde.indexer.progress import Progress
from sonde.indexer.readers.reading import ReadProgress

PATIENCE = 60.0


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (Message(f"{arg('min_size')} is 1: give 2 or more"), "Minimum size is 1: give 2 or more"),
        (Message(f"{arg('max_chars')} is 0"), "max chars is 0"),
        (Message(f"choose {arg('id')}, or take a hash ({arg('id', '')})"), "choose Id, or take a hash (Id)"),
        (Message(f"repair it, or set {arg('format')} to jsonl"), "repair it, or give the file the ending .jsonl"),
        (Message(f"Check it, or set {arg('format')}"), "Check it, or give the file the ending of its format"),
        (Message(f"it is not text: set {arg('encoding')}"), "it is not text: save the file as text in UTF-8"),
        ("a run of this name exists: give --name NAME", "a run of this name exists: give Name"),
        ("cannot read /srv/data/reviews.csv: damaged", "cannot read reviews.csv: damaged"),
        ("'C:\\data\\reviews.csv' is empty", "'reviews.csv' is empty"),
        ("the index is lost: run `sonde repair shop.sonde`", "the index is lost: run Repair (Data page, Health)"),
        ("not in 2 runs: `sonde runs update 'a b' RUN` adds them", "not in 2 runs: the page of each run adds them"),
        ("delete the old documents: --sync does that", "delete the old documents: Sync does that"),
        ("switch back with `sonde model --undo`", "switch back with Model (Data page)"),
        ("judge hits first, with `sonde judge`", "judge hits first, with Relevant and Not relevant (Search page)"),
        (
            "a run is needed: `sonde taxonomy C --from RUN`",
            "a run is needed: Make a taxonomy (Clusters and topics page)",
        ),
        ("begin empty: `sonde taxonomy add C NAME`", "begin empty: `sonde taxonomy add C NAME`"),
        ("or `sonde model --forget` removes them", "or `sonde model --forget` removes them"),
        ("until `sonde tune` finds others", "until `sonde tune` finds others"),
        ("see https://example.org/a/b and 5/7 and/or x", "see https://example.org/a/b and 5/7 and/or x"),
    ],
)
def test_a_sentence_of_the_library_has_the_words_of_the_pages(said: str, shown: str) -> None:
    assert without_paths(in_pages(said)) == shown


@given(st.text(alphabet="ab /.-`:\\~'", max_size=40))
def test_no_text_keeps_a_path_with_folders(text: str) -> None:
    assert "/a/b" not in f" {without_paths(f' /a/b {text}')}".replace(text, "")
    assert in_pages("") == "" and label("where") == "Filter"


def ended(job: Job) -> Job:
    end = time.monotonic() + PATIENCE
    while Job.read(job.folder).state == "running":
        assert time.monotonic() < end
        time.sleep(0.05)
    return Job.read(job.folder)


@pytest.fixture
def jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Jobs:
    monkeypatch.setenv("PYTHONPATH", weightless()["PYTHONPATH"])
    return Jobs(tmp_path / "shelf" / ".sonde-jobs")


def test_a_failed_job_names_widgets_and_files_and_keeps_what_is_wrong_as_data(jobs: Jobs, tmp_path: Path) -> None:
    rows = tmp_path / "secret" / "rows.jsonl"
    rows.parent.mkdir()
    rows.write_text('{"text": "a parcel came late"}\n' * 9)
    to = str(tmp_path / "shelf" / "rows.sonde")
    assert ended(jobs.start("Index", "rows", ["index", str(rows), "--to", to])).state == "done"
    job = ended(jobs.start("Cluster", "rows", ["cluster", to, "--method", "density", "--min-size", "1"]))
    assert job.state == "failed"
    assert "Minimum size" in job.error and "--" not in job.error and "min" not in job.error.replace("Minimum", "")
    kept = json.loads((job.folder / "error.json").read_text())
    assert (kept["field"], kept["value"]) == ("min_size", "1")
    gone = ended(jobs.start("Index", "rows", ["index", str(rows.with_name("no.csv")), "--to", to]))
    assert gone.error == "no.csv does not exist: check the path"


@pytest.mark.parametrize("shelf", ["plain", "my texts", "it's, (new)"])
def test_messages_and_commands_of_a_job_name_files_without_folders(tmp_path: Path, shelf: str) -> None:
    folder = tmp_path / shelf / ".sonde-jobs" / "000000000000001-abcdef"
    folder.mkdir(parents=True)
    sent, labels = folder.parent / "uploads" / "0a1b" / "(my) rows.csv", folder.parent / "labels" / "77.txt"
    words = ["label", f"{tmp_path / shelf / 'shop.sonde'}", "--labels-file", str(labels), str(sent)]
    kept = {"title": "t", "collection": "c", "command": words, "started": time.time(), "pid": 0}
    (folder / "job.json").write_text(json.dumps(kept))
    (folder / "events.jsonl").write_text(json.dumps(f"{sent}: text: content") + "\n")
    (folder / "error.json").write_text(json.dumps({"message": f"cannot read {sent} and {labels}"}))
    job = Job.read(folder)
    assert job.said == ["(my) rows.csv: text: content"]
    assert job.error == "cannot read (my) rows.csv and 77.txt"
    assert command_line(job) == "sonde label shop.sonde --labels-file 77.txt '(my) rows.csv'"
    assert command_line(job, 2) == "sonde label shop.sonde '…'"


def test_paths_are_shown_only_to_the_user_of_the_server_s_own_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = SondeError(f"cannot load /srv/models/e5 for {tmp_path / 'shop.sonde'}")
    for local, said_there in (
        (True, "cannot load /srv/models/e5 for shop.sonde"),
        (False, "cannot load e5 for shop.sonde"),
    ):
        monkeypatch.setenv(VARIABLE, json.dumps({"shelf": str(tmp_path), "local": local}))
        assert said_by_pages(said) == said_there


def test_a_killed_job_ran_until_the_last_that_it_wrote(tmp_path: Path) -> None:
    folder = tmp_path / "000000000000001-abcdef"
    folder.mkdir()
    kept = {"title": "Index", "collection": "x", "command": ["index"], "started": 1_000.0, "pid": 0}
    (folder / "job.json").write_text(json.dumps(kept))
    assert Job.read(folder).seconds == 0
    for name, at in (("stdout.jsonl", 1_000), ("events.jsonl", 1_042), ("stderr.txt", 1_001)):
        (folder / name).write_text("")
        os.utime(folder / name, (at, at))
    job = Job.read(folder)
    assert (job.state, job.seconds) == ("killed", 42)
    (folder / "exit").write_text("1")
    os.utime(folder / "exit", (1_007, 1_007))
    assert Job.read(folder).seconds == 7


def test_asking_to_stop_returns_at_once_and_stops_the_job(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    job = jobs.start("Wait", "x", ["info", "nowhere"])
    process = psutil.Process(job.pid)
    process.send_signal(signal.SIGSTOP)
    asked: list[Job] = []
    monkeypatch.setattr(Jobs, "cancel", lambda _, each: asked.append(each))
    began = time.monotonic()
    jobs.ask_to_stop(job)
    assert time.monotonic() - began < 2
    assert Job.read(job.folder).asked_to_stop
    process.kill()
    assert [each.id for each in asked] == [job.id]


def test_pages_and_the_glossary_explain_measures_in_the_same_words() -> None:
    glossary = (Path(__file__).parents[3] / "docs" / "glossary.md").read_text("utf-8").splitlines()
    rows = dict(line.strip("| ").split(" | ", 1) for line in glossary if line.count(" | ") == 1)
    assert {name: rows.get(name) for name in MEASURES} == MEASURES
    for name, said in MEASURES.items():
        assert re.search(r"(0 to 1|-1 to 1|1 at most); ", said), f"{name} has no range and no direction"
    assert explained("nDCG@10").startswith("How good the first ten hits are, 0 to 1; ")


class Rows:
    """A file of 1,000 documents of 10 bytes, whose reader tells how far it is."""

    def __init__(self) -> None:
        self.at = 0

    def __iter__(self):
        for number in range(1, 1_001):
            self.at = number * 10 + (number * 37 % 200 if number < 1_000 else 0)  # it reads whole blocks
            yield number

    def progress(self) -> ReadProgress:
        return ReadProgress(min(self.at, 10_000), 10_000, "bytes")


def test_the_total_of_an_index_run_counts_what_was_read_and_stands_still() -> None:
    told: list[Progress] = []
    followed = source_module._Followed(Rows(), told.append)  # type: ignore[arg-type]
    items = iter(followed)
    for committed in range(200, 601, 40):  # what is read runs 400 documents ahead of what is committed
        while followed._read < committed + 400 and next(items, None) is not None:
            pass
        followed.notify(Progress("embedding", committed, None, "documents"))
    assert all(event.estimated for event in told)
    totals = [event.total or 0 for event in told]
    assert len(set(totals[:-1])) == 1
    assert all(abs(total - 1_000) <= 50 for total in totals)
    list(items)
    followed.notify(Progress("embedding", 1_000, None, "documents"))
    assert told[-1] == Progress("embedding", 1_000, 1_000, "documents")


@pytest.mark.parametrize(
    ("title", "named"), [("Map", "shop · Map"), ("Create shop", "Create shop"), ("Workshop", "shop · Workshop")]
)
def test_a_job_names_its_collection(pages: Pages, title: str, named: str) -> None:
    pages.collection("shop")
    pages.collection("other")
    folder = pages.shelf / ".sonde-jobs" / "000000000000001-abcdef"
    folder.mkdir(parents=True)
    kept = {"title": title, "collection": "shop", "command": ["map"], "started": time.time(), "pid": os.getpid()}
    (folder / "job.json").write_text(json.dumps(kept))
    (folder / "exit").write_text("1")
    (folder / "error.json").write_text(json.dumps({"message": "it broke"}))
    assert Job.read(folder).named == named
    page = pages.open("data", collection="other")
    assert f"**{named}**" in shown(page)


def test_an_index_job_says_what_it_does_before_its_first_batch(tmp_path: Path) -> None:
    kept = {"title": "t", "collection": "c", "command": ["index", "x.csv"], "started": time.time(), "pid": 0}
    (tmp_path / "job.json").write_text(json.dumps(kept))
    assert how_far(Job.read(tmp_path)).startswith("reading files and loading the model, ")
    event = {"stage": "embedding", "done": 0, "total": None, "unit": "documents", "at": time.time()}
    (tmp_path / "events.jsonl").write_text(json.dumps(event) + "\n")
    assert how_far(Job.read(tmp_path)).startswith("embedding: the first documents, ")


SHOWN = "<b>b<b> **bold** [x](javascript:alert(1)) $x^2$ :red[y] `code`"
"""Markup that is no path of the server."""


def test_the_notes_of_a_job_are_on_its_card(pages: Pages) -> None:
    pages.collection("shop")
    report = {"added": 0, "replaced": 20, "unchanged": 0, "deleted": 0, "duplicate_ids": 0, "cut_tokens": 0}
    told = [
        "rows.csv: text: text (by name)",
        "note: stars changes from type integer to text, because 'many' of document '3' does not fit",
        Message(f"note: the column {SHOWN} becomes the text: choose the text with {arg('text')}").marked,
        {"stage": "embedding", "done": 20, "total": 20, "unit": "documents"},
    ]
    said = f"note: {SHOWN}\nindex: done\nnote: {SHOWN}\nnote: `sonde runs update {pages.shelf}/x.sonde RUN` adds them\n"
    job = kept_job(pages, ["index", "rows.csv"], events=told, stderr=said, stdout=[report])
    assert job.notes == [
        "stars changes from type integer to text, because 'many' of document '3' does not fit",
        f"the column {SHOWN} becomes the text: choose the text with Text",
        SHOWN,
        "the page of each run adds them",
    ]
    page = pages.open("data", collection="shop")
    texts = [each.value for each in page.text]
    assert texts[texts.index("20 documents replaced.") + 1 :][:4] == [f"Note: {note}" for note in job.notes]
    unread(page, SHOWN)
    page = pages.open("labels", collection="shop")
    assert "Note: " not in shown(page)
    page.session_state[WATCHED] = job.id
    assert f"Note: {SHOWN}" in [each.value for each in page.run().text]
    unread(page, SHOWN)


def test_of_many_notes_a_card_shows_the_first(pages: Pages) -> None:
    pages.collection("shop")
    kept_job(pages, ["label", "shop.sonde"], stderr="".join(f"note: number {n % 8}\n" for n in range(16)))
    page = pages.open("data", collection="shop")
    said = [f"Note: number {n}" for n in range(5)]
    assert [each.value for each in page.text][:7] == ["Done.", *said, "and 3 more in the output"]
