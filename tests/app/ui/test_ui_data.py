"""The Data page: what it shows, what it starts, what it refuses, and what it does with names from outside."""
# ruff: noqa: F811  (a fixture that is imported)

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from served_ui import weightless
from streamlit.testing.v1 import AppTest
from ui_pages import MARKUP, ROWS, Pages, pages, shown, unread  # noqa: F401  (pages: a fixture)

from sonde.app.ui.jobs import Job, Jobs
from sonde.indexer.store.lock import writer_lock
from sonde.indexer.upkeep.info import quick_look

PATIENCE = 60.0


@pytest.fixture
def jobs(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> Iterator[Jobs]:
    monkeypatch.setenv("PYTHONPATH", weightless()["PYTHONPATH"])
    monkeypatch.setattr("sonde.indexer.store.collection.is_local", lambda *_: True)
    jobs = Jobs(pages.shelf / ".sonde-jobs")
    yield jobs
    for job in jobs.all():
        if job.alive():
            psutil.Process(job.pid).kill()


def ended(jobs: Jobs) -> Job:
    end = time.monotonic() + PATIENCE
    while (job := jobs.all()[0]).state == "running":
        assert time.monotonic() < end
        time.sleep(0.05)
    return job


def csv(path: Path, rows: int = 40) -> Path:
    lines = [f"{n},t{n},some words {n},{n % 5},2024-01-{n % 28 + 1:02}" for n in range(rows)]
    path.write_text("\n".join(["id,title,text,stars,day", *lines]) + "\n")
    return path


def send(page: AppTest, *files: tuple[str, bytes]) -> AppTest:
    uploader: Any = page.get("file_uploader")[0]
    uploader.set_value([(*file, "text/csv") for file in files]).run()
    assert not page.exception
    return page


def switch(page: AppTest, number: int, value: str) -> None:
    group: Any = page.get("button_group")[number]
    group.set_value(value).run()


def press(page: AppTest, key: str) -> AppTest:
    page.button(key=key).click().run()
    assert not page.exception, page.exception
    return page


def keys(page: AppTest) -> list[str]:
    return [str(button.key) for button in page.button]


def table(page: AppTest, number: int = 0) -> list[dict[str, object]]:
    return page.dataframe[number].value.to_dict("records")  # type: ignore[no-any-return]


def test_the_first_collection_is_made_from_a_file_that_is_sent(pages: Pages, jobs: Jobs, tmp_path: Path) -> None:
    page = pages.open("data")
    assert "Sonde finds texts by meaning." in shown(page)
    send(page, ("../../Reviews 2024.csv", csv(tmp_path / "a.csv").read_bytes().replace(b",4,", b",**four**,", 1)))
    assert "40 rows" in shown(page).replace("**", "")
    assert "Kept as text: stars ('**four**' is not an integer)" in shown(page).replace("\\", "")
    assert table(page)[7] == {"id": "7", "title": "t7", "text": "some words 7", "stars": "2", "day": "2024-01-08"}
    assert page.multiselect(key="new-text").value == ["text"]
    assert page.multiselect(key="new-metadata").value == ["stars", "day"]
    assert page.selectbox(key="new-title").value == "title"
    assert page.selectbox(key="new-id").value == "id"
    assert page.text_input(key="new-name").value == "Reviews 2024"
    assert "about 40 documents in 40 passages" in shown(page)
    page.multiselect(key="new-metadata").set_value(["stars"])
    page.multiselect(key="new-retyped").set_value(["stars"]).run()
    assert page.selectbox(key="new-type-stars").value == "integer"
    page.text_input(key="new-name").set_value("reviews.sonde").run()
    page.checkbox(key="new-further").uncheck().run()
    press(page, "new-start")
    job = ended(jobs)
    assert job.state == "done", job.error
    assert (job.title, job.collection) == ("Create reviews", "reviews")
    [upload] = [word for word in job.command if "uploads" in word]
    assert Path(upload).name == "Reviews 2024.csv"
    assert Path(upload).parent.parent == jobs.folder / "uploads"
    assert job.command[2:] == (
        *("--to", str(pages.shelf / "reviews.sonde"), "--type", "stars=integer", "--leave-out", "day"),
        *("--device", "cpu", "--json"),
    )  # fmt: skip
    page = pages.open("data")
    [row] = table(page)
    assert (row["Name"], row["Documents"], row["Model"], row["State"]) == ("reviews", 40, "fake", "ready")
    assert "40 documents added." in shown(page)
    said = "sonde index 'Reviews 2024.csv' --to reviews.sonde --type stars=integer --leave-out day --device cpu --json"
    assert [code.value for code in page.code] == [said]  # no folder of the server
    press(page, f"forget-{job.id}")
    assert jobs.all() == []


def test_a_folder_of_this_machine_is_named(pages: Pages, jobs: Jobs, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    for number in range(3):
        (tmp_path / "notes" / f"{number}.md").write_text(f"# Note {number}\n\nSome text.")
    page = pages.open("data")
    switch(page, 0, "A path on this machine")
    page.text_input(key="new-path").set_value(str(tmp_path / "nots")).run()
    assert "does not exist (did you mean 'notes'?)" in page.error[0].value.replace("\\", "")
    page.text_input(key="new-path").set_value(str(tmp_path / "notes")).run()
    assert "3 files" in shown(page).replace("**", "")
    assert "Each file is one document" in shown(page)
    page.checkbox(key="new-further").uncheck().run()
    press(page, "new-start")
    assert ended(jobs).state == "done"
    assert quick_look(pages.shelf / "notes.sonde").documents == 3
    page = pages.open("data", do="Add texts")
    switch(page, 1, "A path on this machine")
    (tmp_path / "notes" / "0.md").unlink()
    page.text_input(key="add-path").set_value(str(tmp_path / "notes")).run()
    page.checkbox(key="add-sync").check().run()
    assert "contains only what is in these files" in shown(page)
    press(page, "add-start")
    assert not page.error  # to the page that shows the job, though the address names the task
    assert (ended(jobs).output[0]["deleted"], ended(jobs).command[-4:-3]) == (1, ("--sync",))
    assert "2 documents unchanged, 1 document deleted." in shown(pages.open("data"))


def test_who_does_not_sit_at_this_machine_names_no_paths(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SONDE_UI", json.dumps({"shelf": str(pages.shelf), "local": False, "device": "cpu"}))
    page = pages.open("data")
    assert not page.get("button_group")
    assert len(page.get("file_uploader")) == 1


def test_no_text_column_a_wrong_file_and_rows_that_are_skipped(pages: Pages, jobs: Jobs) -> None:
    page = pages.open("data")
    send(page, ("numbers.csv", b"a,b\n1,2\n3,4\n"))
    assert "No column looks like text. Choose one." in shown(page)
    assert "new-start" not in keys(page)
    page.multiselect(key="new-text").set_value(["b"]).run()
    assert "new-start" in keys(page)
    press(page, "new-again")
    send(page, ("broken.parquet", b"PAR1 and no more"))
    assert "is not a valid Parquet file, or is truncated" in page.error[0].value.replace("\\", "")
    press(page, "new-again")
    send(page, ("a.jsonl", b'{"text": "one"}\n{"text": ""}\n{broken\n{"text": "two"}\n'))
    assert "**3 of 4 rows can be read** · First problem: line 3" in shown(page).replace("\\", "")
    page.checkbox(key="new-further").uncheck().run()
    press(page, "new-start")
    assert ended(jobs).state == "done"
    page = pages.open("data")
    assert "2 rows skipped" in [expander.label for expander in page.expander]
    assert [row["Where"] for row in table(page, 1)] == ["line 2", "line 3"]


def test_a_name_that_exists_or_cannot_be_one(pages: Pages, jobs: Jobs, tmp_path: Path) -> None:
    pages.collection("reviews")
    page = send(pages.open("data", do="New collection"), ("reviews.csv", csv(tmp_path / "a.csv").read_bytes()))
    assert "The collection reviews already exists" in shown(page)
    assert "new-start" not in keys(page)
    for name in ("../x", "a/b", ".x"):
        page.text_input(key="new-name").set_value(name).run()
        assert "is not a valid collection name" in page.error[0].value
        assert "new-start" not in keys(page)
    page.text_input(key="new-name").set_value("reviews").run()
    press(page, "add-instead")
    assert page.query_params["do"] == "Add texts"
    assert "reviews.csv (" in shown(page)
    assert "add-start" in keys(page)


def test_a_second_collection_is_made_and_shown(pages: Pages, jobs: Jobs, tmp_path: Path) -> None:
    pages.collection("first")
    page = send(pages.open("data", do="New collection"), ("reviews.csv", csv(tmp_path / "a.csv").read_bytes()))
    page.checkbox(key="new-further").uncheck().run()
    press(page, "new-start")
    assert not page.error
    assert ended(jobs).state == "done"
    assert "do" not in page.query_params
    page.run()
    assert (page.session_state["collection"], page.session_state["do"]) == ("reviews", "About")
    assert "40 documents added." in shown(page)


def test_models_that_are_not_here(pages: Pages, tmp_path: Path) -> None:
    page = send(pages.open("data"), ("a.csv", csv(tmp_path / "a.csv").read_bytes()))
    page.selectbox(key="new-model").set_value("another").run()
    for name, said in {
        "all-MiniLM-L6": "did you mean 'all-MiniLM-L6-v2'?",
        "/no/such/folder": "there is no model folder",
        "org/not-here": "is not on this machine. The job will download it",
    }.items():
        page.text_input(key="new-other").set_value(name).run()
        assert said in shown(page).replace("\\", "")
        assert ("new-start" in keys(page)) == (name == "org/not-here")


def test_deleting_by_filter_is_counted_first(pages: Pages, jobs: Jobs) -> None:
    pages.collection("reviews")
    page = pages.open("data", do="Delete")
    assert "stars (integer)" in shown(page).replace("\\", "")
    assert page.text_input(key="delete-where").set_value("stars <").run().error
    page.text_input(key="delete-where").set_value("stars <= 2").run()
    assert "Delete 2 documents …" in [each.proto.popover.label for each in page.get("popover")]
    assert [row["id"] for row in table(page, 1)] == ["1", "3"]
    assert "Delete 2 documents of reviews? You cannot undo this." in shown(page)
    press(page, "delete-passing")
    assert ended(jobs).output == [{"deleted": 2}]
    assert "2 documents deleted." in shown(pages.open("data"))
    assert quick_look(pages.shelf / "reviews.sonde").documents == 1


def test_deleting_by_ids_that_look_like_options(pages: Pages, jobs: Jobs) -> None:
    pages.collection("reviews", [*ROWS, {**ROWS[0], "id": "--where"}])
    page = pages.open("data", do="Delete")
    switch(page, 1, "Ids")
    page.text_area(key="delete-ids").set_value("--where\n2\n 2 \n").run()
    press(page, "delete-named")
    assert ended(jobs).output == [{"deleted": 2}], ended(jobs).error
    page = pages.open("data", do="Delete")
    switch(page, 1, "Ids")
    page.text_area(key="delete-ids").set_value("1\nnone").run()
    press(page, "delete-named")
    assert ended(jobs).state == "failed"
    assert "there is no document with the id 'none': nothing was changed" in shown(pages.open("data")).replace("\\", "")


def test_a_collection_is_deleted_when_its_name_is_typed(pages: Pages, jobs: Jobs) -> None:
    made = pages.collection("reviews")
    pages.collection("other")
    page = pages.open("data", collection="reviews", do="Delete")
    page.text_input(key="delete-name").set_value("review")
    submit(page)
    assert "Not deleted. Type reviews" in shown(page)
    with writer_lock(made.path):
        assert [row["State"] for row in table(pages.open("data"))] == ["ready", "being written"]
        page.text_input(key="delete-name").set_value("reviews")
        submit(page)
        assert "Another process is writing to this collection." in shown(page)
    page.text_input(key="delete-name").set_value("reviews")
    submit(page)
    assert [row["Name"] for row in table(page)] == ["other"]
    assert not page.sidebar.warning
    assert not made.path.exists()


def submit(page: AppTest) -> None:
    next(button for button in page.button if button.label == "Delete the collection").click().run()
    assert not page.exception


def test_health_finds_mends_and_tidies(pages: Pages, jobs: Jobs) -> None:
    path = pages.collection("reviews").path
    page = press(pages.open("data", do="Health"), "health-verify")
    assert ended(jobs).state == "done"
    page = pages.open("data", do="Health")
    assert "No problems found" in shown(page)
    for file in (path / "lexical").rglob("state.json"):
        file.unlink()
    press(page, "health-verify")
    assert ended(jobs).state == "failed"
    page = pages.open("data", do="Health")
    assert "1 problem" in shown(page)
    assert "lexical: the lexical index is missing or damaged" in shown(page)
    press(page, "health-repair")
    assert ended(jobs).state == "done"
    page = pages.open("data", do="Health")
    assert "The collection was repaired after this check. Verify it again." in shown(page)
    press(page, "health-compact")
    assert ended(jobs).state == "done"
    assert "Removed 0 deleted passages." in shown(pages.open("data"))


def running(jobs: Jobs, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Job:
    """A job that has committed 256 documents, and waits as long as the file hold exists."""
    monkeypatch.setenv("SONDE_HOLD", str(tmp_path / "hold"))
    (tmp_path / "hold").touch()
    source = csv(tmp_path / "rows.csv", 2_000)
    to = str(jobs.folder.parent / "reviews.sonde")
    job = jobs.start(f"Add to {MARKUP}", "reviews", ["index", str(source), "--to", to, "--json"])
    end = time.monotonic() + PATIENCE
    while not (progress := Job.read(job.folder).progress) or progress.done < 256:
        assert time.monotonic() < end
        time.sleep(0.02)
    return job


def test_a_collection_that_a_cancelled_job_never_made_is_not_called_kept(pages: Pages, jobs: Jobs) -> None:
    pages.collection("reviews")
    folder = jobs.folder / f"{10**13:015d}-abcdef"
    folder.mkdir(parents=True)
    kept = {
        "title": "Create late",
        "collection": "late",
        "command": ["index", "x.csv"],
        "started": time.time() - 120,
        "pid": 0,
    }
    (folder / "job.json").write_text(json.dumps(kept))
    assert Job.read(folder).state == "killed"
    page = pages.open("data")
    assert "The process was killed. Nothing was stored or changed." in shown(page)


def test_a_running_job_is_seen_from_any_session_cancelled_and_resumed(
    pages: Pages, jobs: Jobs, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pages.collection("reviews")
    job = running(jobs, monkeypatch, tmp_path)
    page = pages.open("data")
    for _ in range(2):
        page = pages.open("data")
        assert f"cancel-{job.id}" in keys(page)
        unread(page)
        assert table(page)[0]["State"] == job.title
    for task, said in {
        "Add texts": "is running",
        "Delete": "Wait until it ends, or cancel it",
        "Health": "is running",
    }.items():
        assert said in shown(pages.open("data", do=task)).replace("\\", "")
    press(page, f"cancel-{job.id}")
    assert ended(jobs).state == "cancelled"
    page = pages.open("data")
    assert "Cancelled. What was committed is kept." in shown(page)
    assert quick_look(jobs.folder.parent / "reviews.sonde").documents == 256
    (tmp_path / "hold").unlink()
    press(page, f"resume-{job.id}")
    assert ended(jobs).state == "done"
    assert [each.id for each in jobs.all()] != [job.id]
    assert quick_look(jobs.folder.parent / "reviews.sonde").documents == 2_000


def test_a_missing_model_and_an_empty_collection(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    made = pages.collection("reviews")
    monkeypatch.setattr("sonde.indexer.store.collection.StoredCollection.encoder_at_hand", False)
    page = pages.open("data", do="About")
    assert "The model of this collection, fake, is not on this machine." in shown(page)
    page = pages.open("data", do="Add texts")
    assert not page.get("file_uploader")
    monkeypatch.undo()
    made.delete(where="stars > 0")
    assert quick_look(made.path).documents == 0


def test_metadata_and_skipped_rows_are_shown_as_text(pages: Pages, tmp_path: Path) -> None:
    path = pages.collection("reviews", [{"id": "1", "text": "x", MARKUP[:40]: "y"}]).path
    (path / "skipped.jsonl").write_text(json.dumps({"origin": MARKUP, "reason": MARKUP}) + "\n")
    page = pages.open("data", do="About")
    unread(page)
    assert "1 row skipped in the last run" in [expander.label for expander in page.expander]
    page = send(pages.open("data", do="New collection"), (f"{MARKUP}.csv", f'text,"{MARKUP}"\nhello,2\n'.encode()))
    unread(page)


def test_a_thousand_files_with_names_that_mean_mischief(pages: Pages, jobs: Jobs) -> None:
    page = pages.open("data")
    names = ["../../x.csv", "/etc/x.csv", "a\0b.csv", "x.csv", "X.csv", "é" * 400 + ".csv", "C:\\x.csv"]
    send(page, *((name, b"text\nhello\n") for name in names))
    [folder] = (jobs.folder / "uploads").iterdir()
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        ["x.csv", "x-2.csv", "ab.csv", "x-3.csv", "X-4.csv", "é" * 58 + ".csv", "x-5.csv"]
    )
    assert "7 rows" in shown(page).replace("**", "")


def test_a_job_without_any_sense_breaks_no_page(pages: Pages, jobs: Jobs) -> None:
    pages.collection("reviews")
    for number, (command, out) in enumerate(
        [
            ([], ""),
            (["index"], "7\n"),
            (["index"], '{"added": 1}\n'),
            (["compact"], "[]\n"),
            (["verify"], '{"part": "x"}\n'),
        ]
    ):
        folder = jobs.folder / f"{number:015d}-abcdef"
        folder.mkdir(parents=True)
        kept = {"title": MARKUP, "collection": "reviews", "command": command, "started": 1, "pid": 0}
        (folder / "job.json").write_text(json.dumps(kept))
        (folder / "stdout.jsonl").write_text(out)
        (folder / "exit").write_text(str(number % 2))
    page = pages.open("data", do="Health")
    unread(page)
    assert "An unexpected error occurred" not in shown(page)
    assert replace(jobs.all()[0]).title == MARKUP
