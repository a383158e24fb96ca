"""The drawer of one document in a real Chromium: the same on every page, and the address opens it."""

# ruff: noqa: F811  (fixtures that are imported)

import re
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from fake_encoder import FakeEncoder
from in_chromium import activate, chromium  # noqa: F401  (fixture)
from playwright.sync_api import BrowserContext, Locator, expect
from served_ui import Server, Visit, context, serving, visiting  # noqa: F401  (fixture)

from sonde.app.api import Collection, index

HOSTILE = "<img src=x onerror=alert(1)> [link](http://evil.example) :material/bug_report: </div>"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("drawer")) as server:
        yield server


@pytest.fixture
def visit(context: BrowserContext, server: Server) -> Iterator[Visit]:
    with visiting(context, server) as visit:
        yield visit


@pytest.fixture
def shop(server: Server, request: pytest.FixtureRequest) -> Collection:
    """A collection of the test's own, which is named after it."""
    encoder: Any = FakeEncoder()
    words = ("battery died", "parcel late", "screen broke")
    rows = [
        {"id": f"t{n}", "title": HOSTILE if n == 3 else f"Ticket {n}", "text": f"The {words[n % 3]}, number {n}.",
         "stars": n % 5}
        for n in range(30)
    ]  # fmt: skip
    made = index(
        rows, server.shelf / f"{request.node.name}.sonde", id="id", title="title", text="text", encoder=encoder
    )
    made.label(["battery", "parcel"], name="kinds", engine="similarity")
    made.tag("late", where="stars = 1")
    return made


def drawer(visit: Visit) -> Locator:
    found = visit.page.get_by_role("dialog")
    expect(found.get_by_text("Nearest documents")).to_be_visible()
    visit.settle()
    return found


def until(visit: Visit, said: Callable[[], object], expected: object) -> None:
    """Wait until the collection holds what was asked for on the page: the write follows the click."""
    end = time.monotonic() + 60
    while said() != expected and time.monotonic() < end:
        visit.page.wait_for_timeout(50)
    visit.settle()
    assert said() == expected


def docs(visit: Visit) -> list[str]:
    return parse_qs(urlsplit(visit.page.url).query).get("doc", [])


@pytest.mark.long
def test_a_hit_opens_judged_corrected_tagged_and_by_its_address(visit: Visit, shop: Collection) -> None:
    page = visit.go(f"/search?collection={shop.path.stem}&q=battery+died")
    opener = page.get_by_test_id("stMain").get_by_role("button", name="Details", exact=True).first
    expect(opener).to_be_visible()
    activate(opener, opens=page.get_by_role("dialog"))
    shown = drawer(visit)
    (id,) = docs(visit)
    expect(shown.locator("mark.sonde").filter(has_text="battery")).to_be_visible()
    expect(shown.get_by_text("Why it answers 'battery died'")).to_be_visible()
    expect(shown.get_by_text(f"id {id}", exact=True)).to_be_visible()
    activate(shown.get_by_role("button", name="Relevant", exact=True))
    until(visit, lambda: shop.judgements().of("battery died"), {id: 1})
    shown.get_by_label("Tags").fill("look again")
    shown.get_by_label("Tags").press("Enter")
    shown.get_by_label("Tags").press("Tab")  # its list of tags hides the rest from a screen reader
    until(visit, lambda: [each.name for each in shop.memberships(id) if each.run.kind == "tag"][:1], ["look again"])
    expect(shown.get_by_text("look again")).to_be_visible()
    box = shown.get_by_role("combobox", name=re.compile("Correct the label in kinds"))
    box.click()
    page.get_by_role("option", name="parcel").click()
    expect(shown.get_by_text("You corrected this label.")).to_be_visible()
    assert [(each.id, each.labels) for each in shop.corrections("kinds")] == [(id, ("parcel",))]
    code = page.locator("code").filter(has_text=f"doc={id}")
    activate(shown.get_by_role("button", name=re.compile("^Copy link|Copy link$")), opens=code)
    link = code.inner_text()
    page.keyboard.press("Escape")
    page.goto("about:blank")
    page.goto(link)
    shown = drawer(visit)
    expect(shown.get_by_text(f"id {id}", exact=True)).to_be_visible()
    expect(shown.get_by_text("look again")).to_be_visible()
    activate(shown.get_by_role("button", name="Close"))
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page).not_to_have_url(re.compile("doc="))
    visit.check()


