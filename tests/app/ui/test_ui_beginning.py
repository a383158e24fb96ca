"""The first page and what follows a first collection: demo, upload, jobs in the background, links that lead on."""
# ruff: noqa: F811  (a fixture that is imported)

import json
import re
import socket
import time
from pathlib import Path
from typing import Any

import pytest
from command_line import command
from served_ui import weightless
from ui_overview import Started, started  # noqa: F401  (a fixture)
from ui_pages import Pages, pages, shown  # noqa: F401  (a fixture)

from sonde.app.samples import SAMPLES
from sonde.app.ui.jobs import Job, Jobs
from sonde.app.ui.jobs.panel import WATCHED

PATIENCE = 60.0


def wait_for(condition: Any) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.05)


def sent(pages: Pages, name: str, content: bytes) -> Any:
    page = pages.open("data")
    uploader: Any = page.get("file_uploader")[0]
    uploader.set_value([(name, content, "text/plain")]).run()
    assert not page.exception
    return page


def test_the_first_page_says_what_sonde_is_and_offers_the_demo_and_an_upload(
    pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[Any, ...]] = []
    monkeypatch.setattr(Jobs, "start", lambda _, *given: asked.append(given))
    page = pages.open("")
    assert [title.value for title in page.title] == ["Sonde"]
    assert "Sonde finds texts by meaning." in shown(page)
    assert len(page.get("file_uploader")) == 1
    page.button(key="demo").click().run()
    [(title, name, command, then)] = asked
    to = str(pages.shelf / "demo.sonde")
    assert (title, name) == ("Create demo", "demo")
    assert command == ["index", str(SAMPLES / "tickets.csv"), "--to", to, "--device", "cpu", "--json"]
    assert [(each, words[:2]) for each, words in then] == [("Map", ("map", to)), ("Topics", ("topics", to))]
    assert (SAMPLES / "tickets.csv").read_text().count("\n") >= 248


def test_who_may_only_read_is_told_so(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sonde.app.ui.data.page.may_write", lambda: False)
    page = pages.open("")
    assert "you need a key with write rights" in shown(page)
    assert not page.button and not page.get("file_uploader")


@pytest.mark.parametrize("address", ["data", ""])
def test_a_form_that_was_begun_outlives_the_first_collection_of_somebody_else(pages: Pages, address: str) -> None:
    page = pages.open(address)
    uploader: Any = page.get("file_uploader")[0]
    uploader.set_value([("mine.csv", b"text\nA parcel is late.\nThe battery died.\n", "text/csv")]).run()
    page.text_input(key="new-name").set_value("renamed").run()
    pages.collection("theirs")
    page.run()
    assert not page.exception
    assert page.text_input(key="new-name").value == "renamed"
    assert page.button(key="new-start").label == "Index 2 rows"
    assert [title.value for title in page.title] == ["Data" if address else "Sonde"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("photo.csv", b"\x89PNG\r\n\x1a\n" + bytes(range(128, 256)) * 20),
        ("noise.txt", bytes(range(128, 256)) * 20),
        ("empty.csv", b"text,stars\n,1\n,2\n,3\n,1\n,1\n,3\n"),
    ],
)
def test_a_file_without_text_is_not_offered_for_indexing(pages: Pages, name: str, content: bytes) -> None:
    page = sent(pages, name, content)
    assert [button.key for button in page.button if button.key == "new-start"] == []
    said = " ".join(error.value for error in page.error)
    assert re.search("no (readable )?text", said) and "Choose another" in said, said


def test_what_follows_an_index_run_starts_in_the_background_and_blocks_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", weightless()["PYTHONPATH"])
    jobs = Jobs(tmp_path / "shelf" / ".sonde-jobs")
    source, to = tmp_path / "rows.jsonl", str(tmp_path / "shelf" / "rows.sonde")
    source.write_text("".join(json.dumps({"text": f"parcel number {n}"}) + "\n" for n in range(30)))
    then = (("No command", ("no-such-command",)), ("Count", ("count", to)))
    jobs.start("Index", "rows", ["index", str(source), "--to", to], then)
    wait_for(lambda: len(jobs.all()) == 3 and all(job.state != "running" for job in jobs.all()))
    last, failed, first = jobs.all()
    assert [(job.title, job.state, job.background) for job in (first, failed, last)] == [
        ("Index", "done", False), ("No command", "failed", True), ("Count", "done", True),
    ]  # fmt: skip
    assert first.then == then and last.then == ()


def test_a_job_in_the_background_lets_others_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = Jobs(tmp_path / ".sonde-jobs")
    monkeypatch.setattr("sonde.app.ui.jobs.queue._launch", lambda job: job)
    monkeypatch.setattr(Job, "state", "running")
    behind = jobs.start("Map", "rows", ["map", "rows.sonde"], background=True)
    assert jobs.running("rows") is None
    found = jobs.behind("rows")
    assert found is not None and found.id == behind.id
    front = jobs.start("Label", "rows", ["label", "rows.sonde"])
    running = jobs.running("rows")
    assert running is not None and running.id == front.id


def test_a_port_in_use_is_said_before_any_address(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, pages: Pages
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        found = command(capsys, monkeypatch)("ui", pages.shelf, "--port", str(port))
    assert found.code == 1
    assert found.said == [f"sonde: port {port} of 127.0.0.1 is in use: choose another with --port"]


def test_how_a_job_ended_stays_when_the_page_is_drawn_again_at_once(
    pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages.collection()
    folder = pages.shelf / ".sonde-jobs" / "000000000000001-abcdef"
    folder.mkdir(parents=True)
    kept = {"title": "Count", "collection": "reviews", "command": ["count"], "started": 1.0, "pid": 0}
    (folder / "job.json").write_text(json.dumps(kept))
    (folder / "exit").write_text("0")
    page = pages.open("labels", collection="reviews")
    page.session_state[WATCHED] = folder.name
    for _ in range(2):
        assert "Count: done" in shown(page.run())
    monkeypatch.setattr("sonde.app.ui.jobs.panel.TOLD", 0.0)
    assert "Count: done" not in shown(page.run())
