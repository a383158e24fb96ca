"""The Data page, Check: what it starts, and what a check found, with its reasons."""
# ruff: noqa: F811  (a fixture that is imported)

import json
from typing import Any

import streamlit as st
from ui_overview import kept_job
from ui_pages import MARKUP, Pages, pages, shown, unread  # noqa: F401  (pages: a fixture)

from sonde.app.ui.jobs import Jobs

TEXTS = ["Broken.", f"Write to ann@example.org about it {MARKUP}", "The screen broke on the first day.", "It was late."]


def made(pages: Pages) -> object:
    rows = [{"id": f"d{n} {MARKUP}", "text": text, "kind": "phone"} for n, text in enumerate(TEXTS)]
    return pages.collection("reviews", rows)


def test_a_check_is_started_with_what_was_chosen(pages: Pages, monkeypatch) -> None:
    made(pages)
    started: list[tuple[str, ...]] = []

    def start(self: Jobs, title: str, collection: str, command: tuple[str, ...]) -> object:
        started.append(tuple(command))
        st.stop()

    monkeypatch.setattr(Jobs, "start", start)
    page = pages.open("data", do="Check")
    assert "Not checked yet" in shown(page)
    page.selectbox(key="check-label").set_value("kind").run()
    page.text_input(key="check-region").set_value("US").run()
    page.button(key="check-start").click().run()
    [command] = started
    assert command[0] == "check"
    assert command[2:] == ("--name", "check", "--label", "kind", "--region", "US", "--device", "cpu")


def test_what_a_check_found_is_shown_with_its_reasons(pages: Pages) -> None:
    collection = made(pages)
    collection.check(kinds=["short", "cut", "personal data"])  # type: ignore[attr-defined]
    page = pages.open("data", do="Check")
    said = shown(page)
    assert "Findings in 2 of 4 documents" in said
    assert "Nothing found: cut off." in said
    links = [json.loads(json.dumps(each.proto.label)) for each in page.get("page_link")]
    assert {"very short: 1", "personal data: 1"} <= set(links)
    assert "Broken." in said
    assert "1 word" in said
    unread(page)
    page.selectbox(key="finding").set_value("personal data").run()
    assert "e-mail address" in shown(page)
    unread(page)


def test_a_check_of_what_has_changed_since_says_so(pages: Pages) -> None:
    collection: Any = made(pages)
    collection.check(kinds=["short", "cut", "personal data"])
    assert "has changed since" not in shown(pages.open("data", do="Check"))
    collection.delete([f"d0 {MARKUP}"])
    said = shown(pages.open("data", do="Check"))
    assert "Findings in 2 of 4 documents" in said
    assert "1 document now: the collection has changed since. Check it again." in said
    assert "No findings now: very short, cut off." in said


def test_copies_are_told_apart_and_deleted_after_a_second_click(pages: Pages, monkeypatch) -> None:
    long = " ".join(f"word{n}" for n in range(40))
    texts = [long, long, f"{long} more", long.upper(), "The screen broke."]
    collection = pages.collection("reviews", [{"id": f"d{n}", "text": text} for n, text in enumerate(texts)])
    collection.check(kinds=["duplicate"])
    started: list[tuple[str, ...]] = []

    def start(self: Jobs, title: str, collection: str, command: tuple[str, ...]) -> object:
        started.append(tuple(command))
        st.stop()

    monkeypatch.setattr(Jobs, "start", start)
    page = pages.open("data", do="Check")
    assert "Duplicates: 2 exact, 1 near" in shown(page)
    assert "copies-delete" not in [button.key for button in page.button]
    page.session_state["popover-copies-0"] = True
    page.run()
    assert "Delete 2 documents of reviews? You cannot undo this." in shown(page)
    page.radio(key="copies-which").set_value("Exact and near copies").run()
    assert "Delete 3 documents of reviews? You cannot undo this." in shown(page)
    page.radio(key="copies-which").set_value("Exact copies").run()
    page.button(key="copies-delete").click().run()
    [command] = started
    assert (command[0], command[2:]) == ("delete", ("--json", "--", "d1", "d3"))
    unread(page)


def test_a_running_job_is_drawn_once(pages: Pages) -> None:
    collection = made(pages)
    job = kept_job(pages, ["check", "reviews.sonde"], collection="reviews", code=None)
    for runs in (0, 1):
        page = pages.open("data", do="Check")
        assert not page.error
        assert [button.key for button in page.button].count(f"cancel-{job.id}") == 1
        if not runs:
            assert page.button(key="check-start").disabled
            collection.check(kinds=["short"])  # type: ignore[attr-defined]
