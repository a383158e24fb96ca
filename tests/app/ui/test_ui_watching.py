"""The Data page, What is new: what it starts, and what a watch found."""
# ruff: noqa: F811  (a fixture that is imported)

import datetime

import streamlit as st
from ui_overview import kept_job
from ui_pages import MARKUP, Pages, pages, shown, unread  # noqa: F401  (pages: a fixture)

from sonde.app.ui.jobs import Jobs

OLD, NEW = datetime.date(2026, 10, 5), datetime.date(2026, 11, 5)


def made(pages: Pages) -> object:
    rows = [{"id": f"d{n}", "text": f"parcel late order{n} {MARKUP}", "day": OLD} for n in range(120)]
    rows += [{"id": f"n{n}", "text": f"voucher voucher voucher refund{n} {MARKUP}", "day": NEW} for n in range(12)]
    return pages.collection("orders", rows)


def test_a_watch_is_started_with_what_was_chosen(pages: Pages, monkeypatch) -> None:
    made(pages)
    started: list[tuple[str, ...]] = []

    def start(self: Jobs, title: str, collection: str, command: tuple[str, ...]) -> object:
        started.append(tuple(command))
        st.stop()

    monkeypatch.setattr(Jobs, "start", start)
    page = pages.open("data", do="What is new")
    assert "Nothing compared yet" in shown(page)
    page.selectbox(key="watch-since").set_value("a date").run()
    page.date_input(key="watch-day").set_value(datetime.date(2026, 11, 1)).run()
    page.button(key="watch-start").click().run()
    [command] = started
    assert command[0] == "watch"
    assert command[2:] == ("--name", "watch", "--since", "2026-11-01", "--date", "day", "--device", "cpu")


def test_what_a_watch_found_is_shown_with_its_documents(pages: Pages) -> None:
    collection = made(pages)
    found = collection.watch("2026-11-01")  # type: ignore[attr-defined]
    assert "new" in {change.kind for change in found.changes}
    page = pages.open("data", do="What is new")
    said = shown(page)
    assert "Since 2026-11-01: 12 new documents and 120 old" in said.replace("\\", "")
    assert "voucher voucher voucher refund" in said
    unread(page)


def test_a_running_job_is_drawn_once(pages: Pages) -> None:
    collection = made(pages)
    job = kept_job(pages, ["watch", "orders.sonde"], collection="orders", code=None)
    for runs in (0, 1):
        page = pages.open("data", do="What is new")
        assert not page.error
        assert [button.key for button in page.button].count(f"cancel-{job.id}") == 1
        if not runs:
            assert page.button(key="watch-start").disabled
            collection.watch("2026-11-01")  # type: ignore[attr-defined]