def test_a_corrected_label_is_called_so_instead_of_certain(visit: Visit, shop: Collection) -> None:
    shop.correct({"t2": "parcel"}, "kinds")
    shop.label(["battery", "parcel"], name="kinds", engine="similarity", replace=True)
    visit.go(f"/search?collection={shop.path.stem}&doc=t2")
    expect(drawer(visit).get_by_text("parcel · corrected")).to_be_visible()
    page = visit.go(f"/labels?collection={shop.path.stem}&label=parcel")
    expect(page.get_by_text("corrected", exact=True)).to_be_visible()
    visit.check()


def test_a_document_is_moved_to_another_group_and_locked_there(visit: Visit, shop: Collection) -> None:
    shop.cluster(k=3, name="three", seed=0)
    shop.make_taxonomy("three", "ours")
    groups = {group.number: group.name for group in shop.taxonomy("ours").groups}
    (now,) = [each.number for each in shop.memberships("t1") if each.run.kind == "taxonomy"]
    other = next(number for number in groups if number != now)

    def group() -> list[int]:
        return [each.number for each in shop.memberships("t1") if each.run.kind == "taxonomy"]

    page = visit.go(f"/search?collection={shop.path.stem}&doc=t1")
    box = drawer(visit).get_by_role("combobox", name=re.compile("Group in ours"))
    expect(box).to_have_value(groups[now])
    box.click()
    page.get_by_role("option", name=groups[other], exact=True).click()
    until(visit, group, [other])
    expect(box).to_have_value(groups[other])
    assert shop.taxonomy("ours").locked == 1
    assert shop.taxonomy_log("ours")[0].by == "web UI"
    box.click()
    page.get_by_role("option", name="no group", exact=True).click()
    until(visit, lambda: shop.taxonomy("ours").outside, 1)
    visit.check()


def test_neighbours_lead_on_and_back_and_nothing_is_markup(visit: Visit, shop: Collection) -> None:
    page = visit.go(f"/labels?collection={shop.path.stem}&doc=t3")
    shown = drawer(visit)
    expect(shown.get_by_text(HOSTILE, exact=True)).to_be_visible()
    assert page.locator("img[src=x]").count() == 0
    assert shown.locator("a[href*='evil']").count() == 0
    nearest = [hit.id for hit in shop.similar("t3", k=5)]
    activate(shown.get_by_role("button", name=re.compile("^Open · similarity|Open · similarity")).first)
    expect(shown.get_by_text(f"id {nearest[0]}", exact=True)).to_be_visible()
    assert docs(visit) == [nearest[0]]
    visit.settle()
    activate(shown.get_by_role("button", name="Back"))
    expect(shown.get_by_text("id t3", exact=True)).to_be_visible()
    visit.settle()
    activate(shown.get_by_role("button", name="Close"))
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page).not_to_have_url(re.compile("doc="))
    visit.settle()
    details = page.get_by_test_id("stMain").get_by_role("button", name="Details", exact=True)
    activate(details.first, opens=page.get_by_role("dialog"))
    drawer(visit)
    assert len(docs(visit)) == 1
    visit.check()


def test_an_unknown_document_is_one_sentence(visit: Visit, shop: Collection) -> None:
    page = visit.go(f"/search?collection={shop.path.stem}&doc=nobody")
    shown = page.get_by_role("dialog")
    expect(shown.get_by_text("there is no document with the id 'nobody'")).to_be_visible()
    visit.check()
